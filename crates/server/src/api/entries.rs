//! Entries: appended, and read both ways.

use axum::Json as Answer;
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

/// How many are on a page where nobody says.
const DEFAULT_PAGE_SIZE: usize = 50;

/// Which entries to read. Without `after` and `before`, the last.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// Those after this number, the oldest first.
    after: Option<u64>,
    /// Those before this number, as near to it as there is room.
    before: Option<u64>,
    /// How many, at most.
    limit: Option<usize>,
}

/// One page of entries, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EntryPage {
    entries: Vec<EntryView>,
    /// The number of the session's last entry.
    #[schema(value_type = u64)]
    head: Seq,
    /// What to ask for with `before` to read on backwards; none at the beginning.
    #[schema(value_type = Option<u64>)]
    older: Option<Seq>,
    /// What to ask for with `after` to read on; none at the end.
    #[schema(value_type = Option<u64>)]
    newer: Option<Seq>,
}

/// Read entries, both ways
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
        // Before all of these there may still be some.
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
    Ok((etag(head), Answer(page)).into_response())
}

/// Look at one entry
#[utoipa::path(get, path = "/api/sessions/{id}/entries/{seq}", tag = "entries",
    params(CallerSession,
        ("seq" = u64, Path, description = "The entry's number")),
    responses((status = 200, body = EntryView)))]
pub(crate) async fn get(
    opened: CallerSession,
    PathSeq(seq): PathSeq,
) -> Result<Answer<EntryView>, Problem> {
    let session = &opened.session;
    let found = match seq {
        Seq::ZERO => None,
        seq => session.read(ReadRange::between(seq, seq, 1)).await?.pop(),
    };
    match found {
        Some(entry) => Ok(Answer(EntryView(entry))),
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
    /// A text, or blocks: text, thinking, tool_call, tool_result, attachment.
    #[schema(value_type = serde_json::Value, example = "How do we store sessions?")]
    content: Content,
    /// Its id, where the caller gives ids: appending it again changes nothing.
    #[schema(value_type = Option<String>, format = "uuid")]
    id: Option<EntryId>,
    /// What another system calls it.
    external_id: Option<String>,
    /// Who said it, where the role does not tell.
    author: Option<String>,
    /// When it was said; now, where nobody says.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<Timestamp>,
    /// The model that answered.
    model: Option<String>,
    /// The provider that served it.
    provider: Option<String>,
    /// What the provider said it cost.
    #[schema(value_type = Option<Object>)]
    usage: Option<Usage>,
    /// How long the answer took.
    latency_ms: Option<u64>,
    /// Whether the answer was cut off.
    #[serde(default)]
    incomplete: bool,
}

/// What to do when somebody else appended first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnConflictBody {
    /// Refuse, with the new head.
    #[default]
    Reject,
    /// Append after it, marked.
    Rebase,
    /// Put the entries into a new fork.
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

/// What to append: all of it or nothing.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AppendBody {
    /// The messages, in order.
    entries: Vec<NewMessage>,
    /// What to do where `If-Match` is no longer the head.
    #[serde(default)]
    on_conflict: OnConflictBody,
}

/// What was appended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AppendedView {
    /// The session that has the entries: another one where they became a fork.
    #[schema(value_type = String)]
    session: SessionId,
    /// The entries as stored.
    entries: Vec<EntryView>,
    /// `appended`, `rebased`, `forked`, or `repeated` where they were there already.
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

/// Append messages; they are durable when this answers
///
/// `If-Match` says after which entry. With an `Idempotency-Key` the same again changes
/// nothing, and answers with what was stored the first time.
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
    let wanted: Vec<_> = if named {
        entries.iter().map(|entry| entry.body.clone()).collect()
    } else {
        Vec::new()
    };
    let appended = match (body.on_conflict, &key, expect) {
        // The fork's id follows from the key, so that a retry finds it.
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
    if repeated && named && !appended.entries.iter().map(|e| &e.body).eq(&wanted) {
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
    Ok((status, etag(head), Answer(view)).into_response())
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
