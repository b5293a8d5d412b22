//! Random kills over scripted sessions, and what must hold after them.
//!
//! Each session has a `driver` that sends prompts and answers questions, again and again until the daemon has said that
//! it has them; a model that asks for commands which each leave their own mark in a file; and `agentctl attach` watching.
//! Meanwhile daemon, shims and watchers are killed. After each round of kills everybody finishes what is open, and
//! `check` compares what was acknowledged, what the log says and what ran.

mod check;
mod driver;
mod model;

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use proto::ids::SessionId;

use crate::daemon::Daemon;
use crate::machine::Machine;
use crate::model_server::ModelServer;
use crate::processes::{self, Process};
use crate::random::Random;
use crate::{binaries, wait};
use driver::Driver;

/// Sessions at work at the same time: more than the processors of a small machine.
const SESSIONS: usize = 3;

/// Kills between two checks.
const ROUND: usize = 20;

/// Longest pause before a kill, in milliseconds: about the length of a scripted turn, so that every part of it is met.
const PAUSE_MS: u64 = 120;

/// Longest time without a daemon, in milliseconds: commands end meanwhile.
const ABSENCE_MS: u64 = 40;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Daemon,
    Shim,
    Watcher,
}

/// What may be killed at once, the more usual accidents more often.
const CHOICES: [&[Victim]; 8] = [
    &[Victim::Daemon],
    &[Victim::Daemon],
    &[Victim::Shim],
    &[Victim::Shim],
    &[Victim::Watcher],
    &[Victim::Daemon, Victim::Shim],
    &[Victim::Daemon, Victim::Watcher],
    &[Victim::Shim, Victim::Watcher],
];

/// What a soak did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Kills, a pair counted once.
    pub kills: usize,
    /// Prompts that were acknowledged, and answered.
    pub prompts: usize,
    /// Answers to questions that were acknowledged.
    pub answers: usize,
    /// Calls with a result.
    pub calls: usize,
    /// Of these, calls whose outcome nobody knows.
    pub unknown: usize,
}

struct Soak {
    machine: Machine,
    daemon: Option<Daemon>,
    sessions: Vec<SessionId>,
    watchers: Vec<Watcher>,
    random: Random,
    tally: Tally,
}

/// An `agentctl attach` that writes what it sees into a file.
struct Watcher {
    session: SessionId,
    child: Child,
    file: PathBuf,
}

/// Kills `kills` times and checks after each round.
///
/// # Panics
/// When anything acknowledged is missing, ran twice, or was left behind.
pub fn run(kills: usize, seed: u64) -> Tally {
    let server = ModelServer::start();
    server.answer_with(model::answer);
    server.expect_kills();
    server.check_only();
    let machine = Machine::with_model(&server.url());
    let daemon = Daemon::start(&machine);
    let mut client = daemon.client(&machine);
    let sessions: Vec<SessionId> = (0..SESSIONS).map(|_| client.create(&machine)).collect();
    drop(client);
    let mut drivers: Vec<Driver> =
        sessions.iter().enumerate().map(|(number, id)| Driver::new(*id, number, seed)).collect();
    let random = Random::new(seed);
    let mut soak =
        Soak { machine, daemon: Some(daemon), sessions, watchers: Vec::new(), random, tally: Tally::default() };
    soak.start_watchers();
    let mut left = kills;
    // The last round has no kill: every session must be usable.
    loop {
        soak.round(left.min(ROUND), &mut drivers);
        if left == 0 {
            break;
        }
        left -= left.min(ROUND);
        eprintln!("soak: {} of {kills} kills, {:?}", soak.tally.kills, soak.tally);
    }
    for driver in &drivers {
        soak.tally.prompts += driver.accepted.len();
        soak.tally.answers += driver.answered.len();
    }
    soak.watchers.into_iter().for_each(Watcher::kill);
    soak.tally
}

impl Soak {
    fn round(&mut self, kills: usize, drivers: &mut [Driver]) {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (stop, socket, endpoint) = (&stop, self.machine.socket(), self.machine.endpoint());
            for driver in drivers.iter_mut() {
                let (socket, endpoint) = (socket.clone(), endpoint.clone());
                scope.spawn(move || driver.drive(&socket, &endpoint, stop));
            }
            for _ in 0..kills {
                thread::sleep(Duration::from_millis(self.random.below(PAUSE_MS)));
                self.kill_something();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let mut client = self.daemon.as_ref().expect("a daemon runs").client(&self.machine);
        for driver in drivers.iter() {
            let log = client.log(driver.session);
            let (calls, unknown) = check::session(driver, &log, &self.machine);
            if kills == 0 {
                self.tally.calls += calls;
                self.tally.unknown += unknown;
            }
        }
        check::database(&self.machine);
        check::processes(&self.machine, &self.sessions);
    }

    fn kill_something(&mut self) {
        let victims = *self.random.pick(&CHOICES);
        for victim in victims {
            match victim {
                Victim::Daemon => {
                    self.daemon.take().expect("a daemon runs").kill();
                }
                Victim::Shim => {
                    let shims = shims(&self.machine);
                    if !shims.is_empty() {
                        processes::kill_hard(self.random.pick(&shims).pid);
                    }
                }
                Victim::Watcher => {
                    let index = usize::try_from(self.random.below(SESSIONS as u64)).expect("an index");
                    let watcher = &self.watchers[index];
                    processes::kill_hard(i32::try_from(watcher.child.id()).expect("a pid"));
                }
            }
        }
        self.tally.kills += 1;
        if self.daemon.is_none() {
            thread::sleep(Duration::from_millis(self.random.below(ABSENCE_MS)));
            self.daemon = Some(Daemon::start(&self.machine));
        }
        self.start_watchers();
    }

    /// Starts the watchers that are gone, after a look at what they saw.
    fn start_watchers(&mut self) {
        for (index, session) in self.sessions.clone().into_iter().enumerate() {
            match self.watchers.get_mut(index) {
                None => self.watchers.push(Watcher::start(&self.machine, session)),
                Some(watcher) => {
                    if watcher.child.try_wait().expect("it is our child").is_some() {
                        check::watched(&watcher.file);
                        *watcher = Watcher::start(&self.machine, session);
                    }
                }
            }
        }
    }
}

/// The shims of a machine.
fn shims(machine: &Machine) -> Vec<Process> {
    let is_shim = |process: &Process| process.argv.get(1).is_some_and(|argument| argument == "shim");
    machine.processes().into_iter().filter(is_shim).collect()
}

impl Watcher {
    fn start(machine: &Machine, session: SessionId) -> Self {
        // Under the directory that every test must leave empty: a watcher's own file is removed after the look at it.
        let file = machine.root().join(format!("cache/{}.jsonl", uuid::Uuid::new_v4().simple()));
        let mut command: Command = machine.command(&binaries::agentctl());
        command.args(["attach", &session.to_string(), "--json", "--read-only", "--no-start", "--since", "0"]);
        let out = File::create(&file).expect("a file");
        let child = command.stdin(Stdio::null()).stdout(out).stderr(Stdio::null()).spawn().expect("agentctl runs");
        Self { session, child, file }
    }

    fn kill(mut self) {
        let _ = self.child.kill();
        self.child.wait().expect("it is our child");
        check::watched(&self.file);
        let _ = fs::remove_file(&self.file);
        let session = self.session;
        wait::until("the watcher's end", || {
            (!processes::alive(i32::try_from(self.child.id()).ok()?)).then_some(session)
        });
    }
}
