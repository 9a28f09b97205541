//! A store that a server keeps.

use std::fmt;
use std::sync::Arc;

use throughline_model::{Owner, TokenRole};
use throughline_store::StoreError;

use crate::client::{Client, Credentials, Timeouts};
use crate::wire::{CallerInfo, Hello};
use crate::{BearerToken, RemoteError, ServerUrl};

/// A store that a server keeps, as far as its tokens reach. Cheap to clone.
#[derive(Clone)]
pub struct RemoteStore {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    client: Client,
    server: ServerUrl,
    /// Never empty. Each call goes with the badge of the owner it is made for.
    owners: Vec<OwnerCredentials>,
}

#[derive(Clone)]
pub(crate) struct OwnerCredentials {
    pub(crate) owner: Owner,
    pub(crate) credentials: Credentials,
    identity: Option<String>,
}

impl fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owners: Vec<_> = self
            .all_credentials()
            .iter()
            .map(|holder| &holder.owner)
            .collect();
        f.debug_struct("RemoteStore")
            .field("server", &self.inner.server)
            .field("owners", &owners)
            .finish_non_exhaustive()
    }
}

impl RemoteStore {
    /// Opens the store of a server on behalf of whoever the token is for; without a token,
    /// of whoever the server serves without one.
    ///
    /// `wanted` is the owner it must turn out to be. A service's token reaches its users:
    /// the owner `BOT/NAME` with the token of `BOT`.
    pub async fn open(
        server: &ServerUrl,
        token: Option<&BearerToken>,
        wanted: Option<&Owner>,
        timing: Timeouts,
    ) -> Result<Self, StoreError> {
        let client = Client::new(server.clone(), timing)?;
        let holder = authenticate(&client, server, token, wanted).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                client,
                server: server.clone(),
                owners: vec![holder],
            }),
        })
    }

    /// The same store, on behalf of another owner as well: each call goes with the token of
    /// the owner it is made for, and the feed is that of all of them.
    pub async fn with_owner_token(self, token: &BearerToken) -> Result<Self, StoreError> {
        let holder = authenticate(self.client(), &self.inner.server, Some(token), None).await?;
        let mut inner = (*self.inner).clone();
        inner.owners.retain(|known| known.owner != holder.owner);
        inner.owners.push(holder);
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// On whose behalf it was opened.
    pub fn owner(&self) -> &Owner {
        &self.first_owner().owner
    }

    /// What tells the store from any that was or will be at the same address, as far as was
    /// known when it was opened; none if nothing had happened in it.
    pub fn identity(&self) -> Option<&str> {
        self.first_owner().identity.as_deref()
    }

    fn first_owner(&self) -> &OwnerCredentials {
        // There is one from the beginning, and none is taken away.
        &self.inner.owners[0]
    }

    pub(crate) fn client(&self) -> &Client {
        &self.inner.client
    }

    pub(crate) fn all_credentials(&self) -> &[OwnerCredentials] {
        &self.inner.owners
    }

    /// What is shown for an owner.
    pub(crate) fn credentials_of(&self, owner: &Owner) -> Result<&Credentials, StoreError> {
        let mut holders = self.all_credentials().iter();
        let found = holders.find(|holder| holder.owner == *owner);
        found.map(|holder| &holder.credentials).ok_or_else(|| {
            RemoteError::WrongOwner {
                server: self.inner.server.to_string(),
                holder: self.owner().clone(),
                wanted: owner.clone(),
            }
            .into()
        })
    }
}

/// Finds out who a token makes us there.
async fn authenticate(
    client: &Client,
    server: &ServerUrl,
    token: Option<&BearerToken>,
    wanted: Option<&Owner>,
) -> Result<OwnerCredentials, StoreError> {
    let mut badge = Credentials::new(token);
    let mut welcome = client.call(&badge, &Hello {}).await?;
    if let Some(name) = service_user(&welcome, wanted) {
        badge = badge.with_user(name);
        welcome = client.call(&badge, &Hello {}).await?;
    }
    match wanted {
        Some(wanted) if *wanted != welcome.owner => Err(RemoteError::WrongOwner {
            server: server.to_string(),
            holder: welcome.owner,
            wanted: wanted.clone(),
        }
        .into()),
        _ => Ok(OwnerCredentials {
            credentials: badge.with_owner(&welcome.owner, welcome.largest),
            owner: welcome.owner,
            identity: welcome.identity,
        }),
    }
}

/// The name of the service's user who is wanted, if it is one.
fn service_user<'a>(welcome: &CallerInfo, wanted: Option<&'a Owner>) -> Option<&'a str> {
    match welcome.role {
        TokenRole::Service => wanted?
            .as_str()
            .strip_prefix(welcome.owner.as_str())?
            .strip_prefix('/'),
        TokenRole::User | TokenRole::Admin => None,
    }
}
