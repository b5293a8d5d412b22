//! The connection to one shim: an actor that owns the socket, opens it again when it drops, and asks again whatever was
//! open then. Every request of the protocol may be asked twice.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use proto::ids::CallId;
use proto::shim::frame::{self, Decoder, Frame};
use proto::shim::reply::{FromShim, Reply};
use proto::shim::request::{Request, ToShim};
use proto::shim::start::Accounting;
use proto::shim::{VERSION, VERSION_MIN};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::launch::Address;
use super::{OutputChunk, RunResult, ShellError};

/// Requests that may wait for the actor; senders wait beyond it.
const INBOX: usize = 64;

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// How long a shim may take for its welcome.
const WELCOME_WAIT: Duration = Duration::from_secs(5);

/// Pause before a dropped connection is opened again, so that two daemons that displace each other do not spin.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

/// Tries before a shim that can be reached but does not welcome is given up.
const RECONNECT_TRIES: u32 = 50;

/// What the shim said of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) instance: Uuid,
    pub(super) pid: u32,
    pub(super) accounting: Accounting,
}

type Answer = Result<(Reply, Bytes), ShellError>;

/// What the actor is asked.
#[derive(Debug)]
enum Message {
    Ask { request: Request, body: Bytes, answer: oneshot::Sender<Answer> },
    Run { call: CallId, run: OpenRun },
}

/// A command whose end is awaited.
#[derive(Debug)]
struct OpenRun {
    request: Request,
    command: Bytes,
    output: mpsc::Sender<OutputChunk>,
    /// Output up to here was received.
    offset: u64,
    done: oneshot::Sender<Result<RunResult, ShellError>>,
}

/// The handle on the actor.
#[derive(Debug)]
pub(super) struct Client {
    inbox: mpsc::Sender<Message>,
    about: About,
    lost: watch::Receiver<bool>,
    /// Counts the times that something may have happened to a job.
    jobs: watch::Receiver<u64>,
    _actor: JoinSet<()>,
}

impl Client {
    /// Connects; [`ShellError::Lost`] when nobody listens.
    pub(super) async fn connect(address: Address) -> Result<Self, ShellError> {
        let (link, about) = Link::open(&address).await?;
        let (inbox, messages) = mpsc::channel(INBOX);
        let (lost, lost_seen) = watch::channel(false);
        let (jobs, jobs_seen) = watch::channel(0);
        let actor = Actor { address, about, messages, asks: HashMap::new(), runs: HashMap::new(), next: 1, jobs };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            actor.serve(link).await;
            // The handles may be gone already; then nobody waits.
            let _ = lost.send(true);
        });
        Ok(Self { inbox, about, lost: lost_seen, jobs: jobs_seen, _actor: tasks })
    }

    pub(super) fn about(&self) -> About {
        self.about
    }

    pub(super) async fn ask(&self, request: Request, body: Bytes) -> Answer {
        let (answer, answered) = oneshot::channel();
        let message = Message::Ask { request, body, answer };
        self.inbox.send(message).await.map_err(|_| ShellError::Lost)?;
        match answered.await.map_err(|_| ShellError::Lost)?? {
            (Reply::Refused { code, message }, _) => Err(ShellError::Refused { code, message }),
            answer => Ok(answer),
        }
    }

    pub(super) async fn run(
        &self,
        call: CallId,
        request: Request,
        command: Bytes,
        output: mpsc::Sender<OutputChunk>,
    ) -> Result<RunResult, ShellError> {
        let (done, ended) = oneshot::channel();
        let run = OpenRun { request, command, output, offset: 0, done };
        self.inbox.send(Message::Run { call, run }).await.map_err(|_| ShellError::Lost)?;
        ended.await.map_err(|_| ShellError::Lost)?
    }

    /// Changes when a job has ended or is silent, or when that may have been missed.
    pub(super) fn jobs(&self) -> watch::Receiver<u64> {
        self.jobs.clone()
    }

    pub(super) async fn lost(&self) {
        // An actor that ended without a word is lost as well.
        let _ = self.lost.clone().wait_for(|lost| *lost).await;
    }
}

/// A request whose answer is awaited.
#[derive(Debug)]
struct OpenAsk {
    request: Request,
    body: Bytes,
    answer: oneshot::Sender<Answer>,
}

#[derive(Debug)]
struct Actor {
    address: Address,
    about: About,
    messages: mpsc::Receiver<Message>,
    asks: HashMap<u64, OpenAsk>,
    /// By call; the number is that of its request, which only a refusal answers.
    runs: HashMap<CallId, (u64, OpenRun)>,
    next: u64,
    jobs: watch::Sender<u64>,
}

impl Actor {
    /// Returns when the shim is gone or nobody holds a handle.
    async fn serve(mut self, mut link: Link) {
        loop {
            match self.serve_link(&mut link).await {
                Served::Unheld => return,
                Served::Dropped => {}
            }
            match self.reconnect().await {
                Ok(fresh) => link = fresh,
                Err(_) => return,
            }
        }
    }

    async fn serve_link(&mut self, link: &mut Link) -> Served {
        loop {
            let sent = tokio::select! {
                message = self.messages.recv() => match message {
                    Some(message) => self.send(link, message).await,
                    None => return Served::Unheld,
                },
                frames = link.receive() => frames.map(|frames| self.take_all(frames)),
            };
            if sent.is_err() {
                return Served::Dropped;
            }
        }
    }

    async fn send(&mut self, link: &mut Link, message: Message) -> io::Result<()> {
        let id = self.next;
        self.next += 1;
        match message {
            Message::Ask { request, body, answer } => {
                let sent = link.send(id, request.clone(), &body).await;
                self.asks.insert(id, OpenAsk { request, body, answer });
                sent
            }
            Message::Run { call, run } => {
                let sent = link.send(id, run.request.clone(), &run.command).await;
                self.runs.insert(call, (id, run));
                sent
            }
        }
    }

    fn take_all(&mut self, frames: Vec<Frame>) {
        for frame in frames {
            // A header that this daemon cannot read is news of a later version.
            if let Ok(header) = frame.header::<FromShim>() {
                self.take(header, Bytes::from(frame.body));
            }
        }
    }

    fn take(&mut self, header: FromShim, body: Bytes) {
        if let Some(id) = header.re {
            if let Some(ask) = self.asks.remove(&id) {
                // The asker may have stopped waiting.
                let _ = ask.answer.send(Ok((header.reply, body)));
            } else if let Reply::Refused { code, message } = header.reply {
                let refused = self.runs.iter().find(|(_, (run, _))| *run == id).map(|(call, _)| *call);
                if let Some((_, run)) = refused.and_then(|call| self.runs.remove(&call)) {
                    let _ = run.done.send(Err(ShellError::Refused { code, message }));
                }
            }
            return;
        }
        match header.reply {
            Reply::Output { call, offset } => {
                if let Some((_, run)) = self.runs.get_mut(&call) {
                    run.offset = offset + body.len() as u64;
                    // A receiver without room misses this piece; it is in the spool.
                    let _ = run.output.try_send(OutputChunk { offset, bytes: body });
                }
            }
            Reply::Finished { call, end } => {
                if let Some((_, run)) = self.runs.remove(&call) {
                    let _ = run.done.send(Ok(RunResult { end, body }));
                }
            }
            Reply::JobsChanged {} => self.jobs.send_modify(|count| *count += 1),
            Reply::Welcome { .. }
            | Reply::Done {}
            | Reply::Refused { .. }
            | Reply::Restarted { .. }
            | Reply::Data { .. }
            | Reply::State { .. }
            | Reply::File {}
            | Reply::JobStarted { .. }
            | Reply::Jobs { .. }
            | Reply::Env { .. }
            | Reply::Unknown => {}
        }
    }

    /// Opens the connection again and asks again what is open.
    async fn reconnect(&mut self) -> Result<Link, ShellError> {
        for _ in 0..RECONNECT_TRIES {
            tokio::time::sleep(RECONNECT_PAUSE).await;
            let (mut link, about) = match Link::open(&self.address).await {
                Ok(open) => open,
                Err(ShellError::Lost) => return Err(ShellError::Lost),
                Err(_) => continue,
            };
            if about.instance != self.about.instance {
                return Err(ShellError::Lost);
            }
            if self.ask_again(&mut link).await.is_ok() {
                self.jobs.send_modify(|count| *count += 1);
                return Ok(link);
            }
        }
        Err(ShellError::Lost)
    }

    async fn ask_again(&mut self, link: &mut Link) -> io::Result<()> {
        // In the order they were asked: what runs comes before what waits.
        let mut runs: Vec<&mut (u64, OpenRun)> = self.runs.values_mut().collect();
        runs.sort_by_key(|(id, _)| *id);
        for (id, run) in runs {
            if let Request::Run { offset, .. } = &mut run.request {
                *offset = run.offset;
            }
            link.send(*id, run.request.clone(), &run.command).await?;
        }
        let mut asks: Vec<_> = self.asks.iter().collect();
        asks.sort_by_key(|(id, _)| **id);
        for (id, ask) in asks {
            link.send(*id, ask.request.clone(), &ask.body).await?;
        }
        Ok(())
    }
}

/// Why serving a connection ended.
enum Served {
    /// Nobody holds a handle any more.
    Unheld,
    /// The connection dropped.
    Dropped,
}

/// An open, welcomed connection.
#[derive(Debug)]
struct Link {
    stream: UnixStream,
    decoder: Decoder,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

impl Link {
    async fn open(address: &Address) -> Result<(Self, About), ShellError> {
        let stream = match UnixStream::connect(&address.socket).await {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Err(ShellError::Lost);
            }
            Err(error) => return Err(ShellError::Protocol(error.to_string())),
        };
        let mut link = Self { stream, decoder: Decoder::default(), buffer: vec![0; READ_BYTES], out: Vec::new() };
        let about = tokio::time::timeout(WELCOME_WAIT, link.greet(address)).await;
        let about = about.map_err(|_| ShellError::Protocol("no welcome in time".to_owned()))??;
        Ok((link, about))
    }

    async fn greet(&mut self, address: &Address) -> Result<About, ShellError> {
        let hello = Request::Hello { token: address.token.clone(), min: VERSION_MIN, max: VERSION };
        let nonsense = |error: &dyn std::fmt::Display| ShellError::Protocol(error.to_string());
        self.send(0, hello, &[]).await.map_err(|error| nonsense(&error))?;
        loop {
            let frames = self.receive().await.map_err(|error| nonsense(&error))?;
            let Some(frame) = frames.first() else { continue };
            let header: FromShim = frame.header().map_err(|error| nonsense(&error))?;
            return match header.reply {
                Reply::Welcome { instance, pid, accounting, .. } => Ok(About { instance, pid, accounting }),
                Reply::Refused { code, message } => Err(ShellError::Refused { code, message }),
                reply => Err(super::unexpected(&reply)),
            };
        }
    }

    async fn send(&mut self, id: u64, request: Request, body: &[u8]) -> io::Result<()> {
        self.out.clear();
        frame::encode(&mut self.out, &ToShim { id, request }, body).map_err(io::Error::other)?;
        self.stream.write_all(&self.out).await
    }

    /// Frames that are here; at least one read. Cancel-safe: what was read is in the decoder.
    async fn receive(&mut self) -> io::Result<Vec<Frame>> {
        let count = self.stream.read(&mut self.buffer).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.decoder.push(&self.buffer[..count]);
        let mut frames = Vec::new();
        while let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
            frames.push(frame);
        }
        Ok(frames)
    }
}
