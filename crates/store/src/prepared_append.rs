//! What an append needs that no transaction does: the entries encoded before, and told
//! afterwards. For stores with one writer, which all callers wait for.

use std::sync::Arc;

use throughline_model::{
    Body, DecodeError, Digest, Entry, NewEntry, Seq, SessionId, StoredEntry, truncate_to_micros,
};

use crate::{Append, EncodedPayload, StoreError, refuse_large_entry};

/// An append with everything done that needs no transaction: whoever appends pays for
/// encoding and hashing, not the one writer.
#[derive(Debug)]
pub struct PreparedAppend {
    /// What is to be appended.
    pub append: Append,
    /// Each entry's payload, and the hash of it.
    pub payloads: Vec<EncodedPayload>,
    /// The attachments of all of them.
    pub attachments: Vec<Digest>,
}

impl PreparedAppend {
    /// Encodes an append; refuses an entry that is too large.
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

    /// The same, to be appended to a fork whatever its head is.
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

    /// The entries as stored, made of what was to be appended: they need not come back from
    /// the writer, which says only where they are.
    pub fn complete(
        self: Arc<Self>,
        session: &SessionId,
        rebased: Option<Seq>,
        places: Vec<(Seq, Digest)>,
    ) -> Result<Vec<Entry>, StoreError> {
        let prepared = Arc::try_unwrap(self).unwrap_or_else(|shared| Self {
            append: shared.append.clone(),
            payloads: shared.payloads.clone(),
            attachments: Vec::new(),
        });
        let parts = prepared.append.entries.into_iter().zip(prepared.payloads);
        parts
            .zip(places)
            .map(|((new, (payload, _)), (seq, digest))| {
                let at = truncate_to_micros(new.at);
                if let Body::Unknown { .. } = new.body {
                    // Its author and outside id are inside what is kept verbatim.
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

/// An entry's payload and the hash of it, marked where it was rebased; refuses one that is
/// too large.
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

/// The payload of an entry that is still to get its id and time.
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

/// An entry of a session as it was said, or which one is damaged.
pub fn decode_entry(of: &SessionId, stored: &StoredEntry) -> Result<Entry, StoreError> {
    stored.decode().map_err(damaged_error(of, stored))
}

/// Refuses an entry of a session that does not follow the one with this digest unharmed.
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
