//! `steer`, `rerun`, `compact`, `set`, `usage`: what concerns the model's work.

use proto::ids::PromptId;
use proto::request::{Compact, Configure, Request, Rerun, Steer, UsageQuery};

use super::list::out_columns;
use super::open;
use super::session::{approve_mode, selector};
use crate::cli::{RerunArgs, SessionJsonArgs, SetArgs, SteerArgs, UsageArgs};
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::input::{self, Piped};
use crate::render::{model, notes};

/// A text as given, or from standard input for `-`.
fn text(given: &str, context: &Context) -> Result<String, CtlError> {
    let piped = if given == "-" { input::read(context.tty.stdin)? } else { Piped::Nothing };
    input::prompt(Some(given), &piped)
}

pub(super) async fn steer(args: SteerArgs, context: &Context) -> Result<Exit, CtlError> {
    let text = text(&args.text, context)?;
    let (mut connection, mut screen) = open(context).await?;
    let done = crate::answer!(connection, Request::Steer(Steer { session: args.session, text }), Done)?;
    if args.json {
        screen.json(&done)?;
    } else {
        screen.line(&notes::remark("noted; the model gets it before its next request"))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn rerun(args: RerunArgs, context: &Context) -> Result<Exit, CtlError> {
    let text = args.prompt.as_deref().map(|prompt| text(prompt, context)).transpose()?;
    let (mut connection, mut screen) = open(context).await?;
    let request = Rerun {
        session: args.session,
        prompt: PromptId::new(),
        text,
        approve: approve_mode(args.approve, context.tty.can_ask()),
        endpoint: context.endpoint(),
    };
    let accepted = crate::answer!(connection, Request::Rerun(request), Accepted)?;
    if args.json {
        screen.json(&accepted)?;
    } else {
        let id = accepted.session.short();
        let text =
            format!("asked again; files are as they are (agentctl undo {id}); agentctl attach {id} shows the turn");
        screen.line(&notes::remark(&text))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn compact(args: SessionJsonArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let session = selector(args.session, &mut connection, context).await?;
    let request = Request::Compact(Compact { session, endpoint: context.endpoint() });
    let done = crate::answer!(connection, request, Done)?;
    if args.json {
        screen.json(&done)?;
    } else {
        screen.line(&notes::remark("the model writes a summary; agentctl attach shows when it is done"))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn set(args: SetArgs, context: &Context) -> Result<Exit, CtlError> {
    let request = settings(args.session, &args.settings)?;
    let (mut connection, mut screen) = open(context).await?;
    let info = crate::answer!(connection, Request::Configure(request), Session)?;
    if args.json {
        screen.json(&info)?;
    } else {
        let effort = info.effort.as_deref().unwrap_or("default");
        let text = format!("model {}, effort {effort}, at most {} tokens a reply", info.model, info.max_tokens);
        screen.line(&notes::remark(&text))?;
    }
    Ok(Exit::Done)
}

fn settings(session: String, words: &[String]) -> Result<Configure, CtlError> {
    let mut request = Configure { session, model: None, effort: None, max_tokens: None };
    for word in words {
        match word.split_once('=') {
            Some(("model", value)) => request.model = Some(value.to_owned()),
            Some(("effort", value)) => request.effort = Some(value.to_owned()),
            Some(("max_tokens", value)) => {
                let number = value.parse().map_err(|_| CtlError::Setting { word: word.clone() })?;
                request.max_tokens = Some(number);
            }
            Some(_) | None => return Err(CtlError::Setting { word: word.clone() }),
        }
    }
    Ok(request)
}

pub(super) async fn usage(args: UsageArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let request = Request::Usage(UsageQuery { session: args.session, days: args.days });
    let report = crate::answer!(connection, request, Usage)?;
    if args.json {
        screen.json(&report)?;
        return Ok(Exit::Done);
    }
    let columns = out_columns(&screen, context);
    for line in model::usage(&report, &jiff::tz::TimeZone::system(), columns) {
        screen.out_line(&line)?;
    }
    Ok(Exit::Done)
}
