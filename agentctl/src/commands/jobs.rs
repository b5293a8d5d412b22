//! `jobs`, `job`, `kill`, `background`, `env`: commands that run beside a session's turns, and its shell's environment.

use proto::ids::Timestamp;
use proto::job::{Background, JobOutput, ListJobs, READ_BYTES_MAX, READ_WAIT_MS_MAX, ReadJob, ShowEnv, StopJob};
use proto::request::Request;

use super::open;
use super::session::selector;
use crate::cli::{JobArgs, JobsArgs, KillArgs, SessionJsonArgs};
use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::{jobs, notes};

pub(super) async fn list(args: JobsArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let all = crate::answer!(connection, Request::ListJobs(ListJobs { session: args.session }), Jobs)?.jobs;
    if args.json {
        all.iter().try_for_each(|job| screen.json(job))?;
    } else if all.is_empty() {
        screen.line(&notes::remark("no background commands"))?;
    } else {
        let columns = if context.tty.stdout { screen.columns() } else { usize::MAX };
        for line in jobs::list(&all, Timestamp::now(), columns) {
            screen.out_line(&line)?;
        }
    }
    Ok(Exit::Done)
}

pub(super) async fn output(args: JobArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let mut since = args.since;
    loop {
        let wait_ms = if args.follow { READ_WAIT_MS_MAX } else { 0 };
        let piece = read(&args.id, since, wait_ms, &mut connection).await?;
        let gap = piece.offset.saturating_sub(since);
        since = piece.offset + piece.bytes;
        let last = since >= piece.total && (piece.over || !args.follow);
        if args.json {
            if piece.bytes > 0 || last {
                screen.json(&piece)?;
            }
        } else {
            if gap > 0 {
                screen.line(&notes::notice(&format!("{gap} bytes of output were not kept")))?;
            }
            screen.text(&piece.text)?;
            if last {
                screen.line(&jobs::one(&piece.job))?;
            }
        }
        if last {
            return Ok(Exit::Done);
        }
    }
}

async fn read(job: &str, since: u64, wait_ms: u64, connection: &mut Connection) -> Result<JobOutput, CtlError> {
    let wish = ReadJob { job: job.to_owned(), since, max: READ_BYTES_MAX, wait_ms };
    crate::answer!(connection, Request::ReadJob(wish), JobOutput)
}

pub(super) async fn kill(args: KillArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let asked = crate::answer!(connection, Request::StopJob(StopJob { job: args.id }), Job)?;
    // Its end follows in a moment: a reader is told how it went.
    let id = asked.job.to_string();
    let ended = until_over(&id, asked.output_bytes, &mut connection).await?;
    if args.json {
        screen.json(&ended.job)?;
    } else {
        screen.line(&jobs::one(&ended.job))?;
    }
    Ok(Exit::Done)
}

/// Waits until a job that is being ended is over. What it prints meanwhile is passed over.
async fn until_over(job: &str, mut since: u64, connection: &mut Connection) -> Result<JobOutput, CtlError> {
    loop {
        let piece = read(job, since, READ_WAIT_MS_MAX, connection).await?;
        if piece.over {
            return Ok(piece);
        }
        since = piece.offset + piece.bytes;
    }
}

pub(super) async fn background(args: SessionJsonArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let session = selector(args.session, &mut connection, context).await?;
    let moving = crate::answer!(connection, Request::Background(Background { session }), Moving)?;
    if args.json {
        screen.json(&moving)?;
    } else {
        let id = moving.job.short();
        screen.line(&notes::remark(&format!("moving the command to the background as job {id}; agentctl job {id}")))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn env(args: SessionJsonArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let session = selector(args.session, &mut connection, context).await?;
    let env = crate::answer!(connection, Request::ShowEnv(ShowEnv { session }), Environment)?;
    if args.json {
        screen.json(&env)?;
        return Ok(Exit::Done);
    }
    jobs::environment(&env).iter().try_for_each(|line| screen.out_line(line))?;
    if let Some(line) = jobs::removed(&env) {
        screen.line(&line)?;
    }
    Ok(Exit::Done)
}
