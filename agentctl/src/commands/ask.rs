//! `ask`: a prompt, its turn, its answer.

use proto::handshake::Role;
use proto::ids::{PromptId, Seq};
use proto::request::{Attach, Request, SendPrompt, ShowSession};
use proto::response::{SessionInfo, SessionState};

use super::mode::set;
use super::session::{approve_mode, create, idle_one, label};
use crate::cli::AskArgs;
use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::follow::goal::Goal;
use crate::follow::{Follow, Output, Parts};
use crate::input::{self, Piped};
use crate::render::notes;
use crate::render::session::mode_style;
use crate::start;
use crate::view::{Options, View};

pub(super) async fn run(args: AskArgs, context: &Context) -> Result<Exit, CtlError> {
    let piped = input::read(context.tty.stdin)?;
    let text = input::prompt(args.prompt.as_deref(), &piped)?;
    let mut connection = start::connect(context, Role::Driver).await?;
    let mut chosen = choose(&args, &mut connection, context).await?;
    if let Some(mode) = args.mode.filter(|mode| *mode != chosen.info.mode) {
        // Naming it here is the explicit word that bypass needs. Its row stands before what is shown.
        let info = set(&mut connection, chosen.info.id.to_string(), mode, true).await?;
        chosen.info = SessionInfo { head: if chosen.info.head == Seq(0) { Seq(0) } else { info.head }, ..info };
    }
    let output = match (args.json, args.quiet) {
        (true, _) => Output::Json,
        (false, true) => Output::Quiet,
        (false, false) => Output::Full,
    };
    let since = chosen.info.head;
    let session = chosen.info.id;
    let view = View::new(options(context, output, false));
    let parts = Parts { context, connection, session, view, output, role: Role::Driver };
    let mut follow = Follow::new(parts);
    follow.view.last = since;
    follow.view.mode = chosen.info.mode;
    if output == Output::Full {
        if piped == Piped::Silent {
            follow.say(&notes::remark("nothing came through standard input, so it was left out"))?;
        }
        let mode = chosen.info.mode;
        let head = format!("session {} ({}) · mode ", label(&chosen.info), chosen.how);
        follow.say(&notes::remark(&head).text(mode_style(mode), mode.name()))?;
    }
    let can_ask = context.tty.can_ask() && output != Output::Json;
    let prompt = SendPrompt {
        session: session.to_string(),
        prompt: PromptId::new(),
        text,
        approve: approve_mode(args.approve, can_ask),
        endpoint: context.endpoint(),
    };
    if args.detach {
        return detach(follow, prompt).await;
    }
    // First the subscription, then the prompt: so no row of its turn can be missed.
    let attach = Attach { session: session.to_string(), since, endpoint: context.endpoint() };
    let attached = crate::answer!(follow.connection, Request::Attach(attach), Attached)?.session;
    // A turn before ours may wait for an answer, and ours for it.
    follow.view.open = attached.approvals;
    follow.view.sent(prompt.prompt);
    follow.goal = Some((Goal::new(prompt.prompt, can_ask), prompt.clone()));
    crate::answer!(follow.connection, Request::SendPrompt(prompt), Accepted)?;
    if chosen.info.state != SessionState::Idle && output == Output::Full {
        follow.say(&notes::remark("the session is at work; the prompt waits for its turn"))?;
    }
    follow.interactive = can_ask;
    follow.run().await
}

/// What `ask` and `attach` want of a view.
pub(super) fn options(context: &Context, output: Output, own_prompts: bool) -> Options {
    let client = context.client();
    Options {
        stream: context.tty.stdout && output == Output::Full,
        own_prompts,
        me: name(&client.program, &client.terminal),
        zone: jiff::tz::TimeZone::system(),
    }
}

/// A client as the daemon names it in answers.
fn name(program: &str, terminal: &str) -> String {
    if terminal.is_empty() { program.to_owned() } else { format!("{program} on {terminal}") }
}

struct Chosen {
    info: SessionInfo,
    how: &'static str,
}

async fn choose(args: &AskArgs, connection: &mut Connection, context: &Context) -> Result<Chosen, CtlError> {
    if let Some(session) = &args.session {
        let request = Request::ShowSession(ShowSession { session: session.clone() });
        return Ok(Chosen { info: crate::answer!(connection, request, Session)?, how: "continued" });
    }
    if let Some(info) = idle_one(args, connection, context).await? {
        return Ok(Chosen { info, how: "continued; --new starts a fresh one" });
    }
    let mut info = create(args, connection, context).await?;
    // A new session's first row is part of what is shown.
    info.head = Seq(0);
    Ok(Chosen { info, how: "new" })
}

async fn detach(mut follow: Follow<'_>, prompt: SendPrompt) -> Result<Exit, CtlError> {
    let accepted = crate::answer!(follow.connection, Request::SendPrompt(prompt), Accepted)?;
    match follow.output {
        Output::Json => follow.screen.json(&accepted)?,
        Output::Quiet => {}
        Output::Full => {
            let id = accepted.session.short();
            follow.say(&notes::remark(&format!("accepted; agentctl attach {id} shows it")))?;
        }
    }
    Ok(Exit::Done)
}
