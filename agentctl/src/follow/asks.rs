//! The `/commands` that ask the daemon for what other terminals ask with commands of their own, and `!COMMAND`.

use proto::command::RunCommand;
use proto::event::EventBody;
use proto::ids::{CallId, PromptId, Timestamp};
use proto::job::{Background, Job, ListJobs, READ_BYTES_MAX, ReadJob, StopJob};
use proto::request::{ApproveMode, Compact, Configure, ForkSession, Request, Rerun, Search, Steer, UsageQuery};

use super::Follow;
use super::command::Wish;
use super::complete::KnownJob;
use crate::error::CtlError;
use crate::render::{Line, call, jobs, model, notes, session};

/// Days that `/usage` sums up: today's and yesterday's, for a session that went through the night.
const USAGE_DAYS: u32 = 2;

/// Rows that `/search` shows: a screen is small.
const HITS: u32 = 10;

/// Lines that `/job` shows.
const JOB_LINES: usize = 20;

/// Background commands that are offered for completion.
const JOBS_KNOWN: usize = 20;

impl Follow<'_> {
    pub(super) async fn ask(&mut self, wish: Wish, argument: &str) -> Result<(), CtlError> {
        let session = self.session.to_string();
        match wish {
            Wish::Model | Wish::Effort => self.configure(wish, argument).await,
            Wish::Compact => {
                let request = Request::Compact(Compact { session, endpoint: self.context.endpoint() });
                self.connection.call(request).await.map(drop)
            }
            Wish::Usage => {
                let request = Request::Usage(UsageQuery { session: Some(session), days: USAGE_DAYS });
                let report = crate::answer!(self.connection, request, Usage)?;
                let lines = model::usage(&report, &jiff::tz::TimeZone::system(), self.text_columns());
                self.block(&lines)
            }
            Wish::Jobs => {
                let all = self.list_jobs().await?;
                if all.is_empty() {
                    return self.say(&notes::remark("no background commands"));
                }
                let lines = jobs::list(&all, Timestamp::now(), self.text_columns());
                self.block(&lines)
            }
            Wish::Job => self.show_job(argument).await,
            Wish::Kill if argument.is_empty() => self.say(&notes::notice("/kill needs a job; /jobs lists them")),
            Wish::Kill => {
                let request = Request::StopJob(StopJob { job: argument.to_owned() });
                self.connection.call(request).await.map(drop)
            }
            Wish::Background => {
                let request = Request::Background(Background { session });
                crate::answer!(self.connection, request, Moving).map(drop)
            }
            Wish::Steer if argument.is_empty() => self.say(&notes::notice("/steer needs a note for the model")),
            Wish::Steer => {
                let request = Request::Steer(Steer { session, text: argument.to_owned() });
                self.connection.call(request).await.map(drop)
            }
            Wish::Rerun => {
                let prompt = PromptId::new();
                self.view.sent(prompt);
                let text = (!argument.is_empty()).then(|| argument.to_owned());
                let approve = if self.answers { ApproveMode::Ask } else { ApproveMode::Deny };
                let request = Rerun { session, prompt, text, approve, endpoint: self.context.endpoint() };
                let asked = self.connection.call(Request::Rerun(request)).await;
                if asked.is_err() {
                    self.view.not_sent(prompt);
                }
                asked.map(drop)
            }
            Wish::Search if argument.is_empty() => self.say(&notes::notice("/search needs words")),
            Wish::Search => {
                let request = Request::Search(Search { text: argument.to_owned(), limit: HITS });
                let found = crate::answer!(self.connection, request, Hits)?;
                if found.hits.is_empty() {
                    return self.say(&notes::remark("nothing found"));
                }
                let lines = session::hits(&found.hits, Timestamp::now(), self.text_columns());
                self.block(&lines)
            }
            Wish::Fork => {
                let name = (!argument.is_empty()).then(|| argument.to_owned());
                let (env, endpoint) = (self.context.vars.clone(), self.context.endpoint());
                let request = Request::ForkSession(ForkSession { session, at: None, name, env, endpoint });
                let info = crate::answer!(self.connection, request, Session)?;
                let name = info.name.unwrap_or_else(|| info.id.short());
                self.say(&notes::remark(&format!("session {name} goes on from here: agentctl attach {name}")))
            }
            Wish::Who => {
                let attached = self.attached.clone();
                let mut names = attached.iter().map(session::attendee).collect::<Vec<_>>();
                names.sort();
                self.say(&notes::remark(&format!("attached: {}", names.join(", "))))
            }
            Wish::Help
            | Wish::Detach
            | Wish::Interrupt
            | Wish::Retry
            | Wish::Diff
            | Wish::Undo
            | Wish::Withdraw
            | Wish::Rename
            | Wish::Show
            | Wish::Clear
            | Wish::Mode => Ok(()),
        }
    }

    async fn configure(&mut self, wish: Wish, argument: &str) -> Result<(), CtlError> {
        if argument.is_empty() {
            let Some(info) = &self.info else { return Ok(()) };
            let effort = info.effort.as_deref().unwrap_or("default");
            return self.say(&notes::remark(&format!("model {}, effort {effort}", info.model)));
        }
        let value = || Some(argument.to_owned());
        let (model, effort) = if wish == Wish::Model { (value(), None) } else { (None, value()) };
        let request = Configure { session: self.session.to_string(), model, effort, max_tokens: None };
        self.info = Some(crate::answer!(self.connection, Request::Configure(request), Session)?);
        Ok(())
    }

    /// `!COMMAND`: what it prints comes as live output and rows, like a command of the model's.
    pub(super) async fn run_command(&mut self, command: String) -> Result<(), CtlError> {
        let request = RunCommand { session: self.session.to_string(), call: CallId::new(), command };
        match self.connection.call(Request::RunCommand(request)).await {
            Ok(_) => Ok(()),
            Err(CtlError::Wire(error)) => self.say(&notes::notice(&error.to_string())),
            Err(error) => Err(error),
        }
    }

    async fn list_jobs(&mut self) -> Result<Vec<Job>, CtlError> {
        let request = Request::ListJobs(ListJobs { session: Some(self.session.to_string()) });
        let all = crate::answer!(self.connection, request, Jobs)?.jobs;
        let known = all.iter().map(|job| known(job.job.short(), &job.command, job.outcome.is_none())).take(JOBS_KNOWN);
        self.known.jobs = known.collect();
        Ok(all)
    }

    /// The last lines of a job; without its id of the one that began last.
    async fn show_job(&mut self, id: &str) -> Result<(), CtlError> {
        let all = self.list_jobs().await?;
        let newest = || all.iter().max_by_key(|job| job.started_at);
        let named = |job: &&Job| job.job.to_string().ends_with(id);
        let found = if id.is_empty() { newest() } else { all.iter().find(named) };
        let Some(job) = found else {
            let why = if all.is_empty() {
                "no background commands".to_owned()
            } else {
                format!("no job {id}; /jobs lists them")
            };
            return self.say(&notes::remark(&why));
        };
        let since = job.output_bytes.saturating_sub(READ_BYTES_MAX);
        let read = ReadJob { job: job.job.to_string(), since, max: READ_BYTES_MAX, wait_ms: 0 };
        let output = crate::answer!(self.connection, Request::ReadJob(read), JobOutput)?;
        let all: Vec<&str> = output.text.trim_end().lines().collect();
        let columns = self.text_columns();
        let shown = &all[all.len().saturating_sub(JOB_LINES)..];
        let mut lines: Vec<Line> = shown.iter().map(|line| call::output_line(line, columns)).collect();
        lines.push(jobs::one(&output.job));
        self.block(&lines)
    }

    fn block(&mut self, lines: &[Line]) -> Result<(), CtlError> {
        self.gap()?;
        lines.iter().try_for_each(|line| self.say(line))
    }

    /// Keeps what commands can be completed with.
    pub(super) fn know(&mut self, body: &EventBody) {
        match body {
            EventBody::JobStarted(it) => {
                self.known.jobs.insert(0, known(it.job.short(), &it.command, true));
                self.known.jobs.truncate(JOBS_KNOWN);
            }
            EventBody::JobEnded(it) => {
                let id = it.job.short();
                self.known.jobs.iter_mut().filter(|job| job.id == id).for_each(|job| job.runs = false);
            }
            EventBody::SessionCreated(it) => self.know_model(&it.model),
            EventBody::SettingsChanged(it) => self.know_model(&it.model),
            _ => {}
        }
    }

    /// Keeps the name of a model.
    pub(crate) fn know_model(&mut self, model: &str) {
        if !self.known.models.iter().any(|known| known == model) {
            self.known.models.push(model.to_owned());
        }
    }
}

fn known(id: String, command: &str, runs: bool) -> KnownJob {
    KnownJob { id, command: command.lines().next().unwrap_or_default().to_owned(), runs }
}
