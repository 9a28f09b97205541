//! Prepares appends outside the transaction: encodes entries before it and assembles
//! the result after it. For stores with a single writer, which all callers wait for.

use std::sync::Arc;

use throughline_model::{
    Body, DecodeError, Digest, Entry, NewEntry, Seq, SessionId, StoredEntry, truncate_to_micros,
};

use crate::{Append, EncodedPayload, StoreError, refuse_large_entry};

/// An append with everything done that needs no transaction, so that encoding and
/// hashing are done by the caller and not by the single writer.
#[derive(Debug)]
pub struct PreparedAppend {
    /// The append.
    pub append: Append,
    /// Each entry's payload and its hash.
    pub payloads: Vec<EncodedPayload>,
    /// The attachments of all entries.
    pub attachments: Vec<Digest>,
}

impl PreparedAppend {
    /// Encodes an append; rejects an entry that is too large.
    pub fn new(mut append: Append) -> Result<Self, StoreError> {
        let mut payloads = std::mem::take(&mut append.encoded);
        if payloads.len() != append.entries.len() {
            let encoded = append.entries.iter().map(|new| encode_entry(new, None));
            payloads = encoded.collect::<Result<_, _>>()?;
        }
        let mut attachments = Vec::new();
        for (new, (payload, _)) in append.entries.iter().zip(&payloads) {
            refuse_large_entry(payload)?;
            if let Some(message) = new.body.message() {
                attachments.extend(message.content.attachments().map(|a| a.blob));
            }
        }
        Ok(Self {
            append,
            payloads,
            attachments,
        })
    }

    /// Returns the same append for a fork, with any head.
    #[must_use]
    pub fn to_fork(&self) -> Self {
        Self {
            append: Append {
                fence: self.append.fence.clone(),
                ..Append::unconditional(self.append.entries.clone())
            },
            payloads: self.payloads.clone(),
            attachments: self.attachments.clone(),
        }
    }

    /// Builds the stored entries from the append: the writer returns only their
    /// positions.
    pub fn complete(
        self: Arc<Self>,
        session: &SessionId,
        rebased: Option<Seq>,
        positions: Vec<(Seq, Digest)>,
    ) -> Result<Vec<Entry>, StoreError> {
        let prepared = Arc::try_unwrap(self).unwrap_or_else(|shared| Self {
            append: shared.append.clone(),
            payloads: shared.payloads.clone(),
            attachments: Vec::new(),
        });
        let parts = prepared.append.entries.into_iter().zip(prepared.payloads);
        parts
            .zip(positions)
            .map(|((new, (payload, _)), (seq, digest))| {
                let at = truncate_to_micros(new.at);
                if let Body::Unknown { .. } = new.body {
                    // The author and external id are inside the verbatim payload.
                    let id = new.id;
                    let stored = StoredEntry {
                        seq,
                        id,
                        at,
                        digest,
                        payload,
                    };
                    return decode_entry(session, &stored);
                }
                Ok(Entry {
                    seq,
                    id: new.id,
                    at,
                    external_id: new.external_id,
                    author: new.author,
                    rebased,
                    body: new.body,
                    digest,
                })
            })
            .collect()
    }
}

/// Encodes an entry's payload, marked if it was rebased, with its hash; rejects one
/// that is too large.
pub fn encode_entry(new: &NewEntry, rebased: Option<Seq>) -> Result<EncodedPayload, StoreError> {
    let encoded = encode_body(
        &new.body,
        new.author.as_deref(),
        new.external_id.as_deref(),
        rebased,
    )?;
    refuse_large_entry(&encoded.0)?;
    Ok(encoded)
}

/// Encodes the payload of an entry that has no id and time yet.
pub fn encode_body(
    body: &Body,
    author: Option<&str>,
    external_id: Option<&str>,
    rebased: Option<Seq>,
) -> Result<EncodedPayload, StoreError> {
    let payload = throughline_model::encode_payload(body, author, external_id, rebased);
    let payload = payload.map_err(|source| StoreError::Backend {
        during: "encoding an entry",
        source: source.into(),
    })?;
    let hash = Digest::of(payload.as_bytes());
    Ok((payload, hash))
}

/// Decodes an entry of a session; the error names the damaged entry.
pub fn decode_entry(of: &SessionId, stored: &StoredEntry) -> Result<Entry, StoreError> {
    stored.decode().map_err(damaged_error(of, stored))
}

/// Verifies that an entry of a session follows the one with this digest.
pub fn verify_entry(
    of: &SessionId,
    stored: &StoredEntry,
    previous: &Digest,
) -> Result<(), StoreError> {
    stored.verify(previous).map_err(damaged_error(of, stored))
}

fn damaged_error(of: &SessionId, stored: &StoredEntry) -> impl FnOnce(DecodeError) -> StoreError {
    let (id, seq) = (of.clone(), stored.seq);
    move |source| StoreError::Damaged { id, seq, source }
}
