//! Tokens.

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

/// What was kept comes back whole, by the hash and by nothing else.
pub async fn a_token_is_found_by_its_hash<S: Store>(store: &S) {
    let bot: Owner = "bot".parse().unwrap();
    let kept = ApiToken {
        owner: bot.clone(),
        role: TokenRole::Service,
        label: Some("the bot's \"own\" — ключ".to_owned()),
        expires_at: Some(at(100)),
        ..token("one", 1)
    };
    store.insert_token(&kept).await.unwrap();
    store.insert_token(&token("two", 2)).await.unwrap();
    let found = store.token_by_hash(&Digest::of(b"one")).await.unwrap();
    assert_eq!(found, Some(kept));
    assert_eq!(
        store.token_by_hash(&Digest::of(b"three")).await.unwrap(),
        None
    );
}

/// A token that was taken back is still known, as of the first time.
pub async fn a_revoked_token_says_so_and_stays<S: Store>(store: &S) {
    let kept = token("one", 1);
    store.insert_token(&kept).await.unwrap();
    let taken = store.revoke_token(&kept.id, at(5)).await.unwrap();
    assert_eq!(taken.revoked_at, Some(at(5)));
    let again = store.revoke_token(&kept.id, at(9)).await.unwrap();
    assert_eq!(again, taken);
    let found = store.token_by_hash(&kept.hash).await.unwrap();
    assert_eq!(found.as_ref(), Some(&taken));
    let nobody = TokenId::mint([9; 8]);
    let error = store.revoke_token(&nobody, at(5)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// All of them, the oldest first, whether or not they count.
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

/// Neither an id nor a hash serves twice.
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
