//! API tokens: issued here, shown once, stored only as a hash.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use throughline_model::{ApiToken, Digest, Owner, TOKEN_PREFIX, Timestamp, TokenId, TokenRole};

use crate::{Error, Throughline};

/// The properties of a new token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// The owner that its bearer acts for.
    pub owner: Owner,
    /// What its bearer may do.
    pub role: TokenRole,
    /// A note on what it is for.
    pub label: Option<String>,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

/// A token that was just issued, with its text, which is not stored.
pub struct IssuedToken {
    /// The token's stored record.
    pub token: ApiToken,
    /// Its text, for the client that will use it.
    pub text: String,
}

impl std::fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedToken")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

impl Throughline {
    /// Issues a token of 256 random bits.
    pub async fn issue_token(&self, new: NewToken) -> Result<IssuedToken, Error> {
        if new.owner.is_service_user() {
            return Err(Error::OwnerOfService(new.owner));
        }
        let (mut secret, mut id) = ([0; 32], [0; 8]);
        self.environment.fill_random(&mut secret);
        self.environment.fill_random(&mut id);
        let text = format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(secret));
        let token = ApiToken {
            id: TokenId::mint(id),
            owner: new.owner,
            role: new.role,
            label: new.label,
            hash: Digest::of(text.as_bytes()),
            created_at: throughline_model::truncate_to_micros(self.now()),
            expires_at: new.expires_at.map(throughline_model::truncate_to_micros),
            revoked_at: None,
        };
        self.store.insert_token(&token).await?;
        Ok(IssuedToken { token, text })
    }

    /// Returns the token with this text, even if it has expired or been revoked.
    pub async fn token(&self, text: &str) -> Result<Option<ApiToken>, Error> {
        Ok(self
            .store
            .token_by_hash(&Digest::of(text.as_bytes()))
            .await?)
    }

    /// Returns every token ever issued, oldest first.
    pub async fn tokens(&self) -> Result<Vec<ApiToken>, Error> {
        Ok(self.store.list_tokens().await?)
    }

    /// Revokes a token.
    pub async fn revoke_token(&self, id: &TokenId) -> Result<ApiToken, Error> {
        Ok(self.store.revoke_token(id, self.now()).await?)
    }
}
