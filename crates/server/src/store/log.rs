//! Store protocol: session logs.

use async_trait::async_trait;
use axum::Router;
use throughline::{
    Append, CreateOutcome, GENESIS, ReadRange, Record, Seq, SessionHeader, SessionRef, StoreError,
    StoredEntry,
};
use throughline_remote::wire;

use super::{CallContext, CallHandler, route_call};
use crate::App;

/// Adds the routes of this module.
pub(super) fn add_routes(router: Router<App>) -> Router<App> {
    let router = route_call::<wire::Create>(router);
    let router = route_call::<wire::Append>(router);
    let router = route_call::<wire::GetRecord>(router);
    let router = route_call::<wire::GetHeader>(router);
    let router = route_call::<wire::ReadStored>(router);
    let router = route_call::<wire::ReadForCopy>(router);
    let router = route_call::<wire::Fork>(router);
    let router = route_call::<wire::Locate>(router);
    let router = route_call::<wire::Erase>(router);
    route_call::<wire::ImportLog>(router)
}

#[async_trait]
impl CallHandler for wire::Create {
    async fn handle(self, ctx: &CallContext) -> Result<CreateOutcome, StoreError> {
        ctx.store().create(ctx.owner(), self.birth).await
    }
}

#[async_trait]
impl CallHandler for wire::Append {
    fn payloads(&self) -> impl Iterator<Item = &str> + Send {
        self.entries.iter().map(|entry| entry.payload.as_str())
    }

    async fn handle(self, ctx: &CallContext) -> Result<wire::AppendReceipt, StoreError> {
        let entries = self
            .entries
            .into_iter()
            .map(wire::EntryToAppend::into_new_entry);
        let append = Append {
            expect: self.expect,
            on_conflict: self.on_conflict,
            fence: self.fence,
            ..Append::unconditional(entries.collect::<Result<_, _>>()?)
        };
        let to = ctx.session(&self.session);
        let appended = ctx.store().append(&to, append).await?;
        let places = appended.entries.iter();
        Ok(wire::AppendReceipt {
            rebased: appended.entries.first().and_then(|entry| entry.rebased),
            places: places.map(|entry| (entry.seq, entry.digest)).collect(),
            session: appended.session,
            how: appended.kind,
        })
    }
}

#[async_trait]
impl CallHandler for wire::GetRecord {
    async fn handle(self, ctx: &CallContext) -> Result<Record, StoreError> {
        ctx.store().record(&ctx.session(&self.session)).await
    }
}

#[async_trait]
impl CallHandler for wire::GetHeader {
    async fn handle(self, ctx: &CallContext) -> Result<SessionHeader, StoreError> {
        ctx.store().header(&ctx.session(&self.session)).await
    }
}

#[async_trait]
impl CallHandler for wire::ReadStored {
    async fn handle(self, ctx: &CallContext) -> Result<wire::LogSlice, StoreError> {
        let of = ctx.session(&self.session);
        let entries = ctx.store().read_stored(&of, self.read).await?;
        with_previous_digest(ctx, &of, entries).await
    }
}

#[async_trait]
impl CallHandler for wire::ReadForCopy {
    async fn handle(self, ctx: &CallContext) -> Result<wire::SessionCopy, StoreError> {
        let of = ctx.session(&self.session);
        let (birth, entries) = ctx.store().read_for_copy(&of, self.read).await?;
        Ok(wire::SessionCopy {
            birth,
            stretch: with_previous_digest(ctx, &of, entries).await?,
        })
    }
}

/// Returns entries with the digest of the preceding one, so that the reader can verify the chain.
async fn with_previous_digest(
    ctx: &CallContext,
    of: &SessionRef,
    entries: Vec<StoredEntry>,
) -> Result<wire::LogSlice, StoreError> {
    let first = entries.first().map_or(Seq(1), |entry| entry.seq);
    let before = Seq(first.0.saturating_sub(1));
    let previous = if before == Seq::ZERO {
        GENESIS
    } else {
        let one = ReadRange::between(before, before, 1);
        let (_, found) = ctx.store().read_for_copy(of, one).await?;
        let found = found.first().map(|entry| entry.digest);
        found.ok_or(StoreError::MissingEntry { seq: before })?
    };
    Ok(wire::LogSlice { previous, entries })
}

#[async_trait]
impl CallHandler for wire::Fork {
    async fn handle(self, ctx: &CallContext) -> Result<Record, StoreError> {
        let of = ctx.session(&self.session);
        ctx.store().fork(&of, self.at, self.birth).await
    }
}

#[async_trait]
impl CallHandler for wire::Locate {
    async fn handle(self, ctx: &CallContext) -> Result<Vec<Option<Seq>>, StoreError> {
        let of = ctx.session(&self.session);
        ctx.store().locate(&of, &self.ids).await
    }
}

#[async_trait]
impl CallHandler for wire::Erase {
    async fn handle(self, ctx: &CallContext) -> Result<(), StoreError> {
        let of = ctx.session(&self.session);
        let reason = self.reason.as_deref();
        ctx.store().erase(&of, &self.entries, reason).await
    }
}

#[async_trait]
impl CallHandler for wire::ImportLog {
    fn payloads(&self) -> impl Iterator<Item = &str> + Send {
        self.entries.iter().map(|entry| entry.payload.as_str())
    }

    async fn handle(self, ctx: &CallContext) -> Result<u64, StoreError> {
        let owner = ctx.owner();
        ctx.store()
            .import_log(owner, self.birth, self.entries)
            .await
    }
}
