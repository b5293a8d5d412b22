//! What ends while a session is followed: a question, a turn, what `ask` waited for.

use std::path::Path;

use proto::approval::Verdict;
use proto::request::{AnswerApproval, Request};
use tokio::time::Instant;

use super::goal::End;
use super::{Follow, Output};
use crate::branch;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::notify::{self, Notification};
use crate::render::notes;

impl Follow<'_> {
    /// What a turn took, for people; and a word to one who looks elsewhere.
    pub(super) fn turn_ended(&mut self, requests: u32) -> Result<(), CtlError> {
        self.branch = self.info.as_ref().and_then(|info| branch::of(Path::new(&info.cwd)));
        let spent = self.view.spent;
        // A command of the user's own has said how long it took.
        let tells = requests > 0 && self.output == Output::Full;
        if tells && self.context.tty.stderr && self.is_live {
            self.say(&notes::spent(spent.ms, &spent.usage))?;
        }
        if spent.ms >= notify::LONG_MS { self.notify("done") } else { Ok(()) }
    }

    /// Tells a user who looks elsewhere.
    pub(super) fn notify(&mut self, what: &str) -> Result<(), CtlError> {
        if !self.is_live || !self.focus.tells(self.context.notify_when, Instant::now()) {
            return Ok(());
        }
        let name = self.info.as_ref().and_then(|info| info.name.clone()).unwrap_or_else(|| self.session.short());
        let text = format!("{name} {what}");
        self.screen.notify(&Notification::new(self.context.notify, &self.context.vars, &text))
    }

    pub(super) async fn answer(&mut self, verdict: Verdict) -> Result<(), CtlError> {
        let Some(question) = self.question.take() else { return Ok(()) };
        let approval = question.approval;
        self.view.answers(approval.id);
        let request = Request::AnswerApproval(AnswerApproval {
            approval: approval.id.to_string(),
            digest: Some(approval.digest),
            verdict,
        });
        let refused = match self.connection.call(request).await {
            Ok(_) => None,
            Err(CtlError::Wire(error)) => Some(error),
            // Not known whether it arrived: the question stays, and is asked again if it is still open then.
            Err(error) => return Err(error),
        };
        // Its row closes it as well; an answer that was refused must not be asked for again and again.
        self.view.open.retain(|open| open.id != approval.id);
        match refused {
            None => Ok(()),
            Some(error) => self.say(&notes::notice(&error.to_string())),
        }
    }

    /// The goal is reached: the last words.
    pub(super) fn finish(&mut self) -> Result<Exit, CtlError> {
        let Some((goal, _)) = &self.goal else { return Ok(Exit::Done) };
        match self.output {
            Output::Full => {
                if let Some(End::Parked(problem)) = goal.end() {
                    self.screen.line(&notes::parked(problem, self.session))?;
                }
            }
            Output::Quiet => {
                self.screen.text(goal.answer())?;
                self.screen.end_text()?;
                if let Some(End::Turn(outcome)) = goal.end() {
                    notes::outcome(outcome).iter().try_for_each(|line| self.screen.line(line))?;
                }
                if let Some(End::Parked(problem)) = goal.end() {
                    self.screen.line(&notes::parked(problem, self.session))?;
                }
            }
            Output::Json => {
                let result = serde_json::json!({ "result": {
                    "session": self.session,
                    "turn": goal.turn(),
                    "outcome": goal.word(),
                    "problem": goal.problem(),
                    "text": goal.answer(),
                    "exit": goal.exit().code(),
                }});
                self.screen.json(&result)?;
            }
        }
        Ok(goal.exit())
    }
}
