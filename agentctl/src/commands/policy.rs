//! `policy check|explain|test|replay`: what the policy would decide, and why, without running anything.

use proto::policy::{Checked, Replayed, Tested};
use serde::Deserialize;

use super::offline::Asking;
use crate::cli::{PolicyCheckArgs, PolicyCommand, PolicyExplainArgs, PolicyReplayArgs, PolicyTestArgs};
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::policy as draw;
use crate::screen::Screen;

pub(super) async fn run(command: PolicyCommand, context: &Context) -> Result<Exit, CtlError> {
    match command {
        PolicyCommand::Check(args) => check(args, context).await,
        PolicyCommand::Explain(args) => explain(args, context).await,
        PolicyCommand::Test(args) => test(args, context).await,
        PolicyCommand::Replay(args) => replay(args, context).await,
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Checked(Box<Checked>),
    Bad { error: String },
}

async fn check(args: PolicyCheckArgs, context: &Context) -> Result<Exit, CtlError> {
    let asking = Asking::new(context, &["policy", "check"])
        .option("--rules", args.rules.as_ref().map(|file| file.display().to_string()))
        .option("--mode", args.mode.map(crate::cli::ModeArg::word));
    match args.command {
        Some(command) => one(asking, &command, args.json, false, context).await,
        None if context.tty.stdin => Err(CtlError::NothingToCheck),
        None => asking.through().await,
    }
}

async fn explain(args: PolicyExplainArgs, context: &Context) -> Result<Exit, CtlError> {
    let asking = Asking::new(context, &["policy", "check"])
        .option("--rules", args.rules.as_ref().map(|file| file.display().to_string()))
        .option("--mode", args.mode.map(crate::cli::ModeArg::word));
    match one(asking, &args.command, args.json, true, context).await? {
        // It explains; that something would be asked is no failure of that.
        Exit::WouldAsk | Exit::WouldDeny => Ok(Exit::Done),
        other => Ok(other),
    }
}

async fn one(asking: Asking<'_>, command: &str, json: bool, whole: bool, context: &Context) -> Result<Exit, CtlError> {
    let mut screen = Screen::standard(context.tty);
    let question = serde_json::json!({ "command": command, "cwd": context.cwd_text()? });
    let mut decision = None;
    let exit = asking
        .lines(Some(format!("{question}\n")), |answer| match answer {
            Answer::Checked(checked) => {
                decision = Some(checked.decision);
                match (json, whole) {
                    (true, _) => screen.json(&checked),
                    (false, true) => draw::explained(&checked).iter().try_for_each(|line| screen.out_line(line)),
                    (false, false) => screen.out_line(&draw::verdict(checked.decision, &checked.reason, None)),
                }
            }
            Answer::Bad { error } => Err(CtlError::NotChecked(error)),
        })
        .await?;
    Ok(match decision {
        Some(decision) if exit == Exit::Done => Exit::of(decision),
        Some(_) | None => exit,
    })
}

async fn test(args: PolicyTestArgs, context: &Context) -> Result<Exit, CtlError> {
    let asking = Asking::new(context, &["policy", "test", "--"]);
    let asking = args.files.iter().fold(asking, |asking, file| asking.word(file.display().to_string()));
    if args.json {
        return asking.through().await;
    }
    let mut screen = Screen::standard(context.tty);
    let mut files = 0;
    let exit = asking
        .lines(None, |tested: Tested| {
            files += 1;
            draw::tested(&tested).iter().try_for_each(|line| screen.out_line(line))
        })
        .await?;
    if files == 0 && exit == Exit::Done {
        screen.line(&draw::no_rule_files())?;
    }
    Ok(exit)
}

async fn replay(args: PolicyReplayArgs, context: &Context) -> Result<Exit, CtlError> {
    let asking = Asking::new(context, &["policy", "replay"])
        .option("--rules", Some(args.rules.display()))
        .option("--session", args.session)
        .option("--since", args.since)
        .option("--until", args.until);
    if args.json {
        return asking.through().await;
    }
    let mut screen = Screen::standard(context.tty);
    let zone = jiff::tz::TimeZone::system();
    asking
        .lines(None, |replayed| match replayed {
            Replayed::Differs(difference) => {
                draw::difference(&difference, &zone).iter().try_for_each(|line| screen.out_line(line))
            }
            Replayed::Sum(sum) => screen.line(&draw::sum(&sum)),
        })
        .await
}
