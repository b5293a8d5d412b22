//! Desktop notifications, over the session bus of the daemon's environment (`org.freedesktop.Notifications`).
//!
//! Each session has at most one on the screen: the next one takes its place, and it goes when its question is answered. The
//! bus is asked for the first time when there is something to tell; nobody waits for it, and where it does not answer the
//! user is told by the attached terminals alone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::ids::SessionId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zbus::{Connection, Variant};

/// Words that wait for the bus: a desktop that has hung must not cost memory, and an old word is of no use.
const WAITING_MAX: usize = 32;

/// How long the bus and the desktop may take for one word.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest text: desktops show a few lines.
const TEXT_CHARS_MAX: usize = 200;

/// The interface, its object and its name on the bus.
const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";

/// Something for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Shown in the place of what was shown for the session.
    Tell {
        /// The session.
        session: SessionId,
        /// The headline.
        title: String,
        /// What waits, or is over.
        text: String,
    },
    /// What it said is no longer so.
    Withdraw {
        /// The session.
        session: SessionId,
    },
}

/// The way to the desktop.
#[derive(Debug)]
pub struct Desktop {
    words: Option<mpsc::Sender<Word>>,
    /// Full or broken, and said so.
    complained: AtomicBool,
    _task: JoinSet<()>,
}

impl Desktop {
    /// The desktop of this environment; one that nothing reaches where there is no session bus.
    ///
    /// Must be called in a runtime.
    pub fn find(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let named = env("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty());
        let usual = || env("XDG_RUNTIME_DIR").is_some_and(|folder| std::path::Path::new(&folder).join("bus").exists());
        if !named && !usual() {
            return Self::nowhere();
        }
        let (words, waiting) = mpsc::channel(WAITING_MAX);
        let mut task = JoinSet::new();
        task.spawn(serve(waiting));
        Self { words: Some(words), complained: AtomicBool::new(false), _task: task }
    }

    /// A desktop that nothing reaches.
    #[must_use]
    pub fn nowhere() -> Self {
        Self { words: None, complained: AtomicBool::new(false), _task: JoinSet::new() }
    }

    /// Hands a word over. Never waits: what a hung desktop does not take is dropped.
    pub fn say(&self, word: Word) {
        let Some(words) = &self.words else { return };
        if words.try_send(word).is_err() && !self.complained.swap(true, Ordering::Relaxed) {
            tracing::warn!("the desktop does not take notifications");
        }
    }
}

async fn serve(mut words: mpsc::Receiver<Word>) {
    let mut bus = None;
    let mut shown: HashMap<SessionId, u32> = HashMap::new();
    while let Some(word) = words.recv().await {
        let told = tokio::time::timeout(PATIENCE, tell(&mut bus, &mut shown, &word)).await;
        let failed = match told {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not answer".to_owned(),
        };
        // The next word finds the bus anew.
        bus = None;
        tracing::debug!(%failed, "no desktop notification");
    }
}

async fn tell(
    bus: &mut Option<Connection>,
    shown: &mut HashMap<SessionId, u32>,
    word: &Word,
) -> Result<(), zbus::Error> {
    match word {
        Word::Tell { session, title, text } => {
            let bus = connected(bus).await?;
            let replaces = shown.get(session).copied().unwrap_or(0);
            let (icon, actions, expires) = ("", [""; 0], -1_i32);
            let hints = HashMap::from([("desktop-entry", Variant::from("agentd"))]);
            let body = ("agentd", replaces, icon, plain(title), escaped(text), &actions[..], hints, expires);
            let reply = bus.call_method(Some(NAME), PATH, Some(NAME), "Notify", &body).await?;
            shown.insert(*session, reply.body().deserialize()?);
        }
        Word::Withdraw { session } => {
            let Some(id) = shown.remove(session) else { return Ok(()) };
            connected(bus).await?.call_method(Some(NAME), PATH, Some(NAME), "CloseNotification", &(id)).await?;
        }
    }
    Ok(())
}

async fn connected(bus: &mut Option<Connection>) -> Result<&Connection, zbus::Error> {
    if bus.is_none() {
        *bus = Some(Connection::session().await?);
    }
    // It was just put there.
    bus.as_ref().ok_or(zbus::Error::InvalidReply)
}

/// One line without control characters.
fn plain(text: &str) -> String {
    let harmless: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut cut: String = harmless.chars().take(TEXT_CHARS_MAX).collect();
    if harmless.chars().count() > TEXT_CHARS_MAX {
        cut.push('…');
    }
    cut
}

/// The same for the body, where desktops read markup: a command must not look like anything else.
fn escaped(text: &str) -> String {
    plain(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_and_no_markup() {
        assert_eq!(escaped("a\n<b>x</b> && \u{1b}[2J"), "a &lt;b&gt;x&lt;/b&gt; &amp;&amp;  [2J");
        assert_eq!(plain(&"x".repeat(300)).chars().count(), TEXT_CHARS_MAX + 1);
    }

    #[tokio::test]
    async fn where_there_is_no_bus_nothing_waits() {
        let desktop = Desktop::find(&|_| None);
        for _ in 0..2 * WAITING_MAX {
            desktop.say(Word::Withdraw { session: SessionId::new() });
        }
        assert!(desktop.words.is_none());
    }
}
