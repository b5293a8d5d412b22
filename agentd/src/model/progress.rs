//! Progress on its way to whoever watches, without ever holding up the stream that it comes from.
//!
//! Invariant: what is kept for a slow receiver is at most the reply itself: pieces of one block are joined.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::Progress;

/// Progress that the receiver has not taken yet.
#[derive(Debug)]
pub(super) struct Outbox {
    sender: mpsc::Sender<Progress>,
    pending: VecDeque<Progress>,
}

impl Outbox {
    pub(super) fn new(sender: mpsc::Sender<Progress>) -> Self {
        Self { sender, pending: VecDeque::new() }
    }

    /// Adds a step behind the others.
    pub(super) fn push(&mut self, step: Progress) {
        if let (Some(Progress::Delta { index, text }), Progress::Delta { index: same, text: more }) =
            (self.pending.back_mut(), &step)
            && index == same
        {
            text.push_str(more);
            return;
        }
        self.pending.push_back(step);
    }

    /// Hands over as much as the receiver takes without waiting.
    pub(super) fn flush(&mut self) {
        while let Some(step) = self.pending.pop_front() {
            if let Err(mpsc::error::TrySendError::Full(step)) = self.sender.try_send(step) {
                self.pending.push_front(step);
                return;
            }
        }
    }

    /// Waits until the receiver takes more, then hands it over; never ends while nothing is pending. Cancel-safe.
    pub(super) async fn drain(&mut self) {
        if self.pending.is_empty() {
            std::future::pending::<()>().await;
        }
        match self.sender.reserve().await {
            Ok(permit) => {
                if let Some(step) = self.pending.pop_front() {
                    permit.send(step);
                }
            }
            // Nobody watches any more.
            Err(_) => self.pending.clear(),
        }
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BlockKind;

    fn delta(index: u32, text: &str) -> Progress {
        Progress::Delta { index, text: text.to_owned() }
    }

    #[tokio::test]
    async fn a_slow_receiver_gets_everything_in_fewer_pieces() {
        let (sender, mut receiver) = mpsc::channel(1);
        let mut outbox = Outbox::new(sender);
        let start = Progress::BlockStarted { index: 0, kind: BlockKind::Text(String::new()) };
        for step in [start.clone(), delta(0, "a"), delta(0, "b"), delta(1, "c"), delta(0, "d")] {
            outbox.push(step);
            outbox.flush();
        }
        let mut seen = vec![receiver.recv().await.unwrap()];
        for _ in 0..3 {
            outbox.drain().await;
            seen.push(receiver.recv().await.unwrap());
        }
        assert_eq!(seen, [start, delta(0, "ab"), delta(1, "c"), delta(0, "d")]);
    }

    #[tokio::test]
    async fn a_receiver_that_left_holds_up_nothing() {
        let (sender, receiver) = mpsc::channel(1);
        let mut outbox = Outbox::new(sender);
        outbox.push(delta(0, "a"));
        drop(receiver);
        outbox.drain().await;
        outbox.push(delta(0, "b"));
        outbox.flush();
        assert!(outbox.pending.is_empty());
    }
}
