//! `send`: a prompt for a session, without waiting for its turn.

use proto::ids::PromptId;
use proto::request::{Request, SendPrompt};

use super::open;
use super::session::approve_mode;
use crate::cli::SendArgs;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::input::{self, Piped};
use crate::render::notes;

pub(super) async fn run(args: SendArgs, context: &Context) -> Result<Exit, CtlError> {
    let piped = if args.prompt == "-" { input::read(context.tty.stdin)? } else { Piped::Nothing };
    let text = input::prompt(Some(&args.prompt), &piped)?;
    let (mut connection, mut screen) = open(context).await?;
    let request = SendPrompt {
        session: args.session,
        prompt: PromptId::new(),
        text,
        approve: approve_mode(args.approve, context.tty.can_ask()),
        endpoint: context.endpoint(),
    };
    let accepted = crate::answer!(connection, Request::SendPrompt(request), Accepted)?;
    if args.json {
        screen.json(&accepted)?;
    } else {
        let id = accepted.session.short();
        screen.line(&notes::remark(&format!(
            "accepted as row {} of session {id}; agentctl attach {id} shows it",
            accepted.seq
        )))?;
    }
    Ok(Exit::Done)
}
