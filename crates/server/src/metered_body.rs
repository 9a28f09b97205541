//! Response bodies that hold quota permits until they are sent, and that end when the reader's
//! access ends.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use serde_json::json;

use crate::access_monitor::AccessEndReason;
use crate::guard::StreamSlot;
use crate::quota::QuotaPermit;

/// Bodies larger than this count against the quota until they are sent.
pub(crate) const METERED_MIN_BYTES: u64 = 16 * 1024;

/// How a body ends when its reader's access ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseMode {
    /// With an event named `closed`.
    Event,
    /// With the error event of OpenAI streams.
    OpenAiError,
    /// With an abort, so that nobody takes the body for complete.
    Abort,
}

impl CloseMode {
    fn final_frame(self, end: AccessEndReason, events: u64) -> Option<Bytes> {
        let detail = end.detail();
        let (name, data) = match self {
            Self::Event => ("closed", json!({"code": "unauthorized", "detail": detail})),
            Self::OpenAiError => (
                "error",
                json!({"type": "error", "sequence_number": events, "code": "invalid_api_key",
                    "message": detail, "param": null}),
            ),
            Self::Abort => return None,
        };
        Some(format!("event: {name}\ndata: {data}\n\n").into())
    }
}

/// A response body that holds quota permits.
pub(crate) struct MeteredBody {
    inner: Body,
    _permits: Vec<QuotaPermit>,
    access: Option<StreamAccess>,
    done: bool,
}

struct StreamAccess {
    ended: Pin<Box<dyn Future<Output = AccessEndReason> + Send>>,
    close_mode: CloseMode,
    /// Number of events sent.
    events: u64,
    _slot: Arc<StreamSlot>,
}

impl MeteredBody {
    /// Wraps a body so that it holds the permits until it is sent.
    pub(crate) fn with_permits(inner: Body, shares: Vec<QuotaPermit>) -> Body {
        Body::new(Self {
            inner,
            _permits: shares,
            access: None,
            done: false,
        })
    }

    /// Wraps a stream so that it ends when its reader's access ends.
    pub(crate) fn for_stream(inner: Body, slot: Arc<StreamSlot>, closing: CloseMode) -> Body {
        Body::new(Self {
            inner,
            _permits: Vec::new(),
            access: Some(StreamAccess {
                ended: Box::pin(slot.watch.ended()),
                close_mode: closing,
                events: 0,
                _slot: slot,
            }),
            done: false,
        })
    }
}

impl HttpBody for MeteredBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if this.done {
            return Poll::Ready(None);
        }
        if let Some(access) = &mut this.access
            && let Poll::Ready(end) = access.ended.as_mut().poll(cx)
        {
            this.done = true;
            let last = access.close_mode.final_frame(end, access.events);
            // Drop the source now: a slow reader must not keep it alive.
            this.inner = Body::empty();
            return Poll::Ready(Some(match last {
                Some(last) => Ok(Frame::data(last)),
                None => Err(axum::Error::new(std::io::Error::other(end.detail()))),
            }));
        }
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(cx));
        if let (Some(access), Some(Ok(frame))) = (&mut this.access, &frame)
            && access.close_mode == CloseMode::OpenAiError
            && let Some(data) = frame.data_ref()
        {
            access.events += data.windows(7).filter(|part| *part == b"event: ").count() as u64;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.done || (self.access.is_none() && self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        if self.access.is_some() {
            return SizeHint::default();
        }
        self.inner.size_hint()
    }
}
