//! TLS with a certificate generated for the test.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use throughline_server::Tls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::harness::{Server, ServerOptions};

#[tokio::test(flavor = "multi_thread")]
async fn the_same_is_served_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (chain, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&chain, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let server = Server::start_with(ServerOptions {
        tls: Some(Tls::from_pem_files(&chain, &key).unwrap()),
        ..ServerOptions::default()
    })
    .await;

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots);
    let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    let ask = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(ask).await.unwrap();
    let mut answered = Vec::new();
    // The peer may close without a TLS close notification.
    let _ = stream.read_to_end(&mut answered).await;
    let answered = String::from_utf8(answered).unwrap();
    assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");

    // A plain HTTP request is rejected and does no harm.
    let mut plain = TcpStream::connect(server.address()).await.unwrap();
    plain.write_all(ask).await.unwrap();
    let mut answered = Vec::new();
    let _ = plain.read_to_end(&mut answered).await;
    assert!(!answered.starts_with(b"HTTP/1.1 200"));
}

#[test]
fn an_invalid_certificate_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("cert.pem");
    std::fs::write(&wrong, "not a certificate").unwrap();
    let refused = Tls::from_pem_files(&wrong, &wrong).unwrap_err().to_string();
    assert!(refused.contains("cert.pem"), "{refused}");
    let missing = folder.path().join("nothing.pem");
    assert!(Tls::from_pem_files(&missing, &missing).is_err());
}
