//! `attach`: watch a session, type prompts, answer questions.

use proto::event::{Event, EventBody};
use proto::ids::Seq;
use proto::request::{Attach, Request, ShowSession};
use proto::response::{ServerFrame, SessionInfo};

use super::ask::options;
use super::session::{label, selector};
use crate::cli::AttachArgs;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::follow::editor::Editor;
use crate::follow::typed::Lines;
use crate::follow::{Follow, Output, Parts, reconnect};
use crate::render::session::mode_style;
use crate::render::{Style, notes};
use crate::start;
use crate::view::View;

/// Rows that are looked at for the last turns: enough for a long turn, few enough to come at once.
const LOOK_BACK: u64 = 200;

/// Turns that are shown again on attaching.
const TURNS_SHOWN: usize = 2;

pub(super) async fn run(args: AttachArgs, context: &Context) -> Result<Exit, CtlError> {
    let role = reconnect::role(args.read_only);
    let mut connection = start::connect(context, role).await?;
    let session = selector(args.session, &mut connection, context).await?;
    let info = crate::answer!(connection, Request::ShowSession(ShowSession { session }), Session)?;
    let since = args.since.map_or(Seq(info.head.0.saturating_sub(LOOK_BACK)), Seq);
    let output = if args.json { Output::Json } else { Output::Full };
    let view = View::new(options(context, output, true));
    let session = info.id;
    let mut follow = Follow::new(Parts { context, connection, session, view, output, role });
    let attach = Attach { session: session.to_string(), since, endpoint: context.endpoint() };
    let attached = crate::answer!(follow.connection, Request::Attach(attach), Attached)?.session;
    follow.view.last = since;
    follow.view.mode = attached.mode;
    follow.view.counted = attached.head;
    follow.view.cost_nanousd = attached.usage.cost_nanousd.unwrap_or(0);
    if output == Output::Full {
        let hint = if args.read_only { " · read only" } else { " · /help lists what can be typed" };
        let line = notes::remark(&heading(&attached)).text(mode_style(attached.mode), attached.mode.name());
        follow.say(&line.lit(Style::Dim, hint))?;
        catch_up(&mut follow, since, args.since.is_some()).await?;
    }
    follow.know_model(&attached.model);
    follow.info = Some(attached.clone());
    follow.is_live = true;
    // A question may be older than the rows that were looked at.
    for approval in attached.approvals {
        if approval_is_new(&follow, &approval.id, attached.head) {
            follow.view.open.push(approval);
        }
    }
    if !args.read_only {
        take_input(&mut follow, context);
    }
    follow.run().await
}

fn heading(info: &SessionInfo) -> String {
    format!("session {} in {} · {} · mode ", label(info), info.cwd, info.model)
}

/// Whether an approval of the attach answer is still to be noted: its rows were not among those folded in.
fn approval_is_new(follow: &Follow<'_>, id: &proto::ids::ApprovalId, head: Seq) -> bool {
    follow.view.last <= head && !follow.view.open.iter().any(|open| open.id == *id)
}

fn take_input(follow: &mut Follow<'_>, context: &Context) {
    if context.tty.can_ask() && follow.output == Output::Full {
        follow.interactive = true;
        follow.editor = Some(Editor::default());
    } else {
        follow.lines = Some(Lines::read());
    }
}

/// Takes the rows up to now, folds all of them in and shows the last turns; all of them when that was asked for.
async fn catch_up(follow: &mut Follow<'_>, since: Seq, all: bool) -> Result<(), CtlError> {
    let mut rows = Vec::new();
    let mut early = Vec::new();
    let mut here = None;
    loop {
        match follow.connection.next().await? {
            Some(ServerFrame::Event(frame)) => rows.push(frame.event),
            Some(ServerFrame::CaughtUp(_)) => break,
            Some(ServerFrame::Live(live)) => early.push(live),
            Some(ServerFrame::Presence(presence)) => here = Some(presence),
            Some(ServerFrame::Response(_)) => {}
            Some(ServerFrame::Lagged(_) | ServerFrame::Goodbye(_)) | None => return Err(CtlError::Lost),
        }
    }
    let shown_from = if all { 0 } else { last_turns(&rows) };
    let hidden = since.0 + u64::try_from(shown_from).unwrap_or(0);
    if hidden > 0 && !all {
        let id = follow.session.short();
        follow.say(&notes::remark(&format!("{hidden} earlier rows: agentctl log {id}")))?;
    }
    follow.is_live = false;
    for (at, event) in rows.iter().enumerate() {
        follow.recall(event);
        if at < shown_from {
            follow.view.event(event, usize::MAX);
        } else {
            follow.event(event)?;
        }
    }
    for live in early {
        follow.live(&live)?;
    }
    here.map_or(Ok(()), |here| follow.presence(&here))
}

/// The index of the row with which the last turns begin.
fn last_turns(rows: &[Event]) -> usize {
    let begins = |event: &&Event| matches!(event.body, EventBody::PromptAccepted(_));
    let starts = rows.iter().filter(begins).map(|event| event.seq).rev().nth(TURNS_SHOWN - 1);
    starts.map_or(0, |seq| rows.iter().position(|event| event.seq == seq).unwrap_or(0))
}
