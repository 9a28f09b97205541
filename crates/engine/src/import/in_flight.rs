//! Something the store was asked to do.

use std::fmt;
use std::future::ready;
use std::task::Poll;

use futures_util::future::BoxFuture;
use futures_util::poll;

/// Something the store was asked to do, and goes on with whether or not anybody waits for it.
pub(super) struct InFlight<T>(BoxFuture<'static, T>);

impl<T: Send + 'static> InFlight<T> {
    /// Asks for it.
    pub(super) async fn start(doing: impl Future<Output = T> + Send + 'static) -> Self {
        let mut doing: BoxFuture<'static, T> = Box::pin(doing);
        Self(match poll!(doing.as_mut()) {
            Poll::Ready(done) => Box::pin(ready(done)),
            Poll::Pending => doing,
        })
    }

    /// What came of it. May be dropped and asked for again until it was told.
    pub(super) async fn outcome(&mut self) -> T {
        self.0.as_mut().await
    }
}

impl<T> fmt::Debug for InFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}
