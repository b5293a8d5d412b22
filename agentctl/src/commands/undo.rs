//! `undo` and `diff`: what the agent's edits changed, and taking it back.

use std::io::BufRead;

use proto::ids::UndoId;
use proto::request::{Request, SessionDiff, Undo};
use proto::response::Undone;

use super::open;
use super::session::selector;
use crate::cli::{DiffArgs, UndoArgs};
use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::{Line, Style, changes, notes};
use crate::screen::Screen;
use crate::terminal::forget_typed;

/// Digits from which a lone number is a session, not a number of edits: the fewest that select one by its id.
const SELECTOR_DIGITS_MIN: usize = 4;

pub(super) async fn undo(args: UndoArgs, context: &Context) -> Result<Exit, CtlError> {
    if !args.yes && !context.tty.can_ask() {
        return Err(CtlError::NobodyToAsk);
    }
    let (mut connection, mut screen) = open(context).await?;
    let (session, steps) = target(args.session, args.steps);
    let session = selector(session, &mut connection, context).await?;
    let mut wish = Undo { session, undo: UndoId::new(), steps, preview: true, newest: None };
    if !args.yes {
        let preview = crate::answer!(connection, Request::Undo(wish.clone()), Undone)?;
        show(&mut screen, &preview)?;
        if !agreed(&mut screen, &preview)? {
            screen.line(&notes::remark("nothing was taken back"))?;
            return Ok(Exit::Failed);
        }
        wish.newest = Some(preview.newest);
    }
    wish.preview = false;
    let undone = take_back(&mut connection, wish, context).await?;
    if args.json {
        screen.json(&undone)?;
    } else {
        if args.yes {
            show(&mut screen, &undone)?;
        }
        screen.line(&notes::remark(&changes::taken_back(&undone)))?;
    }
    Ok(Exit::Done)
}

/// Asks once more over a new connection when the first is lost: by its id nothing more is taken back.
async fn take_back(connection: &mut Connection, wish: Undo, context: &Context) -> Result<Undone, CtlError> {
    match crate::answer!(connection, Request::Undo(wish.clone()), Undone) {
        Err(CtlError::Lost | CtlError::Connection(_)) => {
            let (mut connection, _) = open(context).await?;
            crate::answer!(connection, Request::Undo(wish), Undone)
        }
        done => done,
    }
}

/// `undo 3` means three edits: no selector has so few digits.
fn target(session: Option<String>, steps: Option<u32>) -> (Option<String>, u32) {
    let number = |text: &String| (text.len() < SELECTOR_DIGITS_MIN).then(|| text.parse().ok()).flatten();
    match (session.as_ref().and_then(number), steps) {
        (Some(number), None) => (None, number),
        (_, steps) => (session, steps.unwrap_or(1)),
    }
}

/// The changes, where they do not mix with what a script reads.
fn show(screen: &mut Screen, undone: &Undone) -> Result<(), CtlError> {
    undone.diffs.iter().flat_map(changes::whole).try_for_each(|line| screen.line(&line))
}

fn agreed(screen: &mut Screen, preview: &Undone) -> Result<bool, CtlError> {
    // What was typed before the question was there is no answer to it. Dropped just before it is drawn: later, an answer
    // that came at once would be lost, and waited for.
    forget_typed();
    screen.line(&Line::new().lit(Style::Bold, "? ").text(Style::Plain, &changes::question(preview)))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(CtlError::Stdin)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

pub(super) async fn diff(args: DiffArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let session = selector(args.session, &mut connection, context).await?;
    let sum = crate::answer!(connection, Request::SessionDiff(SessionDiff { session }), Changes)?;
    if args.json {
        screen.json(&sum)?;
        return Ok(Exit::Done);
    }
    let shown = if args.stat { changes::stat } else { changes::whole };
    sum.diffs.iter().flat_map(shown).try_for_each(|line| screen.out_line(&line))?;
    changes::rest(&sum).iter().try_for_each(|line| screen.line(line))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_short_number_is_how_many_edits() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(target(None, None), (None, 1));
        assert_eq!(target(some("3"), None), (None, 3));
        assert_eq!(target(some("3"), Some(2)), (some("3"), 2));
        assert_eq!(target(some("4711"), None), (some("4711"), 1));
        assert_eq!(target(some("build"), Some(2)), (some("build"), 2));
    }
}
