//! A new shell for the session: in the place of one that ended, was stuck, was not wanted any more, or went on with a job.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proto::shim::outcome::{Renewed, Why};

use crate::bash::{Bash, Birth};
use crate::host::Host;
use crate::script::quote;
use crate::state::{Restore, Saved, enterable};

/// Pause before a shell is started again that ended in less than a tenth of this.
const SHELL_BACKOFF: Duration = Duration::from_millis(200);

impl Host {
    /// Replaces the shell; `why` is what the next result tells.
    pub(crate) fn renew_shell(&mut self, why: Why) -> Renewed {
        if matches!(why, Why::Asked {}) {
            self.saved = Saved::new(PathBuf::from(&self.setup.start.cwd));
        }
        let restore = self.restore();
        match self.start_shell(&restore) {
            Ok(bash) => self.bash = bash,
            Err(error) => {
                eprintln!("shim: cannot start a shell: {error}");
                self.quit = true;
            }
        }
        self.settle_shell(why, &restore)
    }

    /// What the next shell is given.
    pub(crate) fn restore(&self) -> Restore {
        let restore = self.saved.restore(&self.env, self.setup.state_dir.join("restore"));
        restore.unwrap_or_else(|_| Restore {
            cwd: enterable(&self.saved.cwd),
            env: self.env.clone(),
            file: None,
            errexit_dropped: false,
        })
    }

    /// Starts a shell that will be the session's.
    pub(crate) fn start_shell(&mut self, restore: &Restore) -> io::Result<Bash> {
        // A shell that ends as soon as it starts must not make the shim spin.
        let age = self.born.elapsed();
        if age < SHELL_BACKOFF / 10 {
            std::thread::sleep(SHELL_BACKOFF);
        }
        self.born = Instant::now();
        Bash::start(&Birth { runtime_dir: &self.setup.runtime_dir, cwd: &restore.cwd, env: &restore.env })
    }

    /// The session's shell is a new one: it takes its state over, and its processes are counted.
    pub(crate) fn settle_shell(&mut self, why: Why, restore: &Restore) -> Renewed {
        self.aborting = None;
        self.forget_facts();
        self.last_status = 0;
        self.tree.adopt(self.bash.pid());
        self.alone = self.tree.others(self.bash.pid()).is_empty();
        if let Some(file) = &restore.file {
            let path = quote(file.as_os_str().as_encoded_bytes());
            let _ = self.bash.feed(format!("\\builtin . {path}\n").as_bytes());
        }
        self.saved.cwd.clone_from(&restore.cwd);
        self.state_changed(Instant::now());
        Renewed {
            why,
            cwd: restore.cwd.to_string_lossy().into_owned(),
            restored: restore.file.is_some(),
            errexit_dropped: restore.errexit_dropped,
        }
    }
}
