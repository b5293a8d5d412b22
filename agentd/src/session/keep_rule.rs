//! "Always": a rule is added to the user's file.
//!
//! Invariant: what stands in the file stays byte for byte, the file is replaced in one step, and it is not touched when
//! it does not read or would not read afterwards.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use uuid::Uuid;

use super::rules::{FILE_BYTES_MAX, USER_FILE};
use crate::policy::{Layer, Rules};

/// Times the file may be changed by somebody else while it is being replaced.
const TRIES_MAX: u32 = 5;

/// One writer at a time: sessions share the file.
static WRITER: Mutex<()> = Mutex::new(());

/// The user's file.
pub(super) fn file(config: &Path) -> PathBuf {
    config.join(USER_FILE)
}

/// Adds rules to the user's file, unless they stand there.
///
/// # Errors
/// Why it could not be done, in words for the user; the file is as it was.
pub(super) fn keep(config: &Path, toml: &str) -> Result<(), String> {
    let _alone = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    let path = file(config);
    // Users keep such files elsewhere and link to them: the link stays.
    let target = fs::canonicalize(&path).unwrap_or(path);
    for _ in 0..TRIES_MAX {
        let stamp = modified(&target);
        let old = match fs::read_to_string(&target) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.to_string()),
        };
        if stands(&old, toml) {
            return Ok(());
        }
        let new = added(&old, toml)?;
        if replace(&target, &new, stamp).map_err(|error| error.to_string())? {
            return Ok(());
        }
    }
    Err("somebody else keeps changing it".to_owned())
}

/// Whether these rules were added before. Their comment names the command, so that the text alone is enough.
fn stands(old: &str, toml: &str) -> bool {
    old.contains(toml.trim())
}

fn added(old: &str, toml: &str) -> Result<String, String> {
    Rules::parse(Layer::User, old).map_err(|error| format!("it must be mended first: {error}"))?;
    let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
    let new = format!("{old}{gap}{}", if old.is_empty() { toml.trim_start() } else { toml });
    if new.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it would be over {FILE_BYTES_MAX} bytes"));
    }
    Rules::parse(Layer::User, &new).map_err(|error| format!("it would not read any more: {error}"))?;
    Ok(new)
}

fn modified(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// Puts the text in the file's place; `false` when the file is not as it was at `stamp` any more.
fn replace(target: &Path, text: &str, stamp: Option<(SystemTime, u64)>) -> io::Result<bool> {
    let folder = target.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let fresh = folder.join(format!(".policy.toml.{}", Uuid::new_v4().simple()));
    let written = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&fresh).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let done = written.and_then(|()| {
        if modified(target) != stamp {
            return Ok(false);
        }
        fs::rename(&fresh, target)?;
        fs::File::open(folder)?.sync_all()?;
        Ok(true)
    });
    if !matches!(done, Ok(true)) {
        // Nothing of a try that failed stays; one that cannot be removed is harmless.
        let _ = fs::remove_file(&fresh);
    }
    done
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const RULE: &str = "\n# for: touch x\n[[rule]]\ndecision = \"allow\"\ncommand = [\"touch\", \"x\"]\nexact = true\n";

    #[test]
    fn what_stands_in_the_file_stays_and_the_rule_is_added_once() {
        let dir = tempfile::tempdir().unwrap();
        let old = "# mine\n[[rule]]\ndecision = \"deny\"   # never\ncommand = \"rm\"";
        fs::write(file(dir.path()), old).unwrap();
        keep(dir.path(), RULE).unwrap();
        keep(dir.path(), RULE).unwrap();
        assert_eq!(fs::read_to_string(file(dir.path())).unwrap(), format!("{old}\n{RULE}"));
        assert_eq!(fs::metadata(file(dir.path())).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_first_rule_makes_the_file_and_a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config");
        keep(&config, RULE).unwrap();
        assert_eq!(fs::read_to_string(file(&config)).unwrap(), RULE.trim_start());
        let linked = dir.path().join("linked");
        fs::create_dir(&linked).unwrap();
        let elsewhere = dir.path().join("elsewhere.toml");
        fs::write(&elsewhere, "").unwrap();
        std::os::unix::fs::symlink(&elsewhere, file(&linked)).unwrap();
        keep(&linked, RULE).unwrap();
        assert!(fs::symlink_metadata(file(&linked)).unwrap().is_symlink());
        assert!(fs::read_to_string(&elsewhere).unwrap().contains("touch"));
    }

    #[test]
    fn a_file_that_does_not_read_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        for broken in ["[[rule]\n", "rule = []\n"] {
            fs::write(file(dir.path()), broken).unwrap();
            assert!(keep(dir.path(), RULE).is_err());
            assert_eq!(fs::read_to_string(file(dir.path())).unwrap(), broken);
        }
    }
}
