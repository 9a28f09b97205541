//! A proxy in front of a server that can drop responses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Forwards bytes to a server. To drop a response, it forwards the request and closes the
/// connection when the response starts.
pub(crate) struct FaultProxy {
    pub(crate) address: SocketAddr,
    drop_next: Arc<AtomicBool>,
    dropped: Arc<AtomicUsize>,
}

impl FaultProxy {
    pub(crate) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            drop_next: Arc::default(),
            dropped: Arc::default(),
        };
        let (cutting, cut) = (Arc::clone(&proxy.drop_next), Arc::clone(&proxy.dropped));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(
                    client,
                    server,
                    Arc::clone(&cutting),
                    Arc::clone(&cut),
                ));
            }
        });
        proxy
    }

    /// Drops the next response.
    pub(crate) fn drop_next_response(&self) {
        self.drop_next.store(true, Ordering::SeqCst);
    }

    /// Returns how many responses were dropped.
    pub(crate) fn dropped_responses(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }
}

async fn forward(
    client: TcpStream,
    server: SocketAddr,
    cutting: Arc<AtomicBool>,
    cut: Arc<AtomicUsize>,
) {
    let server = TcpStream::connect(server).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
        let _ = to_server.shutdown().await;
    });
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count) = from_server.read(&mut bytes).await {
        if count == 0 {
            return;
        }
        // The server has performed the request and starts to respond.
        if cutting.swap(false, Ordering::SeqCst) {
            cut.fetch_add(1, Ordering::SeqCst);
            return;
        }
        if to_client.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
