//! `find`: an expression of tests; actions that write, delete or run are not among those listed.

use super::super::value::{Start, Value};
use super::{Proof, Surroundings, read_only as command_only_reads};
use crate::policy::words::listed;

/// Tests and actions without an argument.
const ALONE: &str = "\
    ! ( ) , -a -and -d -daystart -depth -empty -executable -false -follow -ignore_readdir_race -ls -mount \
    -nogroup -noignore_readdir_race -nouser -noleaf -not -nowarn -o -or -print -print0 -prune -quit -readable \
    -true -warn -writable -xdev";

/// Tests and actions with one argument.
const WITH_ARGUMENT: &str = "\
    -amin -anewer -atime -cmin -cnewer -context -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex \
    -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -newermc -path -perm -printf -regex \
    -regextype -samefile -size -type -uid -used -user -wholename -xtype -newermt -newerct -newerat -newermm";

/// Proves that a `find` only prints.
pub(super) fn read_only(arguments: &[Value], around: &Surroundings<'_>) -> Proof {
    let mut rest = arguments;
    while let Some(("-H" | "-L" | "-P", others)) = rest.split_first().and_then(|(a, o)| Some((a.known()?, o))) {
        rest = others;
    }
    let mut places = true;
    while let Some((argument, others)) = rest.split_first() {
        rest = others;
        let Some(text) = argument.known() else {
            if places && !argument.maybe_option() && !argument.prefix().starts_with(['(', '!', ',', ')']) {
                continue;
            }
            return Err("an argument of find is not known and might be an action".to_owned());
        };
        let operator = text.starts_with('-') && text.len() > 1 || matches!(text, "(" | ")" | "!" | ",");
        if places && !operator {
            continue;
        }
        places = false;
        if listed(ALONE, text) {
            continue;
        }
        if listed(WITH_ARGUMENT, text) {
            let Some((value, others)) = rest.split_first().filter(|(value, _)| value.single()) else {
                return Err(format!("the argument of find {text} is not known"));
            };
            if text == "-printf" && value.known().is_none() {
                return Err("the format of find -printf is not known".to_owned());
            }
            rest = others;
            continue;
        }
        if text == "-exec" {
            rest = executed(rest, around)?;
            continue;
        }
        return Err(format!("find {text} is not known to only read"));
    }
    Ok(())
}

/// `-exec command … ;`: what it runs must only read whatever the file is called. Paths begin with the starting point,
/// which was proved not to begin with a dash.
fn executed<'a>(arguments: &'a [Value], around: &Surroundings<'_>) -> Result<&'a [Value], String> {
    let unclear = || "the command of find -exec is not known".to_owned();
    let end = arguments.iter().position(|a| matches!(a.known(), Some(";" | "+"))).ok_or_else(unclear)?;
    let (command, rest) = (&arguments[..end], &arguments[end + 1..]);
    let (name, words) = command.split_first().ok_or_else(unclear)?;
    let name = name.known().filter(|name| !name.contains("{}")).ok_or_else(unclear)?;
    let words: Vec<Value> = words
        .iter()
        .map(|word| match word {
            Value::Known(text) if text == "{}" => Value::Many(Start::Text("/".to_owned())),
            Value::Known(text) if text.contains("{}") => Value::One(Start::Anything),
            Value::Known(_) | Value::One(_) | Value::Many(_) => word.clone(),
        })
        .collect();
    command_only_reads(
        name,
        &words,
        &Surroundings { external: true, moved: true, depth: around.depth + 1, ..*around },
    )?;
    Ok(rest)
}
