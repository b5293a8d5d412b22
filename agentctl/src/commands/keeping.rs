//! `search`, `fork`, `prune`: what is done with many sessions, or with one as a whole.

use proto::ids::{Seq, Timestamp};
use proto::request::{ForkSession, Prune, Request, Search};

use super::open;
use super::session::label;
use crate::cli::keeping::{ForkArgs, PruneArgs, SearchArgs};
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::{notes, session};

pub(super) async fn search(args: SearchArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let request = Request::Search(Search { text: args.words.join(" "), limit: args.limit });
    let found = crate::answer!(connection, request, Hits)?;
    if args.json {
        found.hits.iter().try_for_each(|hit| screen.json(hit))?;
        return Ok(Exit::Done);
    }
    if found.hits.is_empty() {
        screen.line(&notes::remark("nothing found"))?;
        return Ok(Exit::Done);
    }
    for line in session::hits(&found.hits, Timestamp::now(), screen.columns()) {
        screen.out_line(&line)?;
    }
    Ok(Exit::Done)
}

pub(super) async fn fork(args: ForkArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let request = Request::ForkSession(ForkSession {
        session: args.session,
        at: args.at.map(Seq),
        name: args.name,
        env: context.vars.clone(),
        endpoint: context.endpoint(),
    });
    let info = crate::answer!(connection, request, Session)?;
    if args.json {
        screen.json(&info)?;
    } else {
        let rows = info.head.0.saturating_sub(1);
        let says = format!("session {} begins with {rows} rows of the other, in a new shell", label(&info));
        screen.line(&notes::remark(&says))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn prune(args: PruneArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let older_than_ms = u64::try_from(args.older_than.as_millis()).unwrap_or(u64::MAX);
    let request = Request::Prune(Prune { older_than_ms, archived: args.archived, dry_run: !args.yes });
    let pruned = crate::answer!(connection, request, Pruned)?;
    if args.json {
        screen.json(&pruned)?;
        return Ok(Exit::Done);
    }
    let count = pruned.sessions.len();
    if count > 0 {
        let home = context.var("HOME").unwrap_or("");
        for line in session::list(&pruned.sessions, home, Timestamp::now(), screen.columns()) {
            screen.out_line(&line)?;
        }
    }
    let says = match (count, pruned.removed) {
        (0, _) => "no session is that old and unused".to_owned(),
        (_, false) => format!("{count} sessions; --yes removes them and their logs"),
        (_, true) => {
            let freed = pruned.bytes_before.saturating_sub(pruned.bytes_after);
            format!("{count} sessions removed; the database is {} KiB smaller", freed / 1024)
        }
    };
    screen.line(&notes::remark(&says))?;
    Ok(Exit::Done)
}
