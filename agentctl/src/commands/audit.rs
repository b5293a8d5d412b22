//! `audit`: what ran, what was refused, and who or what decided.

use proto::audit::{AuditRow, Verified};

use super::offline::Asking;
use crate::cli::{AuditArgs, AuditCommand};
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::audit as draw;
use crate::screen::Screen;

pub(super) async fn run(args: AuditArgs, context: &Context) -> Result<Exit, CtlError> {
    match args.command {
        Some(AuditCommand::Verify { json }) => verify(json || args.json, context).await,
        None => list(args, context).await,
    }
}

async fn list(args: AuditArgs, context: &Context) -> Result<Exit, CtlError> {
    let asking = Asking::new(context, &["audit"])
        .option("--session", args.session)
        .option("--since", args.since)
        .option("--until", args.until)
        .option("--decision", args.decision.map(crate::cli::AuditDecisionArg::word))
        .option("--text", args.text)
        .option("--last", args.last);
    if args.json {
        return asking.through().await;
    }
    let mut screen = Screen::standard(context.tty);
    let zone = jiff::tz::TimeZone::system();
    let columns = if context.tty.stdout { screen.columns() } else { usize::MAX };
    let mut any = false;
    let exit = asking
        .lines(None, |row: AuditRow| {
            any = true;
            screen.out_line(&draw::row(&row, &zone).fit(columns))
        })
        .await?;
    if !any && exit == Exit::Done {
        screen.line(&draw::nothing())?;
    }
    Ok(exit)
}

async fn verify(json: bool, context: &Context) -> Result<Exit, CtlError> {
    let asking = Asking::new(context, &["audit", "--verify"]);
    if json {
        return asking.through().await;
    }
    let mut screen = Screen::standard(context.tty);
    asking
        .lines(None, |verified: Verified| draw::verified(&verified).iter().try_for_each(|line| screen.out_line(line)))
        .await
}
