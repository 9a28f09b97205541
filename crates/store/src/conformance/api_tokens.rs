//! Conformance cases for API tokens.

use throughline_model::{ApiToken, Digest, Owner, TokenId, TokenRole};

use super::{at, next_counter};
use crate::{ApiTokens, ErrorKind, Store};

fn token(text: &str, second: i64) -> ApiToken {
    ApiToken {
        id: TokenId::mint(next_counter().to_le_bytes()),
        owner: Owner::local(),
        role: TokenRole::User,
        label: None,
        hash: Digest::of(text.as_bytes()),
        created_at: at(second),
        expires_at: None,
        revoked_at: None,
    }
}

/// A stored token is found by its hash, complete.
pub async fn a_token_is_found_by_its_hash<S: Store>(store: &S) {
    let bot: Owner = "bot".parse().unwrap();
    let stored = ApiToken {
        owner: bot.clone(),
        role: TokenRole::Service,
        label: Some("the bot's \"own\" — ключ".to_owned()),
        expires_at: Some(at(100)),
        ..token("one", 1)
    };
    store.insert_token(&stored).await.unwrap();
    store.insert_token(&token("two", 2)).await.unwrap();
    let found = store.token_by_hash(&Digest::of(b"one")).await.unwrap();
    assert_eq!(found, Some(stored));
    assert_eq!(
        store.token_by_hash(&Digest::of(b"three")).await.unwrap(),
        None
    );
}

/// A revoked token is still found, with the time of its first revocation.
pub async fn a_revoked_token_stays_on_record<S: Store>(store: &S) {
    let stored = token("one", 1);
    store.insert_token(&stored).await.unwrap();
    let taken = store.revoke_token(&stored.id, at(5)).await.unwrap();
    assert_eq!(taken.revoked_at, Some(at(5)));
    let again = store.revoke_token(&stored.id, at(9)).await.unwrap();
    assert_eq!(again, taken);
    let found = store.token_by_hash(&stored.hash).await.unwrap();
    assert_eq!(found.as_ref(), Some(&taken));
    let nobody = TokenId::mint([9; 8]);
    let error = store.revoke_token(&nobody, at(5)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// All tokens are listed, the oldest first, valid or not.
pub async fn tokens_are_listed_in_the_order_they_were_made<S: Store>(store: &S) {
    assert_eq!(store.list_tokens().await.unwrap(), []);
    let (late, early) = (token("late", 9), token("early", 1));
    store.insert_token(&late).await.unwrap();
    store.insert_token(&early).await.unwrap();
    store.revoke_token(&early.id, at(10)).await.unwrap();
    let listed = ApiTokens::list_tokens(store).await.unwrap();
    let ids: Vec<_> = listed.iter().map(|token| &token.id).collect();
    assert_eq!(ids, [&early.id, &late.id]);
}

/// An id or hash cannot be used twice.
pub async fn one_hash_is_one_token<S: Store>(store: &S) {
    let first = token("same", 1);
    store.insert_token(&first).await.unwrap();
    let hash = store.insert_token(&token("same", 2)).await.unwrap_err();
    assert_eq!(hash.kind(), ErrorKind::Conflict);
    let id = ApiToken {
        id: first.id.clone(),
        ..token("other", 3)
    };
    let id = store.insert_token(&id).await.unwrap_err();
    assert_eq!(id.kind(), ErrorKind::Conflict);
    assert_eq!(store.list_tokens().await.unwrap(), [first]);
}
