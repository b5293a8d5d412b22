//! The steps after a reply, by what it means for the turn.

use proto::event::TurnOutcome;
use proto::ids::RequestId;

use super::decide::Run;
use super::reply::{After, after, context_full, stored};
use super::state::Turn;
use crate::model::{Reply, StopReason};
use crate::store::entry::Entry;

impl Run<'_> {
    pub(super) fn reply_arrived(&mut self, request: RequestId, reply: &Reply) {
        let Some((turn, _)) = self.requesting(request) else { return };
        let ours = reply.stop == StopReason::Compaction;
        if turn.compacting.is_some() && !ours {
            return self.summary_arrived(&turn, request, reply);
        }
        let next = after(reply, &turn, self.machine.limits.max_tokens);
        let mut kept = stored(reply, turn.id, request, self.ids);
        kept.cache_miss = self.machine.account.cache_miss(reply, self.now);
        kept.at = self.now;
        self.record(Entry::ReplyReceived(kept));
        match next {
            After::Calls => self.advance(),
            After::Nudge(text) => {
                self.record(Entry::Nudged { turn: turn.id, text: text.to_owned() });
                self.send();
            }
            After::Again => self.send(),
            // A note that came meanwhile is answered in the same turn.
            After::End(TurnOutcome::Done {}) if !self.machine.notes.is_empty() => self.send(),
            After::End(outcome) => self.end_turn(turn.id, outcome),
            After::Compacted => {
                if turn.standalone {
                    self.end_turn(turn.id, TurnOutcome::Done {});
                } else {
                    let text = format!("Go on with the request that you are working on:\n\n{}", turn.text);
                    self.record(Entry::Nudged { turn: turn.id, text });
                    self.send();
                }
            }
            After::Full => self.full(&turn),
        }
    }

    /// Output ran into the window: what came is kept, the rest needs room.
    fn full(&mut self, turn: &Turn) {
        if self.compact_when_full(turn) {
            self.send();
        } else {
            self.end_turn(turn.id, context_full());
        }
    }
}
