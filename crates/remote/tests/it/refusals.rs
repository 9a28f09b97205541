//! Errors reported to clients that are refused.

use std::net::SocketAddr;
use std::time::Duration;

use throughline_model::{Digest, SessionHeader, Timestamp, TokenRole};
use throughline_remote::{BearerToken, RemoteError, RemoteStore, Timeouts};
use throughline_store::{ApiTokens, ErrorKind, LogStore, Maintenance, StoreError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::harness::{TestServer, open, owner, timeouts, url};

fn header(id: &str) -> SessionHeader {
    SessionHeader::new(id.parse().unwrap(), Timestamp::UNIX_EPOCH)
}

/// Returns the client-side error inside a store error.
#[track_caller]
fn remote_error(error: &StoreError) -> &RemoteError {
    let StoreError::Remote {
        source: Some(source),
        message,
        kind,
    } = error
    else {
        panic!("{error:?}");
    };
    let remote: &RemoteError = source.downcast_ref().unwrap();
    assert_eq!((message, *kind), (&remote.to_string(), remote.kind()));
    remote
}

#[tokio::test]
async fn an_invalid_token_is_distinguished_from_none() {
    let served = TestServer::start().await;
    let unknown = BearerToken::new("tl_unknown").unwrap();
    let refused = open(served.address, &unknown).await.unwrap_err();
    assert!(matches!(
        remote_error(&refused),
        RemoteError::TokenRefused { .. }
    ));
    assert!(!format!("{refused:?}").contains("tl_unknown"));

    let server = url(served.address);
    let refused = RemoteStore::open(&server, None, None, timeouts()).await;
    assert!(matches!(
        remote_error(&refused.unwrap_err()),
        RemoteError::TokenRequired { .. }
    ));

    // A token that is revoked while in use.
    let store = served.store("ada").await;
    assert!(!format!("{store:?}").contains("tl_"));
    for token in served.tl.tokens().await.unwrap() {
        served.tl.revoke_token(&token.id).await.unwrap();
    }
    let ada = owner("ada");
    let refused = loop {
        // The server caches the token for up to a second.
        match store.create(&ada, header("s")).await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(error) => break error,
        }
    };
    assert!(matches!(
        remote_error(&refused),
        RemoteError::TokenRefused { .. }
    ));
}

#[tokio::test]
async fn whose_store_it_is_follows_from_the_token_alone() {
    let served = TestServer::start().await;
    let store = served.store("ada").await;
    let eve = owner("eve");
    // Not even sent: there is no token for that owner.
    let refused = store.create(&eve, header("s")).await.unwrap_err();
    assert!(matches!(
        remote_error(&refused),
        RemoteError::WrongOwner { .. }
    ));

    let token = served.create_token("ada", TokenRole::User).await;
    let refused =
        RemoteStore::open(&url(served.address), Some(&token), Some(&eve), timeouts()).await;
    assert!(matches!(
        remote_error(&refused.unwrap_err()),
        RemoteError::WrongOwner { .. }
    ));

    // A client that names another owner to the server finds nothing.
    let (status, body) = list_projects_raw(served.address, &token, "eve").await;
    assert_eq!(status, "404", "{body}");
    assert!(body.contains("owner_not_found"), "{body}");
    let (status, body) = list_projects_raw(served.address, &token, "ada").await;
    assert_eq!(status, "200", "{body}");
}

/// Counts an owner's sessions with a token, using a raw request.
async fn list_projects_raw(
    server: SocketAddr,
    token: &BearerToken,
    believed: &str,
) -> (String, String) {
    let mut stream = tokio::net::TcpStream::connect(server).await.unwrap();
    let request = format!(
        "POST /store/v1/projects HTTP/1.1\r\nhost: {server}\r\nauthorization: Bearer {}\r\n\
         throughline-owner: {believed}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}",
        token.expose(),
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().to_owned();
    (status, answer)
}

#[tokio::test]
async fn a_service_reaches_its_users_and_nobody_else() {
    let served = TestServer::start().await;
    let token = served.create_token("bot", TokenRole::Service).await;
    let server = url(served.address);
    let ann = owner("bot/Ånn");
    let store = RemoteStore::open(&server, Some(&token), Some(&ann), timeouts())
        .await
        .unwrap();
    assert_eq!(store.owner(), &ann);
    store.create(&ann, header("s")).await.unwrap();
    assert_eq!(served.tl.store().owners().await.unwrap(), [ann]);

    for other in ["ann", "tob/ann"] {
        let other = owner(other);
        let refused = RemoteStore::open(&server, Some(&token), Some(&other), timeouts()).await;
        assert!(matches!(
            remote_error(&refused.unwrap_err()),
            RemoteError::WrongOwner { .. }
        ));
    }
}

#[tokio::test]
async fn what_is_the_servers_business_says_where_to_do_it() {
    let served = TestServer::start().await;
    let store = served.store("ada").await;
    let refused = [
        store.list_tokens().await.map(|_| ()),
        store.token_by_hash(&Digest::of(b"x")).await.map(|_| ()),
        store.check(&|_, _| ()).await.map(|_| ()),
        store.rebuild(&|_, _| ()).await.map(|_| ()),
        store.backup("x".as_ref(), &|_, _| ()).await,
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        assert!(text.contains("on the server"), "{text}");
    }
    assert_eq!(store.owners().await.unwrap(), [owner("ada")]);
}

/// Starts a server that answers every request with this.
async fn foreign_server(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = [0; 4096];
            let _ = stream.read(&mut bytes).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn something_else_at_the_address_is_recognised() {
    let token = BearerToken::new("tl_x").unwrap();
    for answer in [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi",
        "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 301 Moved\r\nlocation: http://127.0.0.1:1/\r\nconnection: close\r\n\
         content-length: 0\r\n\r\n",
    ] {
        let address = foreign_server(answer).await;
        let refused = open(address, &token).await.unwrap_err();
        let remote = remote_error(&refused);
        assert!(
            matches!(remote, RemoteError::NotThroughline { .. }),
            "{remote} for {answer}"
        );
    }
    let later = "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 37\r\n\r\n\
                 {\"throughline\":\"9.0.0\",\"store\":[2,3]}";
    let refused = open(foreign_server(later).await, &token).await.unwrap_err();
    assert!(matches!(
        remote_error(&refused),
        RemoteError::UnsupportedVersion { .. }
    ));
    assert!(
        refused.to_string().contains("Throughline 9.0.0"),
        "{refused}"
    );
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let hasty = Timeouts {
        connect_deadline: Duration::from_millis(200),
        ..Timeouts::default()
    };
    let token = BearerToken::new("tl_x").unwrap();
    let refused = RemoteStore::open(&url(address), Some(&token), None, hasty).await;
    let refused = refused.unwrap_err();
    assert!(matches!(
        remote_error(&refused),
        RemoteError::Unreachable { .. }
    ));
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
}
