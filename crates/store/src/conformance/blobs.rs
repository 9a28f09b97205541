//! Conformance cases for attachments.

use throughline_model::{Attachment, Block, Digest, Message, Role};

use super::{at, check_store, message_entry, owner, session_with};
use crate::{Append, ErrorKind, Store};

fn picture(blob: Digest) -> Message {
    let mut picture = Message::text(Role::User, "look");
    picture.content.0.push(Block::Attachment(Attachment {
        blob,
        media_type: "image/png".into(),
        bytes: 3,
        name: Some("a.png".into()),
    }));
    picture
}

/// Stored bytes are returned unchanged.
pub async fn stored_bytes_are_returned<S: Store>(store: &S) {
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let digest = store.put_blob(&owner(), bytes.clone()).await.unwrap();
    assert_eq!(digest, Digest::of(&bytes));
    assert_eq!(store.blob(&owner(), &digest).await.unwrap(), bytes);
    let none = store.blob(&owner(), &Digest::of(b"none")).await;
    assert_eq!(none.unwrap_err().kind(), ErrorKind::NotFound);
}

/// The same bytes are stored once.
pub async fn the_same_bytes_are_one_blob<S: Store>(store: &S) {
    let first = store.put_blob(&owner(), b"png".to_vec()).await.unwrap();
    let again = store.put_blob(&owner(), b"png".to_vec()).await.unwrap();
    assert_eq!(first, again);
    let blobs = check_store(store).await.map(|report| report.blobs);
    assert!(blobs.is_none_or(|blobs| blobs == 1), "{blobs:?}");
}

/// An entry cannot refer to a missing attachment.
pub async fn an_append_needs_its_attachments<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let missing = Append::unconditional(vec![message_entry(picture(Digest::of(b"png")))]);
    let refused = store.append(&session, missing).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    let blob = store.put_blob(&owner(), b"png".to_vec()).await.unwrap();
    store
        .append(
            &session,
            Append::unconditional(vec![message_entry(picture(blob))]),
        )
        .await
        .unwrap();
}

/// Removing a session removes its attachments, unless another session uses them too.
pub async fn removal_deletes_unshared_attachments<S: Store>(store: &S) {
    let one = session_with(store, "one", &[]).await;
    let two = session_with(store, "two", &[]).await;
    let shared = store.put_blob(&owner(), b"both".to_vec()).await.unwrap();
    let own = store.put_blob(&owner(), b"mine".to_vec()).await.unwrap();
    store
        .append(
            &one,
            Append::unconditional(vec![
                message_entry(picture(shared)),
                message_entry(picture(own)),
            ]),
        )
        .await
        .unwrap();
    store
        .append(
            &two,
            Append::unconditional(vec![message_entry(picture(shared))]),
        )
        .await
        .unwrap();
    store.trash(&one, at(0)).await.unwrap();
    assert!(store.blob(&owner(), &own).await.is_ok());
    store.remove(&one).await.unwrap();
    assert!(store.blob(&owner(), &own).await.is_err());
    assert!(store.blob(&owner(), &shared).await.is_ok());
}
