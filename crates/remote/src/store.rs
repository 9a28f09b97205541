//! [`RemoteStore`]: opening it and choosing the credentials of each call.

use std::fmt;
use std::sync::Arc;

use throughline_model::{Owner, TokenRole};
use throughline_store::StoreError;

use crate::client::{Client, Credentials, Timeouts};
use crate::wire::{CallerInfo, Hello};
use crate::{BearerToken, RemoteError, ServerUrl};

/// A store behind a server, limited to what its tokens give access to. Cheap to clone.
#[derive(Clone)]
pub struct RemoteStore {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    client: Client,
    server: ServerUrl,
    /// Never empty. Each call uses the credentials of the owner it is made for.
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
    /// Opens the store of a server as the token's owner; without a token, as the owner the
    /// server serves without one.
    ///
    /// `wanted` is the owner it must turn out to be. A service's token gives access to its
    /// users: the owner `BOT/NAME` with the token of `BOT`.
    pub async fn open(
        server: &ServerUrl,
        token: Option<&BearerToken>,
        wanted: Option<&Owner>,
        timeouts: Timeouts,
    ) -> Result<Self, StoreError> {
        let client = Client::new(server.clone(), timeouts)?;
        let holder = authenticate(&client, server, token, wanted).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                client,
                server: server.clone(),
                owners: vec![holder],
            }),
        })
    }

    /// Adds the token of another owner: each call uses the token of the owner it is made for,
    /// and the change feed covers all of them.
    pub async fn with_owner_token(self, token: &BearerToken) -> Result<Self, StoreError> {
        let holder = authenticate(self.client(), &self.inner.server, Some(token), None).await?;
        let mut inner = (*self.inner).clone();
        inner.owners.retain(|known| known.owner != holder.owner);
        inner.owners.push(holder);
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Returns the owner it was opened for.
    pub fn owner(&self) -> &Owner {
        &self.first_owner().owner
    }

    /// Returns an identifier that distinguishes this store from any other at the same address,
    /// as of when it was opened; `None` if the store was still empty.
    pub fn identity(&self) -> Option<&str> {
        self.first_owner().identity.as_deref()
    }

    fn first_owner(&self) -> &OwnerCredentials {
        // There is one from the start, and none is ever removed.
        &self.inner.owners[0]
    }

    pub(crate) fn client(&self) -> &Client {
        &self.inner.client
    }

    pub(crate) fn all_credentials(&self) -> &[OwnerCredentials] {
        &self.inner.owners
    }

    /// Returns the credentials for an owner.
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

/// Determines which owner a token authenticates.
async fn authenticate(
    client: &Client,
    server: &ServerUrl,
    token: Option<&BearerToken>,
    wanted: Option<&Owner>,
) -> Result<OwnerCredentials, StoreError> {
    let mut credentials = Credentials::new(token);
    let mut caller = client.call(&credentials, &Hello {}).await?;
    if let Some(name) = service_user(&caller, wanted) {
        credentials = credentials.with_user(name);
        caller = client.call(&credentials, &Hello {}).await?;
    }
    match wanted {
        Some(wanted) if *wanted != caller.owner => Err(RemoteError::WrongOwner {
            server: server.to_string(),
            holder: caller.owner,
            wanted: wanted.clone(),
        }
        .into()),
        _ => Ok(OwnerCredentials {
            credentials: credentials.with_owner(&caller.owner, caller.largest),
            owner: caller.owner,
            identity: caller.identity,
        }),
    }
}

/// Returns the name of the service's user that is requested, if it is one.
fn service_user<'a>(caller: &CallerInfo, wanted: Option<&'a Owner>) -> Option<&'a str> {
    match caller.role {
        TokenRole::Service => wanted?
            .as_str()
            .strip_prefix(caller.owner.as_str())?
            .strip_prefix('/'),
        TokenRole::User | TokenRole::Admin => None,
    }
}
