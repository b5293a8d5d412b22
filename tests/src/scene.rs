//! The usual scene of a claim: a model server, a machine, a daemon, one session and a client attached to it.

use proto::event::{Event, EventBody, TurnEnded, TurnOutcome};
use proto::ids::{PromptId, Seq, SessionId};
use proto::request::ApproveMode;

use crate::client::Client;
use crate::daemon::Daemon;
use crate::machine::Machine;
use crate::model_server::ModelServer;

/// Everything at once. Dropped in this order, so that each finds what it needs.
#[derive(Debug)]
pub struct Scene {
    /// Attached to the session from its first event.
    pub client: Client,
    /// The session.
    pub session: SessionId,
    daemon: Option<Daemon>,
    /// The machine.
    pub machine: Machine,
    /// The model server.
    pub server: ModelServer,
}

impl Scene {
    /// A scene with the default configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// A scene with configuration overrides.
    #[must_use]
    pub fn with(overrides: &[(&str, &str)]) -> Self {
        let server = ModelServer::start();
        let mut machine = Machine::with_model(&server.url());
        for (key, value) in overrides {
            machine.configure(key, value);
        }
        let daemon = Daemon::start(&machine);
        let mut client = daemon.client(&machine);
        let session = client.create(&machine);
        client.attach(&machine, session, Seq(0));
        Self { client, session, daemon: Some(daemon), machine, server }
    }

    /// The daemon.
    ///
    /// # Panics
    /// When it was killed and not started again.
    #[must_use]
    pub fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("a daemon runs")
    }

    /// Another client, attached from the first event, under its own name.
    #[must_use]
    pub fn another(&self, program: &str, terminal: &str) -> Client {
        let mut client = Client::connect(&self.machine.socket()).expect("the daemon accepts");
        client.hello(program, terminal);
        client.attach(&self.machine, self.session, Seq(0));
        client
    }

    /// Sends a prompt.
    pub fn prompt(&mut self, text: &str, approve: ApproveMode) -> PromptId {
        self.client.prompt(&self.machine, self.session, text, approve)
    }

    /// Sends a prompt whose calls are all approved, and waits for its turn's end.
    pub fn turn(&mut self, text: &str) -> TurnEnded {
        self.prompt(text, ApproveMode::All);
        self.client.until_turn_ended()
    }

    /// As [`Scene::turn`], for a turn that ends well.
    ///
    /// # Panics
    /// When it does not.
    pub fn good_turn(&mut self, text: &str) {
        let outcome = self.turn(text).outcome;
        assert_eq!(outcome, TurnOutcome::Done {});
    }

    /// Kills the daemon at once.
    ///
    /// # Panics
    /// When it does not run.
    pub fn kill_daemon(&mut self) {
        self.daemon.take().expect("a daemon runs").kill();
    }

    /// As [`Scene::start_daemon`], for a daemon that stopped by itself.
    ///
    /// # Panics
    /// When it did not stop.
    pub fn start_daemon_after_stop(&mut self) {
        let status = self.daemon.take().expect("a daemon ran").wait();
        assert!(status.success(), "the daemon stopped with {status}");
        self.start_daemon();
    }

    /// Starts a daemon again, with a client attached from the first event.
    pub fn start_daemon(&mut self) {
        let daemon = Daemon::start(&self.machine);
        self.client = daemon.client(&self.machine);
        self.daemon = Some(daemon);
        self.client.attach(&self.machine, self.session, Seq(0));
    }

    /// The session's whole log.
    #[must_use]
    pub fn log(&mut self) -> Vec<Event> {
        self.client.log(self.session)
    }

    /// The bodies of the session's log for which `pick` has a value.
    #[must_use]
    pub fn logged<T>(&mut self, pick: impl FnMut(&EventBody) -> Option<T>) -> Vec<T> {
        let log = self.log();
        log.iter().map(|event| &event.body).filter_map(pick).collect()
    }
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}
