//! Carries effects out: requests to the model, calls in the shell. Each deed is a task of this session; what it finds
//! comes back as news.

mod jobs;
mod request;
mod rest;

use std::path::PathBuf;
use std::sync::Arc;

use proto::ids::{ApprovalId, CallId, RequestId, SessionId};
use proto::secret::EnvVars;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use uuid::Uuid;

use super::Context;
use super::call_task::{self, CallJob};
use super::file_task::{self, Look, UndoTry};
use super::machine::{Effect, Input, Machine};
use super::news::News;
use super::spec::Spec;
use super::{job_task, keep_rule, shell_task};
use crate::faults::{self, Point};
use crate::model::wire::Writer;
use crate::shell::Shell;
use crate::tools::undo;

/// Output pieces that may wait between a command and its session; the shell drops pieces for a slow session, never
/// output: the spool has all of it.
pub(super) const OUTPUT_QUEUE_MAX: usize = 64;

/// The tasks of one session.
pub(super) struct Deeds {
    session: SessionId,
    cwd: String,
    spec: Arc<Spec>,
    env: Option<EnvVars>,
    context: Arc<Context>,
    news: mpsc::Sender<News>,
    tasks: JoinSet<()>,
    request: Option<(RequestId, AbortHandle)>,
    writer: Writer,
    shell: Slot,
    /// What waits for the shell, in order.
    waiting: Vec<Waiting>,
    had_shell: bool,
}

/// The session's shell, as far as it is known.
enum Slot {
    /// Nobody looked yet, or there is none.
    None,
    /// It is being looked for or started.
    Coming {
        /// Start one when none is found.
        launch: bool,
        /// Fails when that is over.
        looked: oneshot::Receiver<()>,
    },
    /// It answers.
    Up(Shell),
}

/// Something for the shell to do.
enum Waiting {
    Call(Box<CallJob>),
    Cancel(CallId),
    Forget(CallId),
    Undo(UndoTry),
    Look(Look),
    Jobs(job_task::Look, Vec<job_task::Known>),
}

impl Deeds {
    pub(super) fn new(
        session: SessionId,
        cwd: String,
        spec: Arc<Spec>,
        env: Option<EnvVars>,
        context: Arc<Context>,
        news: mpsc::Sender<News>,
    ) -> Self {
        Self {
            session,
            cwd,
            spec,
            env,
            context,
            news,
            tasks: JoinSet::new(),
            request: None,
            writer: Writer::default(),
            shell: Slot::None,
            waiting: Vec::new(),
            had_shell: false,
        }
    }

    /// Does one thing.
    pub(super) fn perform(&mut self, effect: Effect, machine: &Machine) {
        // Finished tasks leave the set here, so that it holds only what runs.
        while self.tasks.try_join_next().is_some() {}
        match effect {
            Effect::SendRequest { request, attempt } => self.send(request, attempt, machine),
            Effect::CancelRequest { request } => {
                if let Some((id, task)) = self.request.take() {
                    debug_assert_eq!(id, request, "only one request is under way");
                    task.abort();
                }
            }
            Effect::AssessCall { call } => {
                if let Some(job) = job_of(machine, call) {
                    self.for_shell(Waiting::Call(Box::new(job)));
                }
            }
            Effect::RunCall { call, shim, expect, again } => {
                if let Some(mut job) = job_of(machine, call) {
                    job.run = Some(call_task::RunOrder { shim, expect, again });
                    self.for_shell(Waiting::Call(Box::new(job)));
                }
            }
            Effect::CancelCall { call } => self.for_shell(Waiting::Cancel(call)),
            Effect::ForgetCall { call } => {
                faults::reach(Point::ToForget);
                self.for_shell(Waiting::Forget(call));
            }
            Effect::RunUndo(order) => self.undo(UndoTry { order, tries: 0 }),
            Effect::SyncJobs => self.sync_jobs(machine),
            Effect::StopJob { job } => self.stop_job(job),
            Effect::ForgetJob { job } => {
                // A shell that is not there has nothing to forget.
                if let Slot::Up(shell) = &self.shell {
                    let shell = shell.clone();
                    self.tasks.spawn(async move { shell.forget(CallId(job.0)).await });
                }
            }
            Effect::BackgroundCall { call, job } => {
                if let Slot::Up(shell) = &self.shell {
                    self.tasks.spawn(job_task::background(call, job, shell.clone(), self.news.clone()));
                }
            }
            Effect::KeepRule { approval, toml } => self.keep_rule(approval, toml),
        }
    }

    /// Whether this shim is the present one.
    pub(super) fn is_up(&self, instance: Uuid) -> bool {
        matches!(&self.shell, Slot::Up(shell) if shell.instance() == instance)
    }

    /// Takes edits back.
    pub(super) fn undo(&mut self, this: UndoTry) {
        self.for_shell(Waiting::Undo(this));
    }

    /// Looks at the files for a client.
    pub(super) fn look(&mut self, look: Look) {
        self.for_shell(Waiting::Look(look));
    }

    /// Adds a rule to the user's file.
    fn keep_rule(&mut self, approval: ApprovalId, toml: String) {
        let (config, news) = (self.context.paths.config.clone(), self.news.clone());
        self.tasks.spawn(async move {
            let file = keep_rule::file(&config).display().to_string();
            let kept = tokio::task::spawn_blocking(move || keep_rule::keep(&config, &toml)).await;
            let problem = kept.unwrap_or_else(|error| Err(error.to_string())).err();
            let _ = news.send(News::Happened(Box::new(Input::RuleKept { approval, file, problem }))).await;
        });
    }

    fn for_shell(&mut self, what: Waiting) {
        match &self.shell {
            Slot::Up(shell) => {
                let shell = shell.clone();
                self.hand_over(what, shell);
            }
            Slot::None | Slot::Coming { .. } => {
                // Nothing to forget or cancel in a shell that is not there yet; a run that waits goes first.
                self.waiting.push(what);
                self.want_shell();
            }
        }
    }

    fn hand_over(&mut self, what: Waiting, shell: Shell) {
        match what {
            Waiting::Call(job) => {
                let (context, news) = (Arc::clone(&self.context), self.news.clone());
                let workspace = PathBuf::from(&self.cwd);
                self.tasks.spawn(call_task::run(*job, shell, context, workspace, self.session, news));
            }
            Waiting::Cancel(call) => {
                self.tasks.spawn(async move {
                    if let Err(error) = shell.interrupt(call).await {
                        tracing::warn!(%call, %error, "the call could not be interrupted");
                    }
                });
            }
            Waiting::Forget(call) => {
                self.tasks.spawn(async move { shell.forget(call).await });
            }
            Waiting::Undo(this) => {
                self.tasks.spawn(file_task::run_undo(this, shell, self.news.clone()));
            }
            Waiting::Jobs(look, known) => {
                self.tasks.spawn(job_task::look(look, self.session, known, Some(shell)));
            }
            Waiting::Look(look) => {
                self.tasks.spawn(file_task::run_look(look, shell, self.news.clone()));
            }
        }
    }

    /// Looks for a shell of an earlier daemon; starts none.
    pub(super) fn find_shell(&mut self) {
        if matches!(self.shell, Slot::None) {
            let launch = self.env.is_some();
            self.come(launch);
        }
    }

    fn want_shell(&mut self) {
        match &mut self.shell {
            Slot::Coming { launch, .. } => *launch = true,
            Slot::None => self.come(true),
            Slot::Up(_) => {}
        }
    }

    fn come(&mut self, launch: bool) {
        let (tell, looked) = oneshot::channel();
        self.shell = Slot::Coming { launch, looked };
        let order =
            shell_task::Order { session: self.session, cwd: PathBuf::from(&self.cwd), env: self.env.clone(), launch };
        self.tasks.spawn(shell_task::run(order, tell, Arc::clone(&self.context), self.news.clone()));
    }

    /// The shell answers: what waited goes to it, and its end will be news.
    pub(super) fn shell_up(&mut self, shell: Shell) {
        self.shell = Slot::Up(shell.clone());
        let (news, watched) = (self.news.clone(), shell.clone());
        self.tasks.spawn(async move {
            watched.lost().await;
            let _ = news.send(News::ShellLost { instance: watched.instance() }).await;
        });
        let (news, mut changed, instance) = (self.news.clone(), shell.jobs_changed(), shell.instance());
        self.tasks.spawn(async move {
            while changed.changed().await.is_ok() {
                let _ = news.send(News::JobsChanged { instance }).await;
            }
        });
        for what in std::mem::take(&mut self.waiting) {
            self.hand_over(what, shell.clone());
        }
    }

    /// Whether a shell answered before in this daemon's life; a first launch is no news to anybody.
    pub(super) fn had_shell(&mut self) -> bool {
        std::mem::replace(&mut self.had_shell, true)
    }

    /// None was found; one is started if something waits for it.
    pub(super) fn shell_absent(&mut self) {
        let wanted = matches!(self.shell, Slot::Coming { launch: true, .. });
        self.shell = Slot::None;
        if wanted {
            self.come(true);
        } else {
            // Looks start no shell.
            for what in std::mem::take(&mut self.waiting) {
                match what {
                    Waiting::Jobs(look, known) => self.look_at_jobs(look, known),
                    other => self.waiting.push(other),
                }
            }
        }
    }

    /// None can be started: everything that waits hears of it.
    pub(super) fn shell_failed(&mut self, error: String) {
        self.shell = Slot::None;
        for what in std::mem::take(&mut self.waiting) {
            let news = match what {
                Waiting::Call(job) => News::Happened(Box::new(call_task::no_shell(&job, &error))),
                Waiting::Undo(this) => file_task::over(undo::no_shell(&this.order, &error)),
                Waiting::Look(look) => {
                    let _ = look.reply.send(Err(file_task::unreachable_shell(&error)));
                    continue;
                }
                Waiting::Jobs(look, known) => {
                    self.look_at_jobs(look, known);
                    continue;
                }
                Waiting::Cancel(_) | Waiting::Forget(_) => continue,
            };
            let sender = self.news.clone();
            self.tasks.spawn(async move {
                let _ = sender.send(news).await;
            });
        }
    }

    /// The shim is gone. Returns whether it was the present one.
    pub(super) fn shell_lost(&mut self, instance: Uuid) -> bool {
        let present = matches!(&self.shell, Slot::Up(shell) if shell.instance() == instance);
        if present {
            self.had_shell = true;
            // What it left running must not wait for the next call to be ended.
            self.come(false);
        }
        present
    }

    /// Ends the shell and everything it runs.
    pub(super) async fn end_shell(&mut self) {
        match std::mem::replace(&mut self.shell, Slot::None) {
            Slot::Up(shell) => shell.shutdown().await,
            Slot::Coming { looked, .. } => {
                // One that is just being started would come up behind our back.
                let _ = looked.await;
                shell_task::end_leftover(self.session, &self.context).await;
            }
            Slot::None => shell_task::end_leftover(self.session, &self.context).await,
        }
    }

    /// Process id of the shim.
    pub(super) fn shim_pid(&self) -> Option<u32> {
        match &self.shell {
            Slot::Up(shell) => Some(shell.pid()),
            Slot::None | Slot::Coming { .. } => None,
        }
    }

    /// Ends every task; running commands go on in the shim.
    pub(super) fn drop_tasks(&mut self) {
        self.tasks.abort_all();
        self.request = None;
        self.waiting.clear();
        self.shell = Slot::None;
    }

    /// As [`Self::drop_tasks`], for good.
    pub(super) fn stop(mut self) {
        self.drop_tasks();
    }
}

fn job_of(machine: &Machine, call: CallId) -> Option<CallJob> {
    let found = machine.call(call)?;
    Some(CallJob {
        call,
        tool: found.tool.clone(),
        input: found.runs()?.clone(),
        facts: machine.facts(),
        mode: machine.mode(),
        jobs: machine.jobs().all().cloned().collect(),
        session_rules: machine.session_rules().map(str::to_owned).collect(),
        entered: machine.is_entered(call),
        restart_follows: machine.restart_follows(call),
        run: None,
    })
}
