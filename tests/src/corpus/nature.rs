//! Adverse circumstances of a file system: directories that change under the tool, disks that are small or full.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A thread that swaps a directory for a link and back, until dropped.
#[derive(Debug)]
pub struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Swapper {
    /// Starts to swap a directory for a link to `link`.
    #[must_use]
    pub fn start(directory: PathBuf, link: String) -> Self {
        let aside = directory.with_extension("aside");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                // Each may fail while the tool holds the other state: that is the race.
                let _ = fs::rename(&directory, &aside);
                let _ = symlink(&link, &directory);
                let _ = fs::remove_file(&directory);
                let _ = fs::rename(&aside, &directory);
                let _ = fs::remove_file(directory.join("new.txt"));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// A small file system, unmounted when dropped.
#[derive(Debug)]
pub struct Mount {
    at: PathBuf,
}

impl Mount {
    /// Mounts it over a directory.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn new(at: &Path, kib: u32) -> Result<Self, String> {
        let size = format!("size={kib}k,mode=755");
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(at).output();
        match output {
            Ok(output) if output.status.success() => Ok(Self { at: at.to_owned() }),
            Ok(output) => Err(format!("no small file system: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => Err(format!("no small file system: {error}")),
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: the session's shell may still be on its way out of it.
        let _ = Command::new("umount").arg("-l").arg(&self.at).output();
    }
}

/// Writes until there is no space.
///
/// # Panics
/// When the file cannot be made.
pub fn fill(path: &Path) {
    use std::io::Write;
    let mut file = fs::File::create(path).expect("a file");
    while file.write_all(&[b'x'; 4096]).is_ok() {}
}
