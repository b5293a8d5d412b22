//! Background commands in the session: what is known of them, when the model hears of them, and what wakes it.
//!
//! A job's end is a row before anything else; what the model is to be told is part of that row and waits until its next
//! request, or begins a turn by itself when none runs. So it is told once, whatever crashes. A turn that begins so has no
//! prompt: it may do what the prompt's turn might that started the job, but `--approve all` does not reach so far.
//!
//! Invariant: [`WAKES_MAX`] such turns in a row end with a question to nobody: only a prompt lets them begin again.

use std::collections::{BTreeSet, VecDeque};

use proto::ids::{CallId, JobId, Timestamp, TurnId};
use proto::request::ApproveMode;

use super::call::CallState;
use super::decide::Run;
use super::effect::Effect;
use super::state::{Machine, Phase, Turn};
use crate::store::entry::Entry;
use crate::store::job::{JobEnd, JobSilence, JobStart, Tell};
use crate::tools;
use crate::tools::background::{Cause, NewJob, Report, silence_text};
use crate::tools::call::Parsed;

/// Turns in a row that begin without a prompt. A build, its fix and its next try are a few; a job that starts its
/// successor for ever must not spend money for ever.
pub(super) const WAKES_MAX: u32 = 10;

/// Jobs that are over and still listed: as many as the shim keeps.
const ENDED_KEPT: usize = 32;

/// The session's background commands: a part of the fold.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    running: Vec<Running>,
    ended: VecDeque<(JobStart, JobEnd)>,
    /// All there ever were: what is known is not recorded again.
    known: BTreeSet<JobId>,
    untold: Vec<Untold>,
    /// Told since the last prompt: unknown again when that is taken back.
    told: Vec<Untold>,
    /// Turns without a prompt since the last prompt.
    wakes: u32,
    /// The user was told that there will be no more.
    spent: bool,
    archived: bool,
}

#[derive(Clone, Debug)]
struct Running {
    start: JobStart,
    stop_asked: bool,
    silence_told: bool,
}

/// Something that the model is to be told.
#[derive(Clone, Debug)]
struct Untold {
    text: String,
    wakes: bool,
    approve: ApproveMode,
}

impl Jobs {
    /// Those that run, oldest first.
    pub fn running(&self) -> impl Iterator<Item = &JobStart> {
        self.running.iter().map(|running| &running.start)
    }

    /// The last ones that are over, oldest first.
    pub fn ended(&self) -> impl Iterator<Item = &(JobStart, JobEnd)> {
        self.ended.iter()
    }

    /// Every job that is still spoken of.
    pub fn all(&self) -> impl Iterator<Item = &JobStart> {
        self.ended.iter().map(|(start, _)| start).chain(self.running())
    }

    /// A job's end is on disk.
    #[must_use]
    pub fn has_ended(&self, job: JobId) -> bool {
        self.known.contains(&job) && !self.running.iter().any(|running| running.start.job == job)
    }

    /// Whether it was recorded that this job is silent, or it does not run.
    #[must_use]
    pub fn knows_silence(&self, job: JobId) -> bool {
        self.running.iter().find(|running| running.start.job == job).is_none_or(|running| running.silence_told)
    }

    pub(super) fn started(&mut self, start: &JobStart) {
        self.known.insert(start.job);
        self.running.push(Running { start: start.clone(), stop_asked: false, silence_told: false });
    }

    pub(super) fn ended_now(&mut self, end: &JobEnd) {
        let Some(at) = self.running.iter().position(|running| running.start.job == end.job) else { return };
        let Running { start, .. } = self.running.remove(at);
        self.tell(end.tell, &end.text, start.approve);
        self.ended.push_back((start, end.clone()));
        if self.ended.len() > ENDED_KEPT {
            self.ended.pop_front();
        }
    }

    pub(super) fn silent(&mut self, silence: &JobSilence) {
        let Some(running) = self.running.iter_mut().find(|running| running.start.job == silence.job) else { return };
        running.silence_told = true;
        let approve = running.start.approve;
        self.tell(Tell::Wake, &silence.text, approve);
    }

    pub(super) fn stop_asked(&mut self, job: JobId) {
        if let Some(running) = self.running.iter_mut().find(|running| running.start.job == job) {
            running.stop_asked = true;
        }
    }

    fn tell(&mut self, tell: Tell, text: &str, approve: ApproveMode) {
        let wakes = match tell {
            Tell::Wake => true,
            Tell::Later => false,
            Tell::Never => return,
        };
        self.untold.push(Untold { text: text.to_owned(), wakes, approve });
    }

    /// Everything the model does not know, which it knows from now on.
    pub(super) fn take_untold(&mut self) -> Option<String> {
        let texts: Vec<&str> = self.untold.iter().map(|untold| untold.text.as_str()).collect();
        let text = (!texts.is_empty()).then(|| texts.join("\n\n"));
        self.told.append(&mut self.untold);
        text
    }

    /// The last prompt and what followed left the history.
    pub(super) fn rewound(&mut self) {
        self.untold.splice(..0, self.told.drain(..));
    }

    pub(super) fn prompted(&mut self) {
        self.told.clear();
        self.wakes = 0;
        self.spent = false;
    }

    pub(super) fn woken(&mut self) {
        self.wakes += 1;
    }

    pub(super) fn wakes_spent(&mut self) {
        self.spent = true;
    }

    pub(super) fn archive(&mut self) {
        self.archived = true;
    }

    /// What holds for approvals in the turn that begins now, if one is to begin.
    fn wake(&self) -> Option<ApproveMode> {
        let waking = || self.untold.iter().filter(|untold| untold.wakes);
        if self.archived || waking().next().is_none() {
            return None;
        }
        // `--approve all` was said of one prompt's turn, by somebody who may not be there any more.
        let nobody = waking().all(|untold| untold.approve == ApproveMode::Deny);
        Some(if nobody { ApproveMode::Deny } else { ApproveMode::Ask })
    }
}

impl Machine {
    /// The session's background commands.
    #[must_use]
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// The command that runs in the foreground.
    #[must_use]
    pub fn running_command(&self) -> Option<CallId> {
        let Phase::Calling(_, calling) = &self.phase else { return None };
        let running = calling.calls.iter().find(|call| matches!(call.state, CallState::Running { .. }))?;
        let parsed = tools::call::parse(&running.tool, running.runs()?);
        matches!(parsed, Ok(Parsed::Command(_))).then_some(running.id)
    }

    /// A turn begins without a prompt.
    pub(super) fn begin_woken(&mut self, id: TurnId, approve: ApproveMode, began: Timestamp) {
        self.jobs.woken();
        self.tell_ran();
        self.tell_jobs();
        self.tell_mode();
        self.forget_raised();
        self.phase = Phase::Ready(Turn { started_at: began, ..Turn::new(id, None, approve, String::new()) });
    }

    /// What the model does not know yet enters the history.
    pub(super) fn tell_jobs(&mut self) {
        if let Some(text) = self.jobs.take_untold() {
            self.push_note(&text);
        }
    }
}

impl Run<'_> {
    /// Begins a turn for what happened to jobs; only when nothing else runs or waits.
    pub(super) fn wake(&mut self) {
        let Some(approve) = self.machine.jobs.wake() else { return };
        let wakes = self.machine.jobs.wakes;
        if wakes < WAKES_MAX {
            let (turn, at) = (TurnId(self.fresh_id()), self.now);
            self.record(Entry::TurnWoken { turn, approve, at });
            self.send();
        } else if !self.machine.jobs.spent {
            self.record(Entry::WakesSpent { wakes });
        }
    }

    /// Before a request: what the model does not know yet goes with it.
    pub(super) fn tell_before_request(&mut self, turn: TurnId) {
        if !self.machine.jobs.untold.is_empty() {
            self.record(Entry::JobsTold { turn });
        }
    }

    pub(super) fn job_started(&mut self, call: CallId, new: NewJob) {
        if self.machine.jobs.known.contains(&new.job) {
            return;
        }
        let shim = match self.machine.call(call).map(|call| &call.state) {
            Some(CallState::Running { shim, .. }) => *shim,
            Some(
                CallState::Waiting
                | CallState::Assessing
                | CallState::Asking(_)
                | CallState::Approved(_)
                | CallState::Done(_),
            )
            | None => self.machine.shim,
        };
        let approve = self.machine.turn().map_or(ApproveMode::Ask, |turn| turn.approve);
        self.record(Entry::JobStarted(JobStart {
            job: new.job,
            call,
            command: new.command,
            description: new.description,
            cwd: new.cwd,
            started_at: self.now,
            deadline_ms: millis(new.deadline),
            silence_ms: new.silence.map_or(0, millis),
            shim,
            approve,
            moved: new.moved,
        }));
        // It may have ended before it was known here.
        self.effect(Effect::SyncJobs);
    }

    pub(super) fn job_ended(&mut self, job: JobId, report: Report) {
        if let Some(running) = self.machine.jobs.running.iter().find(|running| running.start.job == job) {
            let tell = match (report.cause, running.stop_asked) {
                // The user did it, or a stop of everything; the model need not be woken for that.
                (Cause::Asked, true) | (Cause::Shell, _) => Tell::Later,
                // Its own `job_stop`, whose result says so.
                (Cause::Asked, false) => Tell::Never,
                (Cause::Own, _) => Tell::Wake,
            };
            let Report { outcome, duration_ms, output_bytes, spool, text, .. } = report;
            self.record(Entry::JobEnded(JobEnd { job, outcome, duration_ms, output_bytes, spool, text, tell }));
            self.next_turn();
        }
        if self.machine.jobs.has_ended(job) {
            self.effect(Effect::ForgetJob { job });
        }
    }

    pub(super) fn job_silent(&mut self, job: JobId, output_bytes: u64) {
        let running = self.machine.jobs.running.iter().find(|running| running.start.job == job);
        let Some(running) = running.filter(|running| !running.silence_told) else { return };
        let silence =
            JobSilence { job, silence_ms: running.start.silence_ms, text: silence_text(&running.start, output_bytes) };
        self.record(Entry::JobSilent(silence));
        self.next_turn();
    }

    pub(super) fn job_stop_asked(&mut self, job: JobId, by: String) {
        if self.machine.jobs.running.iter().any(|running| running.start.job == job) {
            self.record(Entry::JobStopAsked { job, by });
            self.effect(Effect::StopJob { job });
        }
    }

    pub(super) fn background_asked(&mut self, job: JobId, by: String) {
        if let Some(call) = self.machine.running_command() {
            self.record(Entry::BackgroundAsked { call, job, by });
            self.effect(Effect::BackgroundCall { call, job });
        }
    }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
