//! Tokens: made here, shown once, kept as a hash.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use throughline_model::{ApiToken, Digest, Owner, TOKEN_PREFIX, Timestamp, TokenId, TokenRole};

use crate::{Error, Throughline};

/// A token to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// On whose behalf it will call.
    pub owner: Owner,
    /// What it may do.
    pub role: TokenRole,
    /// What it is for.
    pub label: Option<String>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

/// A token that was just made: the only moment its text is known.
pub struct IssuedToken {
    /// What is known of it.
    pub token: ApiToken,
    /// Its text, for whoever will call with it.
    pub text: String,
}

impl std::fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeToken")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

impl Throughline {
    /// Makes a token of 256 random bits.
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

    /// The token with this text, whether or not it still counts.
    pub async fn token(&self, text: &str) -> Result<Option<ApiToken>, Error> {
        Ok(self
            .store
            .token_by_hash(&Digest::of(text.as_bytes()))
            .await?)
    }

    /// Every token there ever was, oldest first.
    pub async fn tokens(&self) -> Result<Vec<ApiToken>, Error> {
        Ok(self.store.list_tokens().await?)
    }

    /// Takes a token back.
    pub async fn revoke_token(&self, id: &TokenId) -> Result<ApiToken, Error> {
        Ok(self.store.revoke_token(id, self.now()).await?)
    }
}
