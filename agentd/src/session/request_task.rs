//! The task of one request to the model: one try, its progress as it comes, then its reply or why there is none.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use proto::event::Problem;
use proto::ids::{RequestId, Timestamp};
use tokio::sync::mpsc;

use super::Context;
use super::machine::Input;
use super::news::News;
use super::spec::{Source, Spec};
use crate::config::ProviderKind;
use crate::model::{Conversation, ErrorKind, ModelError, Progress, Provider, Reply, retry};

/// Progress pieces that may wait between the stream and the session.
const PROGRESS_QUEUE_MAX: usize = 256;

/// One try of a request.
#[derive(Debug)]
pub(super) struct RequestJob {
    /// The request.
    pub request: RequestId,
    /// From 1.
    pub attempt: u32,
    /// What is sent.
    pub conversation: Conversation,
    /// Where.
    pub spec: Arc<Spec>,
}

/// Sends it and tells the session.
pub(super) async fn run(job: RequestJob, context: Arc<Context>, news: mpsc::Sender<News>) {
    let request = job.request;
    // A fault of ours ends this try, not the session.
    let sent = AssertUnwindSafe(send(&job, &context, &news)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(%request, "a request's task panicked");
        Err(fault())
    });
    let input = match sent {
        Ok(reply) => Input::ReplyArrived { request, reply: Box::new(reply) },
        Err(failure) => {
            tracing::info!(%request, attempt = job.attempt, code = %failure.problem.code, "request failed");
            Input::RequestFailed { request, problem: failure.problem, next_try: failure.next_try }
        }
    };
    let _ = news.send(News::Happened(Box::new(input))).await;
}

struct Failure {
    problem: Problem,
    next_try: Option<Timestamp>,
}

async fn send(job: &RequestJob, context: &Context, news: &mpsc::Sender<News>) -> Result<Reply, Failure> {
    let provider = context.provider(&job.spec).map_err(|problem| Failure { problem, next_try: None })?;
    let key = match &job.spec.source {
        Source::Scenario { .. } => None,
        Source::Api(api) => {
            let key = context.keys.find(&api.base_url).await.map_err(|error| Failure {
                problem: Problem {
                    code: "key".into(),
                    message: error.to_string(),
                    hint: "mend it and send the prompt again".into(),
                    request_id: None,
                },
                next_try: None,
            })?;
            if key.is_none() && api.provider == ProviderKind::Anthropic {
                return Err(Failure { problem: no_key(&api.base_url, context), next_try: None });
            }
            key
        }
    };
    match try_once(job, &provider, key.as_ref(), news).await {
        Ok(reply) => Ok(reply),
        Err(error) => {
            if error.kind == ErrorKind::Authentication {
                context.keys.forget_cached();
            }
            let delay = retry::next_try(&error, job.attempt, random());
            let next_try =
                delay.map(|delay| Timestamp::now().plus_ms(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)));
            Err(Failure { problem: error.problem(), next_try })
        }
    }
}

async fn try_once(
    job: &RequestJob,
    provider: &Provider,
    key: Option<&crate::model::ApiKey>,
    news: &mpsc::Sender<News>,
) -> Result<Reply, ModelError> {
    let (sender, mut progress) = mpsc::channel(PROGRESS_QUEUE_MAX);
    let sending = provider.send(&job.conversation, key, sender);
    tokio::pin!(sending);
    let mut batch = Vec::new();
    let result = loop {
        tokio::select! {
            count = progress.recv_many(&mut batch, PROGRESS_QUEUE_MAX), if !progress.is_closed() => {
                if count > 0 {
                    forward(job.request, &mut batch, news).await;
                }
            }
            result = &mut sending => break result,
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
    Failure {
        problem: Problem {
            code: "internal".into(),
            message: "agentd failed while it spoke with the model".into(),
            hint: "its log says how; send the prompt again".into(),
            request_id: None,
        },
        next_try: None,
    }
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
