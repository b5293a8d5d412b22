//! What the `/commands` do.

use proto::ids::{Timestamp, UndoId};
use proto::mode::Mode;
use proto::request::{
    ChangeSession, Request, Retry, SessionChange, SessionDiff, SetMode, ShowSession, Undo, WithdrawPrompt,
};

use super::Follow;
use super::command::{ALL, KEYS, Wish};
use super::confirm::Confirm;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::{Line, Style, changes, notes, session};

/// Columns before the explanations of the help.
const HELP_COLUMN: usize = 20;

impl Follow<'_> {
    /// Does it; a refusal of the daemon is a line, not the end.
    pub(super) async fn wish(&mut self, wish: Wish, argument: &str) -> Result<(), CtlError> {
        match self.grant(wish, argument).await {
            Err(CtlError::Wire(error)) => self.say(&notes::notice(&error.to_string())),
            done => done,
        }
    }

    async fn grant(&mut self, wish: Wish, argument: &str) -> Result<(), CtlError> {
        match wish {
            Wish::Help => self.help(),
            Wish::Detach => {
                self.leaving = Some(Exit::Done);
                Ok(())
            }
            Wish::Interrupt => self.send_interrupt().await,
            Wish::Retry => {
                let (session, endpoint) = (self.session.to_string(), self.context.endpoint());
                self.connection.call(Request::Retry(Retry { session, endpoint })).await.map(drop)
            }
            Wish::Diff => {
                let request = Request::SessionDiff(SessionDiff { session: self.session.to_string() });
                let sum = crate::answer!(self.connection, request, Changes)?;
                let lines: Vec<Line> = sum.diffs.iter().flat_map(changes::whole).collect();
                lines.iter().chain(&changes::rest(&sum)).try_for_each(|line| self.say(line))
            }
            Wish::Undo => self.undo(argument).await,
            Wish::Withdraw => self.withdraw().await,
            Wish::Rename if argument.is_empty() => self.say(&notes::notice("/rename needs a name")),
            Wish::Rename => {
                let change = SessionChange::Rename { name: argument.to_owned() };
                let request = Request::ChangeSession(ChangeSession { session: self.session.to_string(), change });
                self.info = Some(crate::answer!(self.connection, request, Session)?);
                Ok(())
            }
            Wish::Show => {
                let request = Request::ShowSession(ShowSession { session: self.session.to_string() });
                let info = crate::answer!(self.connection, request, Session)?;
                let zone = jiff::tz::TimeZone::system();
                session::show(&info, Timestamp::now(), &zone).iter().try_for_each(|line| self.say(line))?;
                self.info = Some(info);
                Ok(())
            }
            Wish::Clear => self.screen.wipe(),
            Wish::Mode => self.mode(argument).await,
            Wish::Model
            | Wish::Effort
            | Wish::Compact
            | Wish::Usage
            | Wish::Jobs
            | Wish::Job
            | Wish::Kill
            | Wish::Background
            | Wish::Steer
            | Wish::Rerun
            | Wish::Search
            | Wish::Fork
            | Wish::Who => self.ask(wish, argument).await,
        }
    }

    fn help(&mut self) -> Result<(), CtlError> {
        self.gap()?;
        let commands = ALL.iter().map(|command| (format!("{} {}", command.name, command.argument), command.about));
        let keys = KEYS.iter().map(|&(name, about)| (name.to_owned(), about));
        let columns = self.screen.columns().saturating_sub(1);
        for (name, about) in commands.chain(keys) {
            let name = Line::new().text(Style::Name, name.trim_end());
            let gap = " ".repeat(HELP_COLUMN.saturating_sub(name.width()).max(1));
            let about =
                Line::new().text(Style::Plain, about).wrap(columns.saturating_sub(HELP_COLUMN).max(HELP_COLUMN));
            for (at, line) in about.into_iter().enumerate() {
                let start = if at == 0 {
                    name.clone().text(Style::Plain, &gap)
                } else {
                    Line::new().text(Style::Plain, &" ".repeat(HELP_COLUMN))
                };
                self.say(&start.join(line))?;
            }
        }
        Ok(())
    }

    async fn mode(&mut self, argument: &str) -> Result<(), CtlError> {
        let mut words = argument.split_whitespace();
        let (name, really) = (words.next(), words.next());
        let mode = match name.map(str::parse::<Mode>) {
            None => {
                let mode = self.view.mode;
                return self.say(&notes::remark(&format!("mode {mode}: {}", mode.meaning())));
            }
            Some(Ok(mode)) => mode,
            Some(Err(error)) => return self.say(&notes::notice(&error.to_string())),
        };
        let confirmed = really == Some("--yes-really");
        if mode == Mode::Bypass && !confirmed {
            let text = "in the mode bypass nothing is asked any more; if you mean it: /mode bypass --yes-really";
            return self.say(&notes::notice(text));
        }
        // The row that says so comes to every client.
        let request = SetMode { session: self.session.to_string(), mode, confirmed };
        self.connection.call(Request::SetMode(request)).await.map(drop)
    }

    async fn undo(&mut self, argument: &str) -> Result<(), CtlError> {
        let steps = if argument.is_empty() { Ok(1) } else { argument.parse() };
        let Ok(steps) = steps else {
            return self.say(&notes::notice(&format!("/undo takes a number of edits, not {argument}")));
        };
        let session = self.session.to_string();
        let mut wish = Undo { session, undo: UndoId::new(), steps, preview: true, newest: None };
        let preview = crate::answer!(self.connection, Request::Undo(wish.clone()), Undone)?;
        let lines: Vec<Line> = preview.diffs.iter().flat_map(changes::whole).collect();
        lines.iter().try_for_each(|line| self.say(line))?;
        wish.preview = false;
        wish.newest = Some(preview.newest);
        self.confirm = Some(Confirm::new(wish, changes::question(&preview)));
        Ok(())
    }

    /// A key after a preview.
    pub(super) async fn confirmed(&mut self, confirm: Confirm, bytes: &[u8]) -> Result<(), CtlError> {
        if !Confirm::is_yes(bytes) {
            return self.say(&notes::remark("nothing was taken back"));
        }
        match crate::answer!(self.connection, Request::Undo(confirm.wish), Undone) {
            Ok(undone) => self.say(&notes::remark(&changes::taken_back(&undone))),
            Err(CtlError::Wire(error)) => self.say(&notes::notice(&error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// The newest queued prompt comes back into the input, where it can be changed.
    async fn withdraw(&mut self) -> Result<(), CtlError> {
        let Some(queued) = self.view.queued.last().cloned() else {
            return self.say(&notes::remark("no prompt is queued"));
        };
        let session = self.session.to_string();
        self.connection.call(Request::WithdrawPrompt(WithdrawPrompt { session, prompt: queued.prompt })).await?;
        if let Some(editor) = &mut self.editor {
            editor.clear();
            editor.replace(0, &queued.text);
        }
        Ok(())
    }
}
