//! A blocking client of a shim, for its own tests and its bench; the program that includes it is its own shim when its
//! first argument is `shim`.

#![allow(dead_code, reason = "each program that includes this uses a part of it")]

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};
use proto::ids::{CallId, SessionId};
use proto::secret::{EnvVars, Secret};
use proto::shim::frame::{self, Decoder, Frame};
use proto::shim::outcome::RunEnd;
use proto::shim::reply::{FromShim, Reply};
use proto::shim::request::{Request, ToShim};
use proto::shim::start::{Limits, Start, Started, Wish};

/// How long an answer may take, in milliseconds.
const PATIENCE: u16 = 30_000;

/// A claim and its name; it is tried in both ways of accounting.
pub(crate) type Claim = (&'static str, fn(Wish));

/// The program: a shim when it is started as one, else a test harness for the claims.
pub(crate) fn try_claims(claims: &[Claim]) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "shim") {
        return shim::main();
    }
    let ways = [("cgroup", Wish::Auto), ("marks", Wish::Marks)];
    let named: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    for (name, claim) in claims {
        for (way, wish) in ways {
            let full = format!("{name}::{way}");
            if args.iter().any(|arg| arg == "--list") {
                if !args.iter().any(|arg| arg == "--ignored") {
                    println!("{full}: test");
                }
            } else if named.is_empty() || named.iter().any(|part| full.contains(part.as_str())) {
                // A claim that does not hold panics, which ends the program with its own status.
                claim(wish);
                println!("test {full} ... ok");
            }
        }
    }
    ExitCode::SUCCESS
}

/// A shim in a directory of its own; it is shut down when this is dropped.
pub(crate) struct Shim {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) start: Start,
    pub(crate) pid: u32,
}

impl Shim {
    pub(crate) fn launch(accounting: Wish) -> Self {
        Self::launch_with(accounting, |_| {})
    }

    pub(crate) fn launch_with(accounting: Wish, change: impl FnOnce(&mut Start)) -> Self {
        Self::launch_by(&mut Command::new("/proc/self/exe"), accounting, change)
    }

    /// A shim that this program starts.
    pub(crate) fn launch_by(program: &mut Command, accounting: Wish, change: impl FnOnce(&mut Start)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
        std::fs::create_dir(dir.path().join("work")).expect("a directory");
        let mut start = Start {
            session: SessionId::new(),
            cwd: path("work"),
            env: EnvVars(vec![
                ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
                ("HOME".to_owned(), path("work")),
                ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ]),
            socket: path("r/s"),
            state_dir: path("state"),
            token: Secret::new("token".to_owned()),
            limits: Limits::default(),
            secret_names: Vec::new(),
            accounting,
            extra_roots: Vec::new(),
        };
        change(&mut start);
        let mut child = program.arg("shim").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let mut bytes = Vec::new();
        frame::encode(&mut bytes, &start, &[]).expect("a frame");
        child.stdin.take().expect("a pipe").write_all(&bytes).expect("room");
        let mut answer = Vec::new();
        child.stdout.take().expect("a pipe").read_to_end(&mut answer).expect("an answer");
        child.wait().expect("an end");
        let mut decoder = Decoder::default();
        decoder.push(&answer);
        let frame = decoder.next_frame().expect("a frame").expect("a whole frame");
        let Started::Ready { pid, .. } = frame.header().expect("a header") else {
            panic!("not started: {}", String::from_utf8_lossy(&frame.header));
        };
        Self { dir, start, pid }
    }

    pub(crate) fn client(&self) -> Client {
        let mut client = self.stranger();
        let hello = Request::Hello { token: self.start.token.clone(), min: 1, max: 1 };
        let welcome = client.ask(hello, &[]).0;
        assert!(matches!(welcome, Reply::Welcome { .. }), "{welcome:?}");
        client
    }

    /// A connection that has not said hello.
    pub(crate) fn stranger(&self) -> Client {
        let stream = UnixStream::connect(&self.start.socket).expect("a socket");
        Client { stream, decoder: Decoder::default(), next: 1, buffer: vec![0; 256 * 1024], out: Vec::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.start.cwd).join(name)
    }

    pub(crate) fn is_alive(&self) -> bool {
        Path::new(&format!("/proc/{}", self.pid)).exists()
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        if self.is_alive() && UnixStream::connect(&self.start.socket).is_ok() {
            let mut client = self.client();
            client.send(Request::Shutdown {}, &[]);
            while client.receive().is_some() {}
        }
    }
}

/// A connection.
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    decoder: Decoder,
    next: u64,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

/// A command's result, with all the live output that came before it.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) end: RunEnd,
    pub(crate) body: Vec<u8>,
    pub(crate) live: Vec<(u64, Vec<u8>)>,
}

impl Done {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub(crate) fn send(&mut self, request: Request, body: &[u8]) -> u64 {
        let id = self.put(request, body);
        self.stream.write_all(&self.out).expect("a listener");
        self.out.clear();
        id
    }

    /// Sends a request with the next one.
    pub(crate) fn put(&mut self, request: Request, body: &[u8]) -> u64 {
        let id = self.next;
        self.next += 1;
        frame::encode(&mut self.out, &ToShim { id, request }, body).expect("a frame");
        id
    }

    /// The next frame; none when the shim hung up.
    pub(crate) fn receive(&mut self) -> Option<(FromShim, Vec<u8>)> {
        loop {
            if let Some(Frame { header, body }) = self.decoder.next_frame().expect("a frame") {
                return Some((serde_json::from_slice(&header).expect("a header"), body));
            }
            // A read that waits is woken in vain by the peer's taking of what was sent; a poll is not.
            let mut polled = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
            assert!(poll(&mut polled, PATIENCE).expect("a wait") > 0, "no answer");
            match self.stream.read(&mut self.buffer) {
                Ok(0) => return None,
                Ok(count) => self.decoder.push(&self.buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no answer: {error}"),
            }
        }
    }

    pub(crate) fn ask(&mut self, request: Request, body: &[u8]) -> (Reply, Vec<u8>) {
        let id = self.send(request, body);
        loop {
            let (header, body) = self.receive().expect("an answer");
            if header.re == Some(id) {
                return (header.reply, body);
            }
        }
    }

    pub(crate) fn begin(&mut self, call: CallId, command: &str, deadline_ms: u64) {
        let run = Request::Run { call, deadline_ms, head_bytes: 60_000, tail_bytes: 60_000, offset: 0 };
        self.send(run, command.as_bytes());
    }

    pub(crate) fn wait(&mut self, call: CallId) -> Done {
        self.wait_or(call, |refused| panic!("refused: {refused:?}"))
    }

    /// As [`Client::wait`], for a call of which something was asked that may come too late.
    pub(crate) fn wait_past_refusals(&mut self, call: CallId) -> Done {
        self.wait_or(call, |_| {})
    }

    fn wait_or(&mut self, call: CallId, refused: impl Fn(&Reply)) -> Done {
        let mut live = Vec::new();
        loop {
            let (header, body) = self.receive().expect("news");
            match header.reply {
                Reply::Output { call: of, offset } if of == call => live.push((offset, body)),
                Reply::Finished { call: of, end } if of == call => return Done { end, body, live },
                Reply::Refused { .. } => refused(&header.reply),
                _ => {}
            }
        }
    }

    pub(crate) fn run_for(&mut self, command: &str, deadline_ms: u64) -> Done {
        let call = CallId::new();
        self.begin(call, command, deadline_ms);
        let done = self.wait(call);
        self.put(Request::Forget { call }, &[]);
        done
    }

    pub(crate) fn run(&mut self, command: &str) -> Done {
        self.run_for(command, 20_000)
    }
}

/// A wish to read all that fits one answer, at once.
pub(crate) fn read(call: CallId) -> Request {
    Request::Read { call, offset: 0, max: 1 << 20, wait_ms: 0, until_end: false, asker: None }
}

/// The tree of issue fame: every way to hide at once.
pub(crate) fn tree(token: &str) -> String {
    format!(
        "setsid sleep {token} & ( ( setsid sleep {token} & ) & ); bash -c 'trap \"\" TERM INT HUP; exec sleep {token}' & \
         bash -c 'kill -STOP $$; sleep {token}' & nohup sleep {token} >/dev/null 2>&1 & disown; env -i setsid sleep {token} & \
         chain() {{ if [ $1 -gt 0 ]; then chain $(($1-1)) & wait; else sleep {token}; fi; }}; chain 50"
    )
}

pub(crate) fn living(token: &str) -> usize {
    processes(token).len()
}

/// Living processes that have the token as an argument.
pub(crate) fn processes(token: &str) -> Vec<i32> {
    let has = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == token.as_bytes())
    };
    let all = std::fs::read_dir("/proc").expect("processes").flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(has).collect()
}

/// Waits until the shell has told its state: the shim does that when it has been idle for a moment.
pub(crate) fn settle(client: &mut Client) {
    let begun = Instant::now();
    let restore_point = Duration::from_millis(40);
    while begun.elapsed() < restore_point {
        client.ask(Request::State {}, &[]);
    }
}
