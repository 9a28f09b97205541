//! [`BlobStore`] and [`Maintenance`] of the in-memory store.

use std::path::Path;

use async_trait::async_trait;
use throughline_model::{Digest, Owner, Record};

use super::{MemoryStore, fold_log};
use crate::{
    BlobStore, CheckReport, Finding, Lease, LogChecker, Maintenance, ProgressCallback, StoreError,
    validate_blob,
};

#[async_trait]
impl BlobStore for MemoryStore {
    async fn put_blob(&self, owner: &Owner, bytes: Vec<u8>) -> Result<Digest, StoreError> {
        let digest = validate_blob(&bytes)?;
        self.with_owner(owner, |space| {
            space.blobs.entry(digest).or_insert(bytes);
        });
        Ok(digest)
    }

    async fn blob(&self, owner: &Owner, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.with_owner(owner, |space| space.blobs.get(digest).cloned())
            .ok_or(StoreError::NoSuchBlob(*digest))
    }
}

#[async_trait]
impl Maintenance for MemoryStore {
    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        Ok(self.lock().keys().cloned().collect())
    }

    async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        let spaces = self.lock();
        let granted = spaces.values().flat_map(|space| space.leases.values());
        let mut leases: Vec<Lease> = granted.map(|granted| granted.lease.clone()).collect();
        leases.sort_by(|a, b| (&a.owner, &a.name).cmp(&(&b.owner, &b.name)));
        Ok(leases)
    }

    async fn check(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        let mut report = CheckReport::default();
        for (owner, space) in self.lock().iter() {
            for session in space.sessions.values() {
                let mut check = LogChecker::new(owner.clone(), Record::new(&session.header));
                for stored in &session.log {
                    report.findings.extend(check.check_entry(stored));
                    report.entries += 1;
                }
                report.findings.extend(check.finish(&session.record));
                report.sessions += 1;
                progress(report.entries, report.entries);
            }
            for (digest, bytes) in &space.blobs {
                report.blobs += 1;
                if Digest::of(bytes) != *digest {
                    report.findings.push(Finding::Blob {
                        digest: *digest,
                        missing: false,
                    });
                }
            }
        }
        Ok(report)
    }

    async fn rebuild(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        for space in self.lock().values_mut() {
            for session in space.sessions.values_mut() {
                session.record = fold_log(&session.header, &session.log)?;
            }
        }
        self.check(progress).await
    }

    async fn backup(&self, _: &Path, _: ProgressCallback<'_>) -> Result<(), StoreError> {
        Err(StoreError::Unsupported("be copied to a file"))
    }

    async fn size(&self) -> Result<u64, StoreError> {
        let spaces = self.lock();
        let sessions = spaces.values().flat_map(|space| space.sessions.values());
        let entries = sessions.flat_map(|session| session.log.iter());
        Ok(entries.map(|entry| entry.payload.len() as u64).sum())
    }

    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
