//! API tokens, which authenticate the callers of a server.
//!
//! Invariant: only the token's hash is stored. The token itself is shown once, when it
//! is created.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name::serde_via_str;
use crate::{Digest, IdError, Owner, Timestamp};

/// The prefix of every token, so that people and secret scanners recognize it.
pub const TOKEN_PREFIX: &str = "tl_";

/// The permissions of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenRole {
    /// Everything its owner may do.
    #[default]
    User,
    /// Everything its owner may do, also on behalf of the users of its service.
    Service,
    /// Everything its owner may do, and create tokens for others.
    Admin,
}

impl TokenRole {
    /// The role as serialized.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Service => "service",
            Self::Admin => "admin",
        }
    }
}

impl std::fmt::Display for TokenRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TokenRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "user" => Ok(Self::User),
            "service" => Ok(Self::Service),
            "admin" => Ok(Self::Admin),
            other => Err(format!(
                "{other:?} is not a token role: use user, service or admin"
            )),
        }
    }
}

/// The public identifier of a token. Not a secret.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenId(String);

impl TokenId {
    /// Generates an id from random bytes.
    pub fn mint(random: [u8; 8]) -> Self {
        let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("tk-{hex}"))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TokenId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let hex = text.strip_prefix("tk-").unwrap_or_default();
        if hex.len() == 16 && hex.chars().all(|c| c.is_ascii_hexdigit()) {
            return Ok(Self(text.to_ascii_lowercase()));
        }
        Err(IdError::Token(text.chars().take(80).collect()))
    }
}

serde_via_str!(TokenId);

/// A token's metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApiToken {
    /// The token's id.
    pub id: TokenId,
    /// The owner it authenticates as.
    pub owner: Owner,
    /// Its permissions.
    pub role: TokenRole,
    /// What it is for, as a free text.
    pub label: Option<String>,
    /// The hash of the token.
    #[serde(skip)]
    pub hash: Digest,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl ApiToken {
    /// Whether it has neither expired nor been revoked.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

impl Owner {
    /// The separator between a service's owner and the name of its user.
    pub const SERVICE_SEPARATOR: char = '/';

    /// Returns the owner for a user of this owner's service. No other owner's token can
    /// reach it.
    pub fn user(&self, name: &str) -> Result<Self, IdError> {
        if name.trim().is_empty() {
            return Err(IdError::Key(name.to_owned()));
        }
        format!("{}{}{name}", self.as_str(), Self::SERVICE_SEPARATOR).parse()
    }

    /// Whether this is a user of a service and not an owner by itself.
    pub fn is_service_user(&self) -> bool {
        self.as_str().contains(Self::SERVICE_SEPARATOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_of_two_services_are_never_the_same() {
        let one: Owner = "bot".parse().unwrap();
        let other: Owner = "bot2".parse().unwrap();
        assert_ne!(one.user("ann").unwrap(), other.user("ann").unwrap());
        assert_eq!(one.user("ann").unwrap().as_str(), "bot/ann");
        assert!(one.user("ann").unwrap().is_service_user());
        assert!(!one.is_service_user());
        assert!(one.user("  ").is_err());
        assert!(one.user("a\nb").is_err());
    }

    #[test]
    fn a_token_counts_until_it_ends_or_is_taken_back() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let token = ApiToken {
            id: TokenId::mint([7; 8]),
            owner: Owner::local(),
            role: TokenRole::User,
            label: None,
            hash: Digest::of(b"x"),
            created_at: at(0),
            expires_at: Some(at(10)),
            revoked_at: None,
        };
        assert!(token.is_valid(at(9)));
        assert!(!token.is_valid(at(10)));
        let taken = ApiToken {
            revoked_at: Some(at(3)),
            expires_at: None,
            ..token
        };
        assert!(!taken.is_valid(at(4)));
    }

    #[test]
    fn ids_of_tokens_are_read_as_they_are_written() {
        let id = TokenId::mint([0, 1, 2, 3, 4, 5, 6, 255]);
        assert_eq!(id.as_str(), "tk-00010203040506ff");
        assert_eq!(id.as_str().parse::<TokenId>().unwrap(), id);
        for wrong in ["", "tk-", "tk-00", "tl_abc", "tk-00010203040506fg", "../x"] {
            assert!(wrong.parse::<TokenId>().is_err(), "{wrong:?}");
        }
    }
}
