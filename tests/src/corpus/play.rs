//! One session's script at the model server, and the stage it is played on.
//!
//! The server's handler finds the script by the session's first prompt, hands it each request and sends what it says.
//! Between two steps the script may look at the machine: nothing runs then, as the model is "thinking".

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proto::event::TurnOutcome;
use proto::ids::{Seq, SessionId};
use proto::request::{ApproveMode, ChangeSession, Request, SessionChange};

use crate::client::Client;
use crate::daemon::Daemon;
use crate::machine::Machine;
use crate::model_server::{Block, ModelServer, Received, Reply, ToolResult};

/// Longest turn of a case: several steps that each run into the longest deadline of the corpus.
const TURN_PATIENCE: Duration = Duration::from_secs(120);

/// What one step's calls were answered with.
#[derive(Clone, Debug)]
pub struct Taken {
    /// One result a call, in the order of the calls.
    pub results: Vec<ToolResult>,
    /// From sending the calls to receiving the answers.
    pub wall: Duration,
}

/// Called with a step's number when it was answered, before the next is sent.
pub type Between = Box<dyn FnMut(usize, &Taken) + Send>;

/// One session's script.
pub struct Play {
    steps: Vec<Vec<Block>>,
    between: Between,
    next: usize,
    sent: Option<(Instant, Vec<String>)>,
    taken: Vec<Taken>,
}

impl fmt::Debug for Play {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Play").field("next", &self.next).field("steps", &self.steps.len()).finish_non_exhaustive()
    }
}

impl Play {
    fn answer(&mut self, request: &Received) -> Reply {
        if let Some((sent, ids)) = self.sent.take() {
            let found = request.results();
            // In the order of the calls, whatever order the results came in.
            let find = |id: &String| found.iter().find(|result| result.tool_use_id == *id).cloned();
            let taken = Taken { results: ids.iter().filter_map(find).collect(), wall: request.at - sent };
            (self.between)(self.taken.len(), &taken);
            self.taken.push(taken);
        }
        let Some(blocks) = self.steps.get(self.next) else { return Reply::text("That is all.") };
        self.next += 1;
        let id = |block: &Block| match block {
            Block::ToolUse { id, .. } => Some(id.clone()),
            Block::Text(_) | Block::Thinking(_) | Block::Other(_) => None,
        };
        self.sent = Some((Instant::now(), blocks.iter().filter_map(id).collect()));
        Reply::blocks(blocks.clone())
    }
}

type Plays = Arc<Mutex<HashMap<String, Arc<Mutex<Play>>>>>;

/// A daemon and a model server on which many sessions play.
#[derive(Debug)]
pub struct Stage {
    // Dropped in this order: the daemon ends before its machine proves that nothing is left.
    daemon: Daemon,
    /// The machine.
    pub machine: Machine,
    plays: Plays,
    _server: ModelServer,
}

impl Stage {
    /// A stage with configuration overrides.
    #[must_use]
    pub fn new(overrides: &[(&str, &str)]) -> Self {
        let server = ModelServer::start();
        let plays = Plays::default();
        let handler_plays = Arc::clone(&plays);
        server.answer_with(move |request| {
            let play = handler_plays.lock().expect("no player panics with it").get(&request.first_prompt()).cloned();
            let play = play.unwrap_or_else(|| panic!("no play is called {:?}", request.first_prompt()));
            play.lock().expect("one request at a time").answer(request)
        });
        let mut machine = Machine::with_model(&server.url());
        for (key, value) in overrides {
            machine.configure(key, value);
        }
        let daemon = Daemon::start(&machine);
        Self { daemon, machine, plays, _server: server }
    }

    /// A client of this stage's daemon.
    #[must_use]
    pub fn client(&self) -> Client {
        let mut client = self.daemon.client(&self.machine);
        client.patience(TURN_PATIENCE);
        client
    }

    /// Plays a session from its prompt to its end, removes it, and returns what each step was answered with.
    ///
    /// # Panics
    /// When the turn does not end well.
    pub fn play(&self, prompt: &str, cwd: &Path, steps: Vec<Vec<Block>>, between: Between) -> Vec<Taken> {
        let count = steps.len();
        let play = Arc::new(Mutex::new(Play { steps, between, next: 0, sent: None, taken: Vec::new() }));
        self.plays.lock().expect("no player panics with it").insert(prompt.to_owned(), Arc::clone(&play));
        let mut client = self.client();
        let session = client.create_in(&self.machine, cwd);
        client.attach(&self.machine, session, Seq(0));
        client.prompt(&self.machine, session, prompt, ApproveMode::All);
        let end = client.until_turn_ended().outcome;
        self.remove(&mut client, session);
        assert_eq!(end, TurnOutcome::Done {}, "the turn of {prompt:?}");
        let taken = play.lock().expect("the turn is over").taken.clone();
        assert_eq!(taken.len(), count, "each step of {prompt:?} is answered");
        taken
    }

    fn remove(&self, client: &mut Client, session: SessionId) {
        let change = ChangeSession { session: session.to_string(), change: SessionChange::Remove {} };
        client.call(Request::ChangeSession(change)).expect("a finished session can be removed");
    }
}
