//! Logs.

use async_trait::async_trait;
use axum::Router;
use throughline::{
    Append, Birth, Created, GENESIS, Read, Record, Seq, SessionRef, StoreError, StoredEntry,
};
use throughline_remote::wire;

use super::{Answered, Asker, on};
use crate::App;

/// The paths of this part.
pub(super) fn routes(router: Router<App>) -> Router<App> {
    let router = on::<wire::Create>(router);
    let router = on::<wire::Append>(router);
    let router = on::<wire::RecordOf>(router);
    let router = on::<wire::BirthOf>(router);
    let router = on::<wire::ReadStored>(router);
    let router = on::<wire::CopyOf>(router);
    let router = on::<wire::Fork>(router);
    let router = on::<wire::Locate>(router);
    let router = on::<wire::Erase>(router);
    on::<wire::Adopt>(router)
}

#[async_trait]
impl Answered for wire::Create {
    async fn answer(self, asker: &Asker) -> Result<Created, StoreError> {
        asker.store().create(asker.owner(), self.birth).await
    }
}

#[async_trait]
impl Answered for wire::Append {
    fn payloads(&self) -> impl Iterator<Item = &str> + Send {
        self.entries.iter().map(|entry| entry.payload.as_str())
    }

    async fn answer(self, asker: &Asker) -> Result<wire::Placed, StoreError> {
        let entries = self.entries.into_iter().map(wire::Sent::opened);
        let append = Append {
            expect: self.expect,
            on_conflict: self.on_conflict,
            fence: self.fence,
            ..Append::any(entries.collect::<Result<_, _>>()?)
        };
        let to = asker.session(&self.session);
        let appended = asker.store().append(&to, append).await?;
        let places = appended.entries.iter();
        Ok(wire::Placed {
            rebased: appended.entries.first().and_then(|entry| entry.rebased),
            places: places.map(|entry| (entry.seq, entry.digest)).collect(),
            session: appended.session,
            how: appended.how,
        })
    }
}

#[async_trait]
impl Answered for wire::RecordOf {
    async fn answer(self, asker: &Asker) -> Result<Record, StoreError> {
        asker.store().record(&asker.session(&self.session)).await
    }
}

#[async_trait]
impl Answered for wire::BirthOf {
    async fn answer(self, asker: &Asker) -> Result<Birth, StoreError> {
        asker.store().birth(&asker.session(&self.session)).await
    }
}

#[async_trait]
impl Answered for wire::ReadStored {
    async fn answer(self, asker: &Asker) -> Result<wire::Stretch, StoreError> {
        let of = asker.session(&self.session);
        let entries = asker.store().read_stored(&of, self.read).await?;
        stretch(asker, &of, entries).await
    }
}

#[async_trait]
impl Answered for wire::CopyOf {
    async fn answer(self, asker: &Asker) -> Result<wire::Copied, StoreError> {
        let of = asker.session(&self.session);
        let (birth, entries) = asker.store().copy_of(&of, self.read).await?;
        Ok(wire::Copied {
            birth,
            stretch: stretch(asker, &of, entries).await?,
        })
    }
}

/// Entries with what they follow, so that whoever reads them can verify them.
async fn stretch(
    asker: &Asker,
    of: &SessionRef,
    entries: Vec<StoredEntry>,
) -> Result<wire::Stretch, StoreError> {
    let first = entries.first().map_or(Seq(1), |entry| entry.seq);
    let before = Seq(first.0.saturating_sub(1));
    let previous = if before == Seq::ZERO {
        GENESIS
    } else {
        let one = Read::between(before, before, 1);
        let (_, found) = asker.store().copy_of(of, one).await?;
        let found = found.first().map(|entry| entry.digest);
        found.ok_or(StoreError::Missing { seq: before })?
    };
    Ok(wire::Stretch { previous, entries })
}

#[async_trait]
impl Answered for wire::Fork {
    async fn answer(self, asker: &Asker) -> Result<Record, StoreError> {
        let of = asker.session(&self.session);
        asker.store().fork(&of, self.at, self.birth).await
    }
}

#[async_trait]
impl Answered for wire::Locate {
    async fn answer(self, asker: &Asker) -> Result<Vec<Option<Seq>>, StoreError> {
        let of = asker.session(&self.session);
        asker.store().locate(&of, &self.ids).await
    }
}

#[async_trait]
impl Answered for wire::Erase {
    async fn answer(self, asker: &Asker) -> Result<(), StoreError> {
        let of = asker.session(&self.session);
        let reason = self.reason.as_deref();
        asker.store().erase(&of, &self.entries, reason).await
    }
}

#[async_trait]
impl Answered for wire::Adopt {
    fn payloads(&self) -> impl Iterator<Item = &str> + Send {
        self.entries.iter().map(|entry| entry.payload.as_str())
    }

    async fn answer(self, asker: &Asker) -> Result<u64, StoreError> {
        let owner = asker.owner();
        asker.store().adopt(owner, self.birth, self.entries).await
    }
}
