//! Entries API: append messages and page through entries in both directions.

use axum::Json as JsonResponse;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use throughline::{
    Append, AppendKind, Content, EntryId, Expect, Message, NewEntry, OnConflict, ReadRange, Role,
    Seq, SessionHeader, SessionId, Timestamp, Usage,
};
use utoipa::{IntoParams, ToSchema};

use super::{etag, idempotent_entry_id, key_reused, page_limit};
use crate::extract::{CallerSession, IdempotencyKey, IfMatch, Json, PathSeq, PathSessionId, Query};
use crate::wire::EntryView;
use crate::{App, Caller, Problem};

/// Default page size.
const DEFAULT_PAGE_SIZE: usize = 50;

/// Which entries to return. Without `after` and `before`, the last ones.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// Entries after this number, oldest first.
    after: Option<u64>,
    /// Entries before this number, the nearest ones.
    before: Option<u64>,
    /// Maximum number of entries.
    limit: Option<usize>,
}

/// One page of entries, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EntryPage {
    entries: Vec<EntryView>,
    /// The number of the session's last entry.
    #[schema(value_type = u64)]
    head: Seq,
    /// Value of `before` for the previous page; absent at the beginning.
    #[schema(value_type = Option<u64>)]
    older: Option<Seq>,
    /// Value of `after` for the next page; absent at the end.
    #[schema(value_type = Option<u64>)]
    newer: Option<Seq>,
}

/// List entries, in either direction
#[utoipa::path(get, path = "/api/sessions/{id}/entries", tag = "entries", params(PageQuery,
    CallerSession),
    responses((status = 200, body = EntryPage)))]
pub(crate) async fn page(
    State(app): State<App>,
    caller: Caller,
    PathSessionId(id): PathSessionId,
    Query(query): Query<PageQuery>,
) -> Result<Response, Problem> {
    let limit = page_limit(&app, query.limit, DEFAULT_PAGE_SIZE)?;
    let session = caller.tl.session(&id).await?;
    let head = session.record().await?.info.head;
    let read = match (query.after, query.before) {
        (Some(after), before) => ReadRange {
            from: Seq(after.saturating_add(1)),
            to: before.map(|before| Seq(before.saturating_sub(1))),
            limit,
            from_end: false,
        },
        (None, Some(before)) => ReadRange::up_to(Some(Seq(before.saturating_sub(1))), limit),
        (None, None) => ReadRange::tail(limit),
    };
    let nothing = read.to.is_some_and(|to| to < read.from);
    let entries = if nothing {
        Vec::new()
    } else {
        session.read(read).await?
    };
    let older = match entries.first() {
        Some(first) => Some(first.seq).filter(|seq| *seq > Seq(1)),
        // There may be entries before the page even if it is empty.
        None => query.after.map(|after| Seq(after.min(head.0) + 1)),
    };
    let newer = match entries.last() {
        Some(last) => Some(last.seq).filter(|seq| *seq < head),
        None => query.before.map(|before| Seq(before.saturating_sub(1))),
    };
    let page = EntryPage {
        head,
        older: older.filter(|seq| *seq > Seq(1)),
        newer: newer.filter(|seq| *seq < head),
        entries: entries.into_iter().map(EntryView).collect(),
    };
    Ok((etag(head), JsonResponse(page)).into_response())
}

/// Get one entry
#[utoipa::path(get, path = "/api/sessions/{id}/entries/{seq}", tag = "entries",
    params(CallerSession,
        ("seq" = u64, Path, description = "The entry's number")),
    responses((status = 200, body = EntryView)))]
pub(crate) async fn get(
    opened: CallerSession,
    PathSeq(seq): PathSeq,
) -> Result<JsonResponse<EntryView>, Problem> {
    let session = &opened.session;
    let found = match seq {
        Seq::ZERO => None,
        seq => session.read(ReadRange::between(seq, seq, 1)).await?.pop(),
    };
    match found {
        Some(entry) => Ok(JsonResponse(EntryView(entry))),
        None => Err(throughline::StoreError::NoSuchEntry {
            id: session.id().clone(),
            seq,
            head: session.record().await?.info.head,
        }
        .into()),
    }
}

/// A message to append.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// `user`, `assistant`, `system` or `tool`.
    #[schema(value_type = String, example = "user")]
    role: Role,
    /// Text, or blocks: text, thinking, tool_call, tool_result, attachment.
    #[schema(value_type = serde_json::Value, example = "How do we store sessions?")]
    content: Content,
    /// Entry id chosen by the caller: appending the same id again changes nothing.
    #[schema(value_type = Option<String>, format = "uuid")]
    id: Option<EntryId>,
    /// The message's id in another system.
    external_id: Option<String>,
    /// Who wrote it, if the role is not enough.
    author: Option<String>,
    /// When it was written. Defaults to now.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<Timestamp>,
    /// The model that answered.
    model: Option<String>,
    /// The provider that served it.
    provider: Option<String>,
    /// Token usage reported by the provider.
    #[schema(value_type = Option<Object>)]
    usage: Option<Usage>,
    /// How long the answer took.
    latency_ms: Option<u64>,
    /// Whether the answer was cut off.
    #[serde(default)]
    incomplete: bool,
}

/// What to do if another writer appended first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnConflictBody {
    /// Reject, and return the new head.
    #[default]
    Reject,
    /// Append after the new head, and mark the entries.
    Rebase,
    /// Append to a new fork.
    Fork,
}

impl From<OnConflictBody> for throughline::ConflictPolicy {
    fn from(body: OnConflictBody) -> Self {
        match body {
            OnConflictBody::Reject => Self::Reject,
            OnConflictBody::Rebase => Self::Rebase,
            OnConflictBody::Fork => Self::Fork,
        }
    }
}

/// Messages to append, atomically.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AppendBody {
    /// The messages, in order.
    entries: Vec<NewMessage>,
    /// What to do if `If-Match` is no longer the head.
    #[serde(default)]
    on_conflict: OnConflictBody,
}

/// Result of an append.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AppendedView {
    /// The session that holds the entries; a new one if they became a fork.
    #[schema(value_type = String)]
    session: SessionId,
    /// The entries as stored.
    entries: Vec<EntryView>,
    /// `appended`, `rebased`, `forked`, or `repeated` if they were already stored.
    how: &'static str,
}

fn append_kind_name(how: AppendKind) -> &'static str {
    match how {
        AppendKind::Appended => "appended",
        AppendKind::Rebased => "rebased",
        AppendKind::Forked => "forked",
        AppendKind::Repeated => "repeated",
    }
}

/// Append messages; they are durable when the request succeeds
///
/// `If-Match` names the entry to append after. Repeating a request with the same `Idempotency-Key`
/// changes nothing and returns what was stored the first time.
#[utoipa::path(post, path = "/api/sessions/{id}/entries", tag = "entries",
    request_body(content = AppendBody,
        example = json!({"entries": [{"role": "user", "content": "Hello"}]})),
    params(CallerSession,
        IfMatch,
        IdempotencyKey),
    responses((status = 201, body = AppendedView), (status = 200, body = AppendedView)))]
pub(crate) async fn append(
    caller: Caller,
    PathSessionId(id): PathSessionId,
    IfMatch(expect): IfMatch,
    IdempotencyKey(key): IdempotencyKey,
    Json(body): Json<AppendBody>,
) -> Result<Response, Problem> {
    let now = caller.tl.now();
    let session = caller.tl.session_unchecked(&id);
    let entries: Vec<NewEntry> = body
        .entries
        .into_iter()
        .enumerate()
        .map(|(index, message)| message.into_entry(&session, key.as_deref(), index))
        .collect();
    let named = key.is_some();
    let expected: Vec<_> = if named {
        entries.iter().map(|entry| entry.body.clone()).collect()
    } else {
        Vec::new()
    };
    let appended = match (body.on_conflict, &key, expect) {
        // The fork's id is derived from the key, so that a retry finds it.
        (OnConflictBody::Fork, Some(key), Expect::At(_)) => {
            let fork = EntryId::derive(&[b"fork", id.as_str().as_bytes(), key.as_bytes()]);
            let fork: SessionId = format!("fork-{fork}")
                .parse()
                .map_err(throughline::Error::from)?;
            let append = Append {
                expect,
                on_conflict: OnConflict::Fork(Box::new(SessionHeader::new(fork, now))),
                ..Append::unconditional(entries)
            };
            let session = caller.owner().session(&id);
            caller.tl.store().append(&session, append).await?
        }
        (on_conflict, ..) => {
            session
                .append_all(entries, expect, on_conflict.into())
                .await?
        }
    };
    let repeated = appended.kind == AppendKind::Repeated;
    if repeated && named && !appended.entries.iter().map(|e| &e.body).eq(&expected) {
        return Err(key_reused());
    }
    let head = appended.entries.last().map_or(Seq::ZERO, |entry| entry.seq);
    let status = if repeated {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    let view = AppendedView {
        session: appended.session,
        entries: appended.entries.into_iter().map(EntryView).collect(),
        how: append_kind_name(appended.kind),
    };
    Ok((status, etag(head), JsonResponse(view)).into_response())
}

impl NewMessage {
    fn into_entry(
        self,
        session: &throughline::Session,
        key: Option<&str>,
        index: usize,
    ) -> NewEntry {
        let message = Message {
            role: self.role,
            content: self.content,
            model: self.model,
            provider: self.provider,
            usage: self.usage,
            latency_ms: self.latency_ms,
            incomplete: self.incomplete,
        };
        let mut entry = session.new_entry(message);
        let outside = self
            .external_id
            .as_deref()
            .map(|outside| EntryId::from_external(session.id(), outside));
        let keyed = key.map(|key| idempotent_entry_id(session.id(), key, index));
        entry.id = self.id.or(keyed).or(outside).unwrap_or(entry.id);
        if let Some(at) = self.at {
            entry.at = throughline::truncate_to_micros(at);
        }
        entry.author = self.author;
        entry.external_id = self.external_id;
        entry
    }
}
