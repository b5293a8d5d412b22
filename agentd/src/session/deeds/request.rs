//! A request to the model, put together from the session as it stands.

use std::sync::Arc;

use proto::ids::RequestId;

use super::super::machine::Machine;
use super::super::request_task::{self, RequestJob};
use super::super::spec::{Source, Spec};
use super::Deeds;
use crate::config::ProviderKind;
use crate::model::{Capabilities, Conversation};

impl Deeds {
    /// Sends it, in the place of one that is under way.
    pub(super) fn send(&mut self, request: RequestId, attempt: u32, machine: &Machine) {
        if let Some((_, task)) = self.request.take() {
            task.abort();
        }
        let settings = machine.settings().cloned().unwrap_or_else(|| self.spec.settings());
        let takes = self.context.capabilities(&self.spec, &settings.model);
        let messages = machine.messages();
        let (written, messages) = match system_messages(&self.spec, takes.as_deref()) {
            Some(may) => {
                let (written, rest) = self.writer.split(&messages, may);
                (Some(written), rest)
            }
            None => (None, &*messages),
        };
        let conversation = Conversation {
            max_tokens: takes.as_ref().map_or(settings.max_tokens, |takes| settings.max_tokens.min(takes.output)),
            effort: settings.effort,
            previous: machine.account().previous().map(str::to_owned),
            compact: machine.compacts_on_server(),
            takes,
            model: settings.model,
            system: self.spec.system.clone(),
            tools: self.spec.tools.clone(),
            written,
            messages: messages.to_vec(),
        };
        let under_way = attempt > 1 || machine.turn().is_some_and(|turn| turn.requests > 1);
        let job = RequestJob { request, attempt, conversation, under_way, spec: Arc::clone(&self.spec) };
        let task = self.tasks.spawn(request_task::run(job, Arc::clone(&self.context), self.news.clone()));
        self.request = Some((request, task));
    }
}

/// Whether the harness's messages go to the model as such. `None` where that is not known before the request, and where
/// nothing is written.
fn system_messages(spec: &Spec, takes: Option<&Capabilities>) -> Option<bool> {
    match &spec.source {
        Source::Scenario { .. } => None,
        Source::Api(api) => match api.provider {
            ProviderKind::Anthropic => takes.map(|takes| takes.system_messages),
            ProviderKind::Compat => Some(false),
        },
    }
}
