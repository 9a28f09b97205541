//! Reads request bodies without holding them in memory while they arrive.
//!
//! A small body is read into memory. A larger one goes to an unnamed temporary file, so that only
//! this process can read it and nothing is left after a crash; once complete, it is read back when
//! there is memory for it.
//!
//! Invariants: the memory used by incomplete bodies does not depend on their size; bytes count
//! against their caller's quota until the request is answered.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use http_body_util::BodyExt as _;
use tokio::sync::OwnedSemaphorePermit;

use crate::quota::{CallerKey, QuotaPermit};
use crate::{App, Problem};

/// Bodies up to this size stay in memory; larger ones are spooled in chunks of this size.
const MAX_IN_MEMORY: usize = 64 * 1024;

/// What a request holds until it is answered.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    pub(crate) caller: CallerKey,
    held_permits: Mutex<Vec<(QuotaPermit, Option<OwnedSemaphorePermit>)>>,
}

impl InFlightRequest {
    pub(crate) fn new(caller: CallerKey) -> Self {
        Self {
            caller,
            held_permits: Mutex::default(),
        }
    }

    fn hold_permit(&self, share: QuotaPermit, memory: Option<OwnedSemaphorePermit>) {
        let mut held = self
            .held_permits
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        held.push((share, memory));
    }
}

/// Reads the whole body, within the size limit and the timeout.
pub(crate) async fn read_body(
    request: Request,
    app: &App,
    most: usize,
) -> Result<Vec<u8>, Problem> {
    let length = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse::<usize>().ok());
    if length.is_some_and(|length| length > most) {
        return Err(body_too_large(most));
    }
    let flight = request.extensions().get::<Arc<InFlightRequest>>().cloned();
    let Some(flight) = flight else {
        return Err(Problem::bad_request(
            "body_cut_off",
            "the request did not pass the guard",
        ));
    };
    let mut share = app.body_quota.acquire(&flight.caller, 0)?;
    let arrived = receive_body(request.into_body(), app, most, &mut share);
    let arrived = match tokio::time::timeout(app.limits().body_timeout, arrived).await {
        Ok(arrived) => arrived?,
        Err(_) => {
            return Err(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "body_too_slow",
                "the body did not arrive in time",
            ));
        }
    };
    match arrived {
        ReceivedBody::InMemory(bytes) => {
            flight.hold_permit(share, None);
            Ok(bytes)
        }
        ReceivedBody::Spooled(spool) => {
            let memory = app.acquire_body_memory(spool.bytes).await?;
            let bytes = spool.read_back().await?;
            flight.hold_permit(share, Some(memory));
            Ok(bytes)
        }
    }
}

enum ReceivedBody {
    InMemory(Vec<u8>),
    Spooled(Spool),
}

async fn receive_body(
    mut body: Body,
    app: &App,
    most: usize,
    share: &mut QuotaPermit,
) -> Result<ReceivedBody, Problem> {
    let mut buffer = Vec::new();
    let mut spool: Option<Spool> = None;
    let mut total = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Problem::bad_request("body_cut_off", format!("the body was cut off: {error}"))
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        total += data.len();
        if total > most {
            return Err(body_too_large(most));
        }
        share.grow(data.len())?;
        buffer.extend_from_slice(&data);
        if buffer.len() > MAX_IN_MEMORY {
            let to = match spool.take() {
                Some(spool) => spool,
                None => Spool::create(app.config.spool_dir.clone()).await?,
            };
            spool = Some(to.write(std::mem::take(&mut buffer)).await?);
        }
    }
    match spool {
        None => Ok(ReceivedBody::InMemory(buffer)),
        Some(spool) => Ok(ReceivedBody::Spooled(spool.write(buffer).await?)),
    }
}

fn body_too_large(most: usize) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body_too_large",
        format!("the body is too large: at most {most} bytes"),
    )
}

/// A body being written to disk.
struct Spool {
    file: File,
    bytes: usize,
}

impl Spool {
    async fn create(folder: Option<PathBuf>) -> Result<Self, Problem> {
        // Unnamed, and readable by nobody else.
        let file = run_blocking_io(move || match folder {
            Some(folder) => tempfile::tempfile_in(folder),
            None => tempfile::tempfile(),
        });
        Ok(Self {
            file: file.await?,
            bytes: 0,
        })
    }

    async fn write(mut self, bytes: Vec<u8>) -> Result<Self, Problem> {
        run_blocking_io(move || {
            self.file.write_all(&bytes)?;
            self.bytes += bytes.len();
            Ok(self)
        })
        .await
    }

    async fn read_back(mut self) -> Result<Vec<u8>, Problem> {
        run_blocking_io(move || {
            let mut bytes = Vec::with_capacity(self.bytes);
            self.file.rewind()?;
            self.file.read_to_end(&mut bytes)?;
            Ok(bytes)
        })
        .await
    }
}

async fn run_blocking_io<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    let failed = match done {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::error!(error = failed, "cannot write a large body to disk");
    Err(Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "no_room",
        format!("not enough disk space for a large body: {failed}"),
    )
    .with_retry_after(5))
}
