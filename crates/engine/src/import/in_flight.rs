//! A store operation in progress.

use std::fmt;
use std::future::ready;
use std::task::Poll;

use futures_util::future::BoxFuture;
use futures_util::poll;

/// A store operation that has been started and continues whether or not it is awaited.
pub(super) struct InFlight<T>(BoxFuture<'static, T>);

impl<T: Send + 'static> InFlight<T> {
    /// Starts the operation.
    pub(super) async fn start(operation: impl Future<Output = T> + Send + 'static) -> Self {
        let mut operation: BoxFuture<'static, T> = Box::pin(operation);
        Self(match poll!(operation.as_mut()) {
            Poll::Ready(done) => Box::pin(ready(done)),
            Poll::Pending => operation,
        })
    }

    /// Waits for the result. May be cancelled and called again until it has returned.
    pub(super) async fn outcome(&mut self) -> T {
        self.0.as_mut().await
    }
}

impl<T> fmt::Debug for InFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InFlight")
    }
}
