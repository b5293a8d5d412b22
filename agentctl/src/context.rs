//! What the process was started with: environment, directory, terminals. Read once, then passed on, so that everything
//! behind it can be tested without touching the real ones.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, ttyname};
use proto::request::{ClientInfo, Endpoint};
use proto::secret::{EnvVars, Secret};

use crate::cli::GlobalArgs;
use crate::error::CtlError;
use crate::notify::{How, When};
use crate::socket::{self, SocketPlace};

/// The snapshot.
#[derive(Clone, Debug)]
pub struct Context {
    /// The environment, UTF-8 pairs only.
    pub vars: EnvVars,
    /// The working directory.
    pub cwd: PathBuf,
    /// Where the daemon is to be found.
    pub socket: SocketPlace,
    /// Whether a daemon may be started.
    pub may_start: bool,
    /// Our user.
    pub uid: u32,
    /// Which standard descriptors are terminals.
    pub tty: Terminals,
    /// The terminal's name without `/dev/`; empty without one.
    pub terminal: String,
    /// How to tell a user who looks elsewhere.
    pub notify: How,
    /// And when.
    pub notify_when: When,
}

/// Which standard descriptors are terminals, and of what kind.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts about the outside")]
pub struct Terminals {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
    /// `TERM=dumb`: neither colours nor cursor movements.
    pub dumb: bool,
    /// `NO_COLOR` is set.
    pub no_color: bool,
    /// Standard output and standard error are the same terminal.
    pub same: bool,
}

impl Terminals {
    /// Whether standard output takes colours.
    #[must_use]
    pub fn color_out(self) -> bool {
        self.stdout && !self.dumb && !self.no_color
    }

    /// Whether standard error takes colours.
    #[must_use]
    pub fn color_err(self) -> bool {
        self.stderr && !self.dumb && !self.no_color
    }

    /// Whether a person can be asked here: reads the keys, sees the question.
    #[must_use]
    pub fn can_ask(self) -> bool {
        self.stdin && self.stderr
    }
}

impl Context {
    /// Reads the process's own.
    ///
    /// # Errors
    /// [`CtlError::NoCwd`] when the working directory is gone.
    pub fn from_process(global: &GlobalArgs) -> Result<Self, CtlError> {
        let vars = EnvVars(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        );
        let uid = Uid::effective().as_raw();
        let set = |name: &str| vars.get(name).is_some_and(|value| !value.is_empty());
        let tty = Terminals {
            stdin: std::io::stdin().is_terminal(),
            stdout: std::io::stdout().is_terminal(),
            stderr: std::io::stderr().is_terminal(),
            // A screen reader speaks what is written: nothing may be painted over.
            dumb: vars.get("TERM") == Some("dumb") || global.screen_reader,
            no_color: set("NO_COLOR"),
            same: same_terminal(),
        };
        Ok(Self {
            cwd: std::env::current_dir().map_err(CtlError::NoCwd)?,
            socket: socket::find(global.socket.as_deref(), &vars, uid),
            may_start: !global.no_start,
            uid,
            tty,
            terminal: terminal_name(),
            notify: global.notify.unwrap_or(How::Auto),
            notify_when: global.notify_when.unwrap_or_default(),
            vars,
        })
    }

    /// The working directory as the wire carries it.
    ///
    /// # Errors
    /// [`CtlError::NotUtf8`].
    pub fn cwd_text(&self) -> Result<String, CtlError> {
        self.cwd.to_str().map(str::to_owned).ok_or_else(|| CtlError::NotUtf8(self.cwd.clone()))
    }

    /// A variable that is set and not empty.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).filter(|value| !value.is_empty())
    }

    /// Where the environment says the model lives.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        let secret = |name| self.var(name).map(|value| Secret::new(value.to_owned()));
        Endpoint {
            base_url: self.var("ANTHROPIC_BASE_URL").map(str::to_owned),
            api_key: secret("ANTHROPIC_API_KEY"),
            auth_token: secret("ANTHROPIC_AUTH_TOKEN"),
        }
    }

    /// How other terminals see us.
    #[must_use]
    pub fn client(&self) -> ClientInfo {
        ClientInfo { program: "agentctl".to_owned(), terminal: self.terminal.clone() }
    }

    /// `$XDG_STATE_HOME/agentd`, where the daemon keeps its data and its log.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        let base = match self.var("XDG_STATE_HOME") {
            Some(dir) if Path::new(dir).is_absolute() => PathBuf::from(dir),
            Some(_) | None => Path::new(self.var("HOME").unwrap_or("/")).join(".local/state"),
        };
        base.join("agentd")
    }
}

fn same_terminal() -> bool {
    let device = |fd| nix::sys::stat::fstat(fd).ok().map(|stat| stat.st_rdev);
    let (out, err) = (device(std::io::stdout().as_fd()), device(std::io::stderr().as_fd()));
    out.is_some() && out == err && std::io::stdout().is_terminal()
}

fn terminal_name() -> String {
    let name =
        [ttyname(std::io::stdin().as_fd()), ttyname(std::io::stderr().as_fd()), ttyname(std::io::stdout().as_fd())]
            .into_iter()
            .find_map(Result::ok);
    let name = name.unwrap_or_default();
    name.strip_prefix("/dev/").unwrap_or(&name).display().to_string()
}
