//! `approvals`, `approve`, `deny`: answering without being attached.

use proto::approval::{Decider, Verdict};
use proto::request::{AnswerApproval, ListApprovals, Request};

use super::open;
use crate::cli::{ApprovalsArgs, ApproveArgs, DenyArgs};
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::{Line, Style, approval, notes, session};

pub(super) async fn list(args: ApprovalsArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let request = Request::ListApprovals(ListApprovals { session: args.session });
    let approvals = crate::answer!(connection, request, Approvals)?.approvals;
    if args.json {
        approvals.iter().try_for_each(|approval| screen.json(approval))?;
        return Ok(Exit::Done);
    }
    if approvals.is_empty() {
        screen.line(&notes::remark("nothing waits for an answer"))?;
    }
    for (at, asked) in approvals.iter().enumerate() {
        if at > 0 {
            screen.out_line(&Line::new())?;
        }
        let id = asked.session.short();
        screen.out_line(&Line::new().lit(Style::Dim, "session ").text(Style::Name, &id))?;
        session::approval_block(asked).iter().try_for_each(|line| screen.out_line(line))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn approve(args: ApproveArgs, context: &Context) -> Result<Exit, CtlError> {
    let verdict = match (args.edit, args.session, args.always) {
        (Some(command), _, _) => Verdict::Edit { command },
        (None, true, _) => Verdict::Session {},
        (None, false, true) => Verdict::Always {},
        (None, false, false) => Verdict::Once {},
    };
    answer(Answer { approval: args.id, verdict, json: args.json }, context).await
}

pub(super) async fn deny(args: DenyArgs, context: &Context) -> Result<Exit, CtlError> {
    let verdict = Verdict::Deny { reason: args.reason };
    answer(Answer { approval: args.id, verdict, json: args.json }, context).await
}

struct Answer {
    approval: String,
    verdict: Verdict,
    json: bool,
}

async fn answer(answer: Answer, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let request = AnswerApproval { approval: answer.approval, digest: None, verdict: answer.verdict };
    let answered = crate::answer!(connection, Request::AnswerApproval(request), Answered)?;
    if answer.json {
        screen.json(&answered)?;
    } else {
        let mine = answered.yours && matches!(answered.by, Decider::Client { .. });
        screen.line(&approval::closed(&answered.verdict, &answered.by, mine))?;
    }
    // Somebody else was first: what was asked for here was not done.
    Ok(if answered.yours { Exit::Done } else { Exit::Failed })
}
