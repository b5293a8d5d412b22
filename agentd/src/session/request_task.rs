//! The task of one request to the model: one try, its progress as it comes, then its reply or why there is none.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use proto::event::Problem;
use proto::ids::{RequestId, Timestamp};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::Context;
use super::machine::{Cure, Input};
use super::news::News;
use super::spec::{Source, Spec};
use crate::config::ProviderKind;
use crate::faults::{self, Point};
use crate::model::retry::{self, NextTry, Waits};
use crate::model::{ApiKey, Conversation, ErrorKind, ModelError, Progress, Provider, Reply, capabilities_of};

/// Progress pieces that may wait between the stream and the session.
const PROGRESS_QUEUE_MAX: usize = 256;

/// Shortest time between two pieces of a reply for the clients: what comes meanwhile goes with the next one. A fast stream
/// then costs each client 100 frames a second at most, and nobody sees 10 ms: a screen shows 60 pictures a second.
const LIVE_PAUSE: Duration = Duration::from_millis(10);

/// One try of a request.
#[derive(Debug)]
pub(super) struct RequestJob {
    /// The request.
    pub request: RequestId,
    /// From 1.
    pub attempt: u32,
    /// What is sent.
    pub conversation: Conversation,
    /// Its turn has been sent before: when its key is gone since, with the client that gave it, that is no reason to lose it.
    pub under_way: bool,
    /// Where.
    pub spec: Arc<Spec>,
}

/// Sends it and tells the session.
pub(super) async fn run(mut job: RequestJob, context: Arc<Context>, news: mpsc::Sender<News>) {
    let request = job.request;
    // A fault of ours ends this try, not the session.
    let sent = AssertUnwindSafe(send(&mut job, &context, &news)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(%request, "a request's task panicked");
        Err(fault())
    });
    let input = match sent {
        Ok(reply) => Input::ReplyArrived { request, reply: Box::new(reply) },
        Err(failure) => {
            tracing::info!(%request, attempt = job.attempt, code = %failure.problem.code, "request failed");
            Input::RequestFailed { request, problem: failure.problem, cure: failure.cure }
        }
    };
    faults::reach(Point::ReplyWhole);
    let _ = news.send(News::Happened(Box::new(input))).await;
}

struct Failure {
    problem: Problem,
    cure: Cure,
}

/// A failure that no further try heals.
fn hopeless(problem: Problem) -> Failure {
    Failure { problem, cure: Cure::None }
}

async fn send(job: &mut RequestJob, context: &Context, news: &mpsc::Sender<News>) -> Result<Reply, Failure> {
    let provider = context.provider(&job.spec).map_err(hopeless)?;
    let key = key(job, context).await?;
    learn(job, &provider, key.as_ref(), context).await;
    let error = match try_once(job, &provider, key.as_ref(), news).await {
        Ok(reply) => return Ok(reply),
        Err(error) if error.kind != ErrorKind::Authentication => error,
        Err(error) => {
            // Once with what the sources hold now, when that is another key.
            context.keys.forget_cached();
            let newer = self::key(job, context).await?;
            if newer == key {
                error
            } else {
                match try_once(job, &provider, newer.as_ref(), news).await {
                    Ok(reply) => return Ok(reply),
                    Err(error) => error,
                }
            }
        }
    };
    Err(Failure { cure: cure(&error, job.attempt, &context.waits()), problem: error.problem() })
}

/// Asks once what the model takes; what nobody answers is taken from the built-in table from then on.
async fn learn(job: &mut RequestJob, provider: &Provider, key: Option<&ApiKey>, context: &Context) {
    let (Source::Api(api), Provider::Anthropic(client)) = (&job.spec.source, provider) else { return };
    if api.provider == ProviderKind::Compat || job.conversation.takes.is_some() {
        return;
    }
    let model = &job.conversation.model;
    let found = client.capabilities(model, key).await.unwrap_or_else(|| capabilities_of(model));
    let found = Arc::new(found);
    context.learn(&api.base_url, model, Arc::clone(&found));
    job.conversation.max_tokens = job.conversation.max_tokens.min(found.output);
    job.conversation.takes = Some(found);
}

fn cure(error: &ModelError, attempt: u32, waits: &Waits) -> Cure {
    if error.kind == ErrorKind::SignatureInvalid {
        return Cure::WithoutThinking;
    }
    if matches!(error.kind, ErrorKind::PromptTooLong | ErrorKind::TooLarge) {
        return Cure::Shorter;
    }
    match retry::next_try(error, attempt, random(), waits) {
        Some(NextTry { after, parked }) => {
            let at = Timestamp::now().plus_ms(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
            Cure::Again { at, parked }
        }
        None => Cure::None,
    }
}

/// The key for the request, when its endpoint takes one.
async fn key(job: &RequestJob, context: &Context) -> Result<Option<ApiKey>, Failure> {
    let api = match &job.spec.source {
        Source::Scenario { .. } => return Ok(None),
        Source::Api(api) => api,
    };
    let key = context.keys.find(&api.base_url).await.map_err(|error| {
        hopeless(Problem {
            code: "key".into(),
            message: error.to_string(),
            hint: "mend it and send the prompt again".into(),
            request_id: None,
        })
    })?;
    if key.is_none() && api.provider == ProviderKind::Anthropic {
        let problem = no_key(&api.base_url, context);
        if !job.under_way {
            return Err(hopeless(problem));
        }
        let hint = "`agentctl retry` from a terminal with the key goes on".into();
        let at = Timestamp::now().plus_ms(context.config().retry.parked_wait.ms());
        return Err(Failure { problem: Problem { hint, ..problem }, cure: Cure::Again { at, parked: true } });
    }
    Ok(key)
}

async fn try_once(
    job: &RequestJob,
    provider: &Provider,
    key: Option<&ApiKey>,
    news: &mpsc::Sender<News>,
) -> Result<Reply, ModelError> {
    let (sender, mut progress) = mpsc::channel(PROGRESS_QUEUE_MAX);
    let sending = provider.send(&job.conversation, key, sender);
    tokio::pin!(sending);
    let mut batch = Vec::new();
    let mut next = Instant::now();
    let result = loop {
        tokio::select! {
            result = &mut sending => break result,
            count = progress.recv_many(&mut batch, PROGRESS_QUEUE_MAX), if !progress.is_closed() => {
                if count == 0 {
                    continue;
                }
                if Instant::now() < next {
                    tokio::select! {
                        result = &mut sending => break result,
                        () = sleep_until(next) => {}
                    }
                    while let Ok(piece) = progress.try_recv() {
                        batch.push(piece);
                    }
                }
                forward(job.request, &mut batch, news).await;
                next = Instant::now() + LIVE_PAUSE;
            }
        }
    };
    while let Ok(piece) = progress.try_recv() {
        batch.push(piece);
    }
    forward(job.request, &mut batch, news).await;
    result
}

/// Hands pieces on; neighbours of one block become one piece, so that a fast stream costs little.
async fn forward(request: RequestId, batch: &mut Vec<Progress>, news: &mpsc::Sender<News>) {
    let mut merged: Vec<Progress> = Vec::with_capacity(batch.len());
    for piece in batch.drain(..) {
        if let (Some(Progress::Delta { index, text }), Progress::Delta { index: next, text: more }) =
            (merged.last_mut(), &piece)
            && index == next
        {
            text.push_str(more);
            continue;
        }
        merged.push(piece);
    }
    for progress in merged {
        let _ = news.send(News::Progress { request, progress }).await;
    }
}

fn fault() -> Failure {
    hopeless(Problem {
        code: "internal".into(),
        message: "agentd failed while it spoke with the model".into(),
        hint: "its log says how; send the prompt again".into(),
        request_id: None,
    })
}

fn no_key(base_url: &str, context: &Context) -> Problem {
    Problem {
        code: "no_key".into(),
        message: format!("no API key for {base_url}"),
        hint: format!(
            "set ANTHROPIC_API_KEY in the terminal where you run agentctl, or model.key_file or model.key_helper in {}",
            context.paths.config_file().display()
        ),
        request_id: None,
    }
}

/// A number in [0, 1) for the back-off's jitter, from the random part of a UUID.
fn random() -> f64 {
    let bits = (uuid::Uuid::new_v4().as_u128() & 0xFFFF_FFFF) as u32;
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}
