//! A new shell in the place of one that ended.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use proto::shim::outcome::{Renewed, Why};

use crate::bash::{Bash, Birth};
use crate::host::Host;
use crate::state::Saved;

/// Pause before a shell is started again that ended in less than a tenth of this.
const SHELL_BACKOFF: Duration = Duration::from_millis(200);

impl Host {
    /// Replaces the shell; `why` is what the next result tells.
    pub(crate) fn renew_shell(&mut self, why: Why) -> Renewed {
        let fresh = matches!(why, Why::Asked {});
        let cwd = PathBuf::from(&self.setup.start.cwd);
        if fresh {
            self.saved = Saved::new(cwd);
        }
        // A shell that ends as soon as it starts must not make the shim spin.
        let age = self.born.elapsed();
        if age < SHELL_BACKOFF / 10 {
            std::thread::sleep(SHELL_BACKOFF);
        }
        self.born = Instant::now();
        self.aborting = None;
        self.last_status = 0;
        let restore = self.saved.restore(&self.env, &self.setup.state_dir);
        let restore = restore.unwrap_or_else(|_| crate::state::Restore {
            cwd: crate::state::enterable(&self.saved.cwd),
            env: self.env.clone(),
            file: None,
            errexit_dropped: false,
        });
        let birth = Birth { runtime_dir: &self.setup.runtime_dir, cwd: &restore.cwd, env: &restore.env };
        match Bash::start(&birth) {
            Ok(bash) => self.bash = bash,
            Err(error) => {
                eprintln!("shim: cannot start a shell: {error}");
                self.quit = true;
            }
        }
        self.tree.adopt(self.bash.pid());
        self.alone = self.tree.others(self.bash.pid()).is_empty();
        if let Some(file) = &restore.file {
            let path = crate::script::quote(file.as_os_str().as_encoded_bytes());
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
