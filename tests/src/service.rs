//! A user with a service manager of their own, whose agentd is a unit: on the machine that `tests/box/boot.sh` makes.
//!
//! [`boot_or_claim`] runs the calling test once more there, as an ordinary user, where it makes its claims one after
//! another: one boot for all. Inside, [`Service`] is that user: the units as `make install` leaves them, `systemctl`, `journalctl` and `agentctl`.

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::binaries::{self, repository};
use crate::wait;

/// Set inside: where the programs are.
const INSIDE: &str = "AGENTD_BOX";

/// What `boot.sh` ends with where the machine cannot do it.
const CANNOT: i32 = 77;

/// A claim's name and what it does with a fresh installation.
pub type Claim = (&'static str, fn(&Service));

/// Outside: boots the machine and runs the calling test in it. Inside: makes the claims.
///
/// # Panics
/// When a claim fails.
pub fn boot_or_claim(claims: &[Claim]) {
    if env::var_os(INSIDE).is_some() { make_claims(claims) } else { boot() }
}

fn make_claims(claims: &[Claim]) {
    let mut failed = Vec::new();
    for (name, claim) in claims {
        let began = Instant::now();
        // One that fails says why by itself, and the others are made all the same.
        let held = catch_unwind(AssertUnwindSafe(|| claim(&Service::fresh()))).is_ok();
        println!("{} {name} ({:.1} s)", if held { "holds" } else { "FAILS" }, began.elapsed().as_secs_f32());
        if !held {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

fn boot() {
    let folder = repository().join("tests/box");
    let test = env::current_exe().expect("a path");
    let name = std::thread::current().name().expect("a test has a name").to_owned();
    let programs = binaries::agentd().parent().expect("a directory").to_owned();
    let mut command = Command::new("bash");
    command.arg(folder.join("boot.sh")).arg(folder.join("inside.sh"));
    command.arg(&programs).arg(&test).arg(&name).arg(repository());
    let output = command.stdin(Stdio::null()).output().expect("bash runs");
    println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match output.status.code() {
        // The machine has said why not.
        Some(0 | CANNOT) => {}
        code => panic!("the claims about the service failed ({code:?})"),
    }
}

/// The user and their service.
#[derive(Debug)]
pub struct Service {
    home: PathBuf,
}

impl Service {
    /// A user who has just installed: units in place, nothing running, no state, no configuration.
    ///
    /// # Panics
    /// When the last claim's service cannot be stopped.
    fn fresh() -> Self {
        let service = Self { home: PathBuf::from(env::var_os("HOME").expect("a home")) };
        service.systemctl(&["kill", "-s", "KILL", "agentd.service"]);
        service.systemctl(&["stop", "agentd.socket", "agentd.service", "agentd.slice"]);
        for left in [".config/agentd", ".local/state/agentd", ".config/systemd/user/agentd.service.d"] {
            let _ = fs::remove_dir_all(service.path(left));
        }
        for left in ["go", "ran", "scenario.toml"] {
            let _ = fs::remove_file(service.path(left));
        }
        service.systemctl_ok(&["daemon-reload"]);
        service.systemctl(&["reset-failed"]);
        assert_eq!(service.daemons(), 0, "a daemon of the last claim is left");
        service
    }

    /// A path below the home.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// Writes a file below the home.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    /// The lines of a file below the home; none when there is none.
    #[must_use]
    pub fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// The daemon's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        PathBuf::from(env::var_os("XDG_RUNTIME_DIR").expect("a user manager's")).join("agentd/agentd.sock")
    }

    /// Adds settings to the unit's `[Service]`, as `systemctl edit` does.
    ///
    /// # Panics
    /// When systemd does not read them.
    pub fn edit(&self, settings: &str) {
        self.write(".config/systemd/user/agentd.service.d/test.conf", &format!("[Service]\n{settings}\n"));
        self.systemctl_ok(&["daemon-reload"]);
    }

    /// Runs `systemctl --user`.
    ///
    /// # Panics
    /// When it cannot be run.
    pub fn systemctl(&self, arguments: &[&str]) -> Output {
        Command::new("systemctl").arg("--user").args(arguments).output().expect("systemctl runs")
    }

    /// Runs `systemctl --user`, which must succeed.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn systemctl_ok(&self, arguments: &[&str]) {
        let output = self.systemctl(arguments);
        assert!(output.status.success(), "systemctl {arguments:?}: {output:?}");
    }

    /// A property of the service.
    #[must_use]
    pub fn show(&self, property: &str) -> String {
        self.show_of("agentd.service", property)
    }

    /// A property of a unit.
    #[must_use]
    pub fn show_of(&self, unit: &str, property: &str) -> String {
        text(&self.systemctl(&["show", unit, "--value", "-p", property]).stdout)
    }

    /// The daemon's process; 0 when none runs.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.show("MainPID").parse().unwrap_or(0)
    }

    /// How many daemons this user has, whoever started them.
    #[must_use]
    pub fn daemons(&self) -> usize {
        let output = Command::new("pgrep").args(["-x", "-c", "-u", &uid(), "agentd"]).output().expect("pgrep runs");
        text(&output.stdout).parse().expect("a number")
    }

    /// The scopes that shims live in.
    #[must_use]
    pub fn scopes(&self) -> Vec<String> {
        let output = self.systemctl(&["list-units", "--plain", "--no-legend", "agentd-shim-*.scope"]);
        text(&output.stdout).lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    }

    /// `agentctl` in the home; it starts no daemon.
    #[must_use]
    pub fn agentctl(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path(".local/bin/agentctl"));
        command.arg("--no-start").args(arguments).current_dir(&self.home).stdin(Stdio::null());
        command
    }

    /// Runs `agentctl`, which must succeed; its standard output as JSON, the last line.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn ask(&self, arguments: &[&str]) -> Value {
        let output = self.agentctl(arguments).output().expect("agentctl runs");
        assert!(output.status.success(), "agentctl {arguments:?}: {output:?}");
        let said = text(&output.stdout);
        said.lines().last().map_or(Value::Null, |line| serde_json::from_str(line).expect("JSON"))
    }

    /// The daemon's own words about itself.
    #[must_use]
    #[track_caller]
    pub fn status(&self) -> Value {
        self.ask(&["status", "--json"])
    }

    /// Starts a session whose model runs one command, allowed beforehand. Returns its id once the prompt is accepted.
    ///
    /// # Panics
    /// When it is not.
    #[track_caller]
    pub fn session(&self, command: &str) -> String {
        self.session_with(command, "all")
    }

    /// As [`Service::session`], with an answer to approvals.
    ///
    /// # Panics
    /// As [`Service::session`].
    #[track_caller]
    pub fn session_with(&self, command: &str, approve: &str) -> String {
        let call = format!("[[reply.call]]\nname = \"bash\"\ninput = {{ command = '''{command}''' }}\n");
        self.write("scenario.toml", &format!("[[reply]]\ntext = \"now\"\n{call}[[reply]]\ntext = \"done\"\n"));
        let scenario = self.path("scenario.toml").display().to_string();
        let ask =
            ["ask", "--new", "--scenario", &scenario, "--approve", approve, "--detach", "--json", "a secret word"];
        let accepted = self.ask(&ask);
        accepted["session"].as_str().expect("an id").to_owned()
    }

    /// The events of a session's log that are of a kind.
    #[must_use]
    pub fn events(&self, session: &str, kind: &str) -> Vec<Value> {
        let output = self.agentctl(&["log", session, "--json"]).output().expect("agentctl runs");
        let lines: Vec<Value> =
            text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let body = |line: &Value| line.pointer(&format!("/event/event/body/{kind}")).cloned();
        lines.iter().filter_map(body).collect()
    }

    /// Waits for the end of the session's turn; how it ended.
    #[must_use]
    pub fn turn_end(&self, session: &str) -> Value {
        wait::until("the turn's end", || self.events(session, "turn_ended").first().map(|end| end["outcome"].clone()))
    }

    /// Waits until a file below the home is there.
    pub fn await_file(&self, name: &str) {
        wait::until(name, || self.path(name).exists().then_some(()));
    }

    /// What the journal has of the service for these fields, newest last.
    #[must_use]
    pub fn journal(&self, matches: &[&str]) -> Vec<Value> {
        let mut command = Command::new("journalctl");
        command.args(["--user", "-u", "agentd", "-o", "json", "--no-pager"]).args(matches);
        let output = command.output().expect("journalctl runs");
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// A client that waits for its answer.
    ///
    /// # Panics
    /// When it cannot be run.
    #[must_use]
    pub fn waiting_client(&self) -> Child {
        self.agentctl(&["status", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("agentctl runs")
    }

    /// Runs `make` of the repository for this user's home.
    ///
    /// # Panics
    /// When it fails.
    pub fn make(&self, target: &str) {
        let programs = env::var_os(INSIDE).expect("inside");
        let mut command = Command::new("make");
        command.args(["--no-print-directory", "-s", "-C"]).arg(env::var_os("AGENTD_BOX_REPOSITORY").expect("inside"));
        command.arg(target).arg(format!("BUILT={}", Path::new(&programs).display()));
        let output = command.output().expect("make runs");
        assert!(output.status.success(), "make {target}: {output:?}");
    }
}

fn uid() -> String {
    nix::unistd::getuid().to_string()
}

/// Output without its last line feed.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}
