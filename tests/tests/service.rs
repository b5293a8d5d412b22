//! agentd as a unit of a real systemd, for an ordinary user. One boot of a throw-away machine serves all claims: this one
//! test boots it and runs itself inside, where it makes one claim after another, each from a fresh installation. See
//! `tests/box`.

use harness::service::{self, Claim};

/// All claims, by their names.
macro_rules! claims {
    ($($name:ident),+ $(,)?) => { [$((stringify!($name), unit::$name)),+] };
}

const CLAIMS: &[Claim] = &claims![
    a_start_is_over_only_when_the_daemon_serves,
    the_first_client_of_the_socket_starts_the_service,
    a_reload_reads_the_configuration_again_and_keeps_the_old_one_when_the_new_one_is_wrong,
    a_restart_keeps_the_running_command_and_lets_clients_wait,
    a_killed_daemon_comes_back_and_a_stopped_one_is_noticed_by_its_watchdog_and_nothing_is_lost,
    a_stop_ends_the_shells_after_their_grace_and_no_turn_goes_on_by_itself,
    a_command_that_ends_within_the_grace_of_a_stop_is_recorded_whole,
    a_daemon_that_dies_at_once_keeps_no_shell_from_a_stop_and_loses_none_in_a_restart,
    every_shell_has_a_scope_under_the_slice_and_every_command_a_group_as_an_ordinary_user,
    the_journal_is_searched_by_session_call_command_status_and_who_approved,
    a_daemon_started_without_systemd_hands_over_to_the_service,
    neither_a_crash_loop_nor_a_changed_unit_leaves_a_stale_socket_or_two_daemons,
    doctor_finds_a_sound_service_sound_and_says_how_to_mend_a_failed_one,
    a_wrong_configuration_is_not_tried_again_and_again,
    the_key_comes_from_a_credential_and_stays_out_of_shells,
    the_installed_units_are_clean_and_uninstall_leaves_nothing,
];

#[test]
fn the_unit_keeps_its_promises_on_a_machine_with_a_real_systemd() {
    service::boot_or_claim(CLAIMS);
}

mod unit {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    use std::process::{Command, Stdio};

    use harness::service::{Service, text};
    use harness::{processes, wait};
    use nix::sys::signal::{Signal, kill};
    use nix::sys::stat::Mode;
    use nix::unistd::{Pid, mkfifo};

    /// A command that tells that it began, waits for `go`, and tells that it ended: run twice it would say so twice.
    const WAITS: &str = "echo began >> ~/ran; until [ -e ~/go ]; do sleep 0.02; done; echo ended >> ~/ran";

    fn signal(pid: i32, signal: Signal) {
        kill(Pid::from_raw(pid), signal).unwrap();
    }

    pub(crate) fn a_start_is_over_only_when_the_daemon_serves(service: &Service) {
        // The daemon reads its configuration before anything else: this one keeps it waiting.
        let fifo = service.path("fifo");
        let _ = fs::remove_file(&fifo);
        mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        service.edit("Environment=AGENTD_CONFIG=%h/fifo");
        service.systemctl_ok(&["start", "--no-block", "agentd"]);
        // Returns once the daemon has opened the other end.
        let config = OpenOptions::new().write(true).open(&fifo).unwrap();
        assert_eq!(service.show("ActiveState"), "activating");
        let client = service.waiting_client();
        assert_eq!(service.show("ActiveState"), "activating", "a client that waits is no sign of readiness");
        drop(config);
        let served = client.wait_with_output().unwrap();
        assert!(served.status.success(), "the client that came too early was served: {served:?}");
        wait::until("the start", || (service.show("ActiveState") == "active").then_some(()));
        assert_eq!(service.status()["pid"], service.pid());
        fs::remove_file(fifo).unwrap();
    }

    pub(crate) fn the_first_client_of_the_socket_starts_the_service(service: &Service) {
        service.systemctl_ok(&["start", "agentd.socket"]);
        assert_eq!(service.show("ActiveState"), "inactive");
        let meta = fs::metadata(service.socket()).unwrap();
        assert!(meta.file_type().is_socket());
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(service.socket().parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        let pid = service.status()["pid"].as_i64().unwrap();
        assert_eq!(service.show("ActiveState"), "active");
        assert_eq!(i64::from(service.pid()), pid);
        assert_eq!(service.daemons(), 1);
    }

    pub(crate) fn a_reload_reads_the_configuration_again_and_keeps_the_old_one_when_the_new_one_is_wrong(
        service: &Service,
    ) {
        service.systemctl_ok(&["start", "agentd"]);
        let pid = service.pid();
        service.write(".config/agentd/agentd.toml", "[model]\nname = \"another-model\"\n");
        service.systemctl_ok(&["reload", "agentd"]);
        if service.show("Type") == "notify-reload" {
            assert_eq!(service.status()["model"], "another-model", "the reload is over when systemctl says so");
        }
        wait::until("the new model", || (service.status()["model"] == "another-model").then_some(()));
        service.write(".config/agentd/agentd.toml", "[model]\nnmae = \"typo\"\n");
        service.systemctl_ok(&["reload", "agentd"]);
        let said = wait::until("the complaint", || {
            Some(service.show("StatusText")).filter(|text| text.contains("the old configuration stays in force"))
        });
        assert!(said.contains("nmae"), "{said}");
        assert_eq!(service.status()["model"], "another-model");
        assert_eq!(service.pid(), pid);
        let errors = service.journal(&["PRIORITY=3"]);
        assert!(
            errors.iter().any(|entry| entry["ERROR"].as_str().is_some_and(|text| text.contains("nmae"))),
            "{errors:?}"
        );
    }

    pub(crate) fn a_restart_keeps_the_running_command_and_lets_clients_wait(service: &Service) {
        service.systemctl_ok(&["start", "agentd"]);
        let session = service.session(WAITS);
        service.await_file("ran");
        let (first, shim) = (service.pid(), service.ask(&["show", &session, "--json"])["shim_pid"].clone());
        let scopes = service.scopes();
        assert_eq!(scopes.len(), 1, "{scopes:?}");
        service.systemctl_ok(&["restart", "--no-block", "agentd"]);
        // Whenever they come, they are served: by the old daemon, or by the new one after a wait.
        let mut clients = 0;
        while service.pid() == first || service.show("ActiveState") != "active" {
            let output = service.waiting_client().wait_with_output().unwrap();
            assert!(output.status.success(), "client {clients} failed: {output:?}");
            clients += 1;
        }
        assert!(clients > 0, "the restart was over before a client came");
        service.write("go", "");
        assert_eq!(service.turn_end(&session), serde_json::json!({"done": {}}));
        assert_eq!(service.lines("ran"), ["began", "ended"]);
        assert_eq!(service.ask(&["show", &session, "--json"])["shim_pid"], shim);
        assert_eq!(service.scopes(), scopes);
        assert_eq!(service.daemons(), 1);
    }

    pub(crate) fn a_killed_daemon_comes_back_and_a_stopped_one_is_noticed_by_its_watchdog_and_nothing_is_lost(
        service: &Service,
    ) {
        service.edit("WatchdogSec=2");
        service.systemctl_ok(&["start", "agentd"]);
        let session = service.session(WAITS);
        service.await_file("ran");
        signal(service.pid(), Signal::SIGKILL);
        wait::until("the first new start", || (service.show("NRestarts") == "1").then_some(()));
        // Longer than the limit: unfed it would be killed by then.
        let fed =
            wait::within(std::time::Duration::from_millis(2500), || (service.show("NRestarts") != "1").then_some(()));
        assert!(fed.is_none(), "a daemon that answers is left alone");
        signal(service.pid(), Signal::SIGSTOP);
        wait::until("the second new start", || {
            (service.show("NRestarts") == "2" && service.show("ActiveState") == "active").then_some(())
        });
        let said = Command::new("journalctl").args(["--user", "-u", "agentd", "-o", "cat"]).output().unwrap();
        assert!(text(&said.stdout).contains("Watchdog timeout"), "{said:?}");
        service.write("go", "");
        assert_eq!(service.turn_end(&session), serde_json::json!({"done": {}}));
        assert_eq!(service.lines("ran"), ["began", "ended"]);
        assert_eq!(service.events(&session, "call_started").len(), 1);
        assert_eq!(service.daemons(), 1);
    }

    pub(crate) fn a_stop_ends_the_shells_after_their_grace_and_no_turn_goes_on_by_itself(service: &Service) {
        service.write(".config/agentd/agentd.toml", "[shell]\nstop_grace = \"300ms\"\n");
        service.systemctl_ok(&["start", "agentd"]);
        // In a session and a group of its own, deaf to what is polite.
        let session =
            service.session("setsid bash -c 'trap \"\" INT TERM HUP; echo began >> ~/ran; exec sleep 1000' & wait");
        service.await_file("ran");
        service.systemctl_ok(&["stop", "agentd"]);
        wait::until("the scope to go", || service.scopes().is_empty().then_some(()));
        let sleeping = Command::new("pgrep").args(["-u", "tester", "-x", "sleep"]).output().unwrap();
        assert_eq!(text(&sleeping.stdout), "", "what ran is gone");
        assert_eq!(service.daemons(), 0);
        // The next client starts it again.
        assert_eq!(service.turn_end(&session), serde_json::json!({"interrupted": {}}));
        assert_eq!(service.ask(&["show", &session, "--json"])["state"], "idle");
        assert_eq!(service.lines("ran"), ["began"]);
    }

    pub(crate) fn a_command_that_ends_within_the_grace_of_a_stop_is_recorded_whole(service: &Service) {
        service.write(".config/agentd/agentd.toml", "[shell]\nstop_grace = \"20s\"\n");
        service.systemctl_ok(&["start", "agentd"]);
        let session = service.session(WAITS);
        service.await_file("ran");
        service.systemctl_ok(&["stop", "--no-block", "agentd"]);
        wait::until("the stop", || (service.show("ActiveState") == "deactivating").then_some(()));
        service.write("go", "");
        wait::until("the stop's end", || (service.show("ActiveState") == "inactive").then_some(()));
        let finished = service.events(&session, "call_finished");
        assert_eq!(finished[0]["outcome"], serde_json::json!({"exited": {"status": 0}}));
        assert_eq!(service.lines("ran"), ["began", "ended"]);
    }

    pub(crate) fn a_daemon_that_dies_at_once_keeps_no_shell_from_a_stop_and_loses_none_in_a_restart(service: &Service) {
        // It can end nothing itself.
        service.edit("KillSignal=SIGKILL");
        service.systemctl_ok(&["start", "agentd"]);
        let session = service.session(WAITS);
        service.await_file("ran");
        let scopes = service.scopes();
        service.systemctl_ok(&["restart", "agentd"]);
        assert_eq!(service.scopes(), scopes, "a restart keeps shells");
        assert_eq!(service.ask(&["show", &session, "--json"])["state"], "running");
        service.systemctl_ok(&["stop", "agentd"]);
        wait::until("the scope to go", || service.scopes().is_empty().then_some(()));
        assert_eq!(service.lines("ran"), ["began"]);
    }

    pub(crate) fn every_shell_has_a_scope_under_the_slice_and_every_command_a_group_as_an_ordinary_user(
        service: &Service,
    ) {
        service.systemctl_ok(&["start", "agentd"]);
        assert_eq!(service.status()["accounting"], "cgroup");
        // The last is a process that hides from its parents and its environment: still it may not speak to the daemon.
        let session = service.session(
            "grep ^0:: /proc/self/cgroup > ~/ran; umask >> ~/ran; \
             (env -i HOME=$HOME XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR setsid bash -c 'sleep 0.1; .local/bin/agentctl \
             --no-start status; echo $? > go' &)",
        );
        assert_eq!(service.turn_end(&session), serde_json::json!({"done": {}}));
        let lines = service.lines("ran");
        let scope = service.scopes().pop().unwrap();
        let slice = service.show_of("agentd.slice", "ControlGroup");
        assert!(lines[0].contains(&format!("{slice}/{scope}/agentd-")), "{lines:?}");
        assert_eq!(service.show_of(&scope, "Delegate"), "yes");
        assert_eq!(lines[1], "0022", "the unit's settings are not the shell's");
        service.await_file("go");
        wait::until("the answer", || (service.lines("go") == ["6"]).then_some(()));
        // The daemon's limits are the daemon's alone.
        assert!(!lines[0].contains("agentd.service"), "{lines:?}");
    }

    pub(crate) fn the_journal_is_searched_by_session_call_command_status_and_who_approved(service: &Service) {
        service.systemctl_ok(&["start", "agentd"]);
        let session = service.session("(exit 7)");
        assert_eq!(service.turn_end(&session), serde_json::json!({"done": {}}));
        let by_session = format!("AGENTD_SESSION={session}");
        for event in ["created", "prompt_accepted", "turn_ended"] {
            let entries = service.journal(&[&by_session, &format!("AGENTD_EVENT={event}")]);
            assert_eq!(entries.len(), 1, "{event}: {entries:?}");
        }
        let entry = service.journal(&[&by_session, "EXIT_STATUS=7"]).pop().unwrap();
        let expected = [
            ("COMMAND", "(exit 7)"),
            ("APPROVED_BY", "--approve all"),
            ("AGENTD_TOOL", "bash"),
            ("OUTCOME", "exited"),
            ("PRIORITY", "6"),
            ("SYSLOG_IDENTIFIER", "agentd"),
            ("_SYSTEMD_USER_UNIT", "agentd.service"),
        ];
        for (field, value) in expected {
            assert_eq!(entry[field], value, "{field} of {entry}");
        }
        let call = entry["AGENTD_CALL"].as_str().unwrap();
        let entries = service.journal(&[&format!("AGENTD_CALL={call}"), "COMMAND=(exit 7)"]);
        assert!(entries.len() >= 2, "its begin and its end: {entries:?}");
        let denied = service.session_with("touch ran", "none");
        let _ = service.turn_end(&denied);
        let entries = service.journal(&[&format!("AGENTD_SESSION={denied}"), "COMMAND=touch ran"]);
        let entry = entries.iter().find(|entry| entry["REFUSED_BY"] == "--approve none").unwrap();
        assert_eq!(entry["PRIORITY"], "4");
        assert!(entries.iter().all(|entry| entry["APPROVED_BY"].is_null()), "{entries:?}");
        // Prompts are nobody's business, unless they are made so.
        let all = serde_json::to_string(&service.journal(&[])).unwrap();
        assert!(!all.contains("a secret word"), "a prompt is in the journal");
        service.write(".config/agentd/agentd.toml", "[log]\nprompts = true\n");
        service.systemctl_ok(&["restart", "agentd"]);
        let session = service.session("true");
        let _ = service.turn_end(&session);
        let entries = service.journal(&[&format!("AGENTD_SESSION={session}"), "PROMPT=a secret word"]);
        assert_eq!(entries.len(), 1, "{entries:?}");
    }

    pub(crate) fn a_daemon_started_without_systemd_hands_over_to_the_service(service: &Service) {
        let programs = service.path(".local/bin");
        // As agentctl starts it where there is no unit.
        let mut by_hand = Command::new(programs.join("agentd")).stderr(Stdio::null()).spawn().unwrap();
        wait::until("the daemon", || {
            service.waiting_client().wait_with_output().unwrap().status.success().then_some(())
        });
        let session = service.session(WAITS);
        service.await_file("ran");
        assert!(service.scopes().is_empty(), "outside the manager there is no scope");
        service.systemctl_ok(&["start", "agentd"]);
        assert!(by_hand.wait().unwrap().success());
        assert_eq!(service.daemons(), 1);
        assert_eq!(service.status()["pid"], service.pid());
        service.write("go", "");
        assert_eq!(service.turn_end(&session), serde_json::json!({"done": {}}));
        assert_eq!(service.lines("ran"), ["began", "ended"]);
        service.ask(&["rm", &session]);
        // The other way round nobody is disturbed.
        let second = Command::new(programs.join("agentd")).output().unwrap();
        assert_eq!(second.status.code(), Some(4), "{second:?}");
        assert!(service.socket().exists());
    }

    pub(crate) fn neither_a_crash_loop_nor_a_changed_unit_leaves_a_stale_socket_or_two_daemons(service: &Service) {
        service.edit("RestartSec=1ms\nExecStart=\nExecStart=/bin/false");
        assert!(!service.systemctl(&["start", "agentd"]).status.success());
        wait::until("the end of the loop", || (service.show("ActiveState") == "failed").then_some(()));
        assert_eq!(service.show("Result"), "exit-code", "{}", service.show("Result"));
        // A client is told, rather than left waiting at a socket that nobody serves.
        let output = service.waiting_client().wait_with_output().unwrap();
        assert!(!output.status.success());
        wait::until("the socket to be given up", || {
            (service.show_of("agentd.socket", "ActiveState") == "failed").then_some(())
        });
        assert!(!service.socket().exists(), "a socket that nobody serves is left");
        // Mended and changed again while it runs: one daemon, one socket.
        for variable in ["A=1", "A=2"] {
            service.edit(&format!("Environment={variable}"));
            service.systemctl(&["reset-failed", "agentd.service", "agentd.socket"]);
            service.systemctl_ok(&["restart", "agentd"]);
            assert_eq!(service.status()["pid"], service.pid());
            assert_eq!(service.daemons(), 1);
        }
        service.systemctl_ok(&["stop", "agentd.socket", "agentd.service"]);
        assert!(!service.socket().exists());
        assert_eq!(service.daemons(), 0);
    }

    pub(crate) fn doctor_finds_a_sound_service_sound_and_says_how_to_mend_a_failed_one(service: &Service) {
        service.systemctl_ok(&["start", "agentd"]);
        let checks = |service: &Service| -> Vec<serde_json::Value> {
            let output = service.agentctl(&["doctor", "--json"]).output().unwrap();
            text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let of = |checks: &[serde_json::Value], name: &str| {
            checks.iter().find(|check| check["name"] == name).cloned().unwrap_or_else(|| panic!("{name}: {checks:?}"))
        };
        let found = checks(service);
        for name in ["systemd", "socket unit", "linger", "journal", "accounting"] {
            let check = of(&found, name);
            assert!(check["ok"] == true && check["mend"].is_null(), "{check}");
        }
        service.edit("ExecStart=\nExecStart=/bin/false\nRestart=no");
        service.systemctl(&["restart", "agentd"]);
        let check = of(&checks(service), "systemd");
        assert!(check["ok"] == false && check["mend"].as_str().unwrap().contains("reset-failed"), "{check}");
        // On disk it is another unit than the one that systemd knows.
        service.write(".config/systemd/user/agentd.service.d/test.conf", "[Service]\nEnvironment=A=1\n");
        let check = of(&checks(service), "systemd");
        assert!(check["mend"].as_str().unwrap().contains("daemon-reload"), "{check}");
    }

    pub(crate) fn a_wrong_configuration_is_not_tried_again_and_again(service: &Service) {
        service.write(".config/agentd/agentd.toml", "nonsense");
        assert!(!service.systemctl(&["start", "agentd"]).status.success());
        assert_eq!(service.show("NRestarts"), "0");
        assert_eq!(service.show("ExecMainStatus"), "3");
        // The client says why, in the daemon's words.
        let mut client = Command::new(service.path(".local/bin/agentctl"));
        let output = client.arg("status").output().unwrap();
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains("agentd.toml is wrong"), "{said}");
        fs::remove_file(service.path(".config/agentd/agentd.toml")).unwrap();
        service.systemctl(&["reset-failed", "agentd.service", "agentd.socket"]);
        service.systemctl_ok(&["start", "agentd"]);
        assert_eq!(service.status()["pid"], service.pid());
    }

    pub(crate) fn the_key_comes_from_a_credential_and_stays_out_of_shells(service: &Service) {
        service.write(".config/agentd/key", "sk-from-systemd");
        fs::set_permissions(service.path(".config/agentd/key"), fs::Permissions::from_mode(0o600)).unwrap();
        service.edit("LoadCredential=anthropic-api-key:%h/.config/agentd/key");
        service.systemctl_ok(&["start", "agentd"]);
        assert_eq!(service.status()["key_source"], "credentials directory");
        let session =
            service.session("env | grep -c -e CREDENTIALS -e NOTIFY -e WATCHDOG -e LISTEN -e sk-from >> ~/ran");
        let _ = service.turn_end(&session);
        assert_eq!(service.lines("ran"), ["0"]);
    }

    pub(crate) fn the_installed_units_are_clean_and_uninstall_leaves_nothing(service: &Service) {
        let folder = service.path(".local/share/systemd/user");
        let units = ["agentd.service", "agentd.socket", "agentd.slice"].map(|unit| folder.join(unit));
        let output = Command::new("systemd-analyze").args(["--user", "verify"]).args(&units).output().unwrap();
        let stderr = text(&output.stderr);
        // Not every machine has the viewer of manual pages.
        let said: Vec<&str> = stderr.lines().filter(|line| !line.contains("Command 'man ")).collect();
        assert!(output.status.success() && said.is_empty(), "{output:?}");
        let score =
            Command::new("systemd-analyze").args(["--user", "security", "--no-pager", "agentd.service"]).output();
        println!("{}", text(&score.unwrap().stdout).lines().last().unwrap_or_default());
        service.systemctl_ok(&["start", "agentd"]);
        service.make("uninstall");
        assert_eq!(service.daemons(), 0);
        assert!(!service.socket().exists());
        let left = Command::new("find").arg(service.path(".local")).args(["-name", "*agent*"]).output().unwrap();
        let state = service.path(".local/state/agentd").display().to_string();
        let left: Vec<String> =
            text(&left.stdout).lines().filter(|path| !path.starts_with(&state)).map(str::to_owned).collect();
        assert!(left.is_empty(), "{left:?}");
        service.make("install");
        service.systemctl_ok(&["daemon-reload"]);
        assert!(processes::alive(1));
    }
}
