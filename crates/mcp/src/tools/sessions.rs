//! MCP tools that read: list, search and read sessions, and build context for a task.

use std::time::Duration;

use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::{schemars, tool, tool_router};
use serde::{Deserialize, Serialize};
use throughline::recall::Mode;
use throughline::{
    Content, Cursor, IndexWait, ReadRange, RequestOptions, Responder, SearchOptions, Seq,
    SessionFilter, Tag,
};

use crate::McpServer;
use crate::history_view::{
    EntryView, FactView, MAX_HISTORY_CHARS, QUOTE_NOTICE, SessionView, previous_seq, take_fitting,
    truncate,
};
use crate::resolve::check_limit;
use crate::tool_error::ToolError;

/// How long to wait for the newest entries to be indexed.
const MAX_INDEX_WAIT: Duration = Duration::from_millis(1_500);
/// The default maximum number of characters per entry.
const DEFAULT_ENTRY_CHARS: usize = 4_000;
/// The default token budget of a context.
const DEFAULT_BUDGET: u64 = 8_000;
/// The maximum token budget of a context.
const MAX_BUDGET: u64 = 100_000;

#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListSessions")]
pub(crate) struct ListSessionsArgs {
    /// Only sessions with all of these tags.
    #[serde(default)]
    tags: Vec<String>,
    /// Only sessions of this project, by its id or name.
    project: Option<String>,
    /// Only sessions last used by the agent with this name.
    agent: Option<String>,
    /// Where the page starts: `next` of the previous page.
    cursor: Option<String>,
    /// The maximum number of sessions, up to 100 [default: 20].
    limit: Option<usize>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SessionList {
    /// The sessions, latest activity first.
    sessions: Vec<SessionView>,
    /// The cursor of the next page, if there is one.
    next: Option<String>,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SearchSessions")]
pub(crate) struct SearchSessionsArgs {
    /// Words, "phrases" and filters: `redis role:user after:2026-11-01 tag:auth`.
    query: String,
    /// Only in this project, by its id or name.
    project: Option<String>,
    /// The maximum number of hits, up to 50 [default: 10].
    limit: Option<usize>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Hits {
    /// What the quotes are.
    note: &'static str,
    /// The hits, the best first.
    hits: Vec<HitView>,
    /// The corrected query, if nothing matched the words as typed.
    corrected: Option<String>,
    /// The number of changes that are not indexed yet.
    behind: u64,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "HitShown")]
pub(crate) struct HitView {
    /// The session that contains it.
    session: String,
    /// The title of that session.
    title: Option<String>,
    /// The number of the entry, for read_session.
    seq: u64,
    /// The role of its author.
    role: String,
    /// When it was added.
    at: String,
    /// The best-matching excerpt of the entry.
    quote: String,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ReadSession")]
pub(crate) struct ReadSessionArgs {
    /// The session: its id, an id prefix, its name or key, or `last`.
    session: String,
    /// Read forward from this entry. Without `from` and `before`, the last entries are read.
    from: Option<u64>,
    /// Read backward from before this entry.
    before: Option<u64>,
    /// The maximum number of entries, up to 200 [default: 20].
    limit: Option<usize>,
    /// The maximum number of characters per entry, up to 50000 [default: 4000].
    longest: Option<usize>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Entries {
    /// What the entries are.
    note: &'static str,
    /// The session.
    session: SessionView,
    /// The entries, oldest first.
    entries: Vec<EntryView>,
    /// The value of `before` for the preceding entries; none at the beginning.
    older: Option<u64>,
    /// The value of `from` for the following entries; none at the end.
    newer: Option<u64>,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BuildContext")]
pub(crate) struct BuildContextArgs {
    /// The task, in a sentence or two.
    task: String,
    /// The session to continue; without one, the context comes from all sessions and the
    /// memory.
    session: Option<String>,
    /// Only from this project, by its id or name [default: the one you work in].
    project: Option<String>,
    /// The maximum number of tokens, up to 100000 [default: 8000].
    budget: Option<u64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ContextShown")]
pub(crate) struct ContextView {
    /// What the texts are.
    note: &'static str,
    /// The sections, in reading order.
    sections: Vec<SectionView>,
    /// The approximate number of tokens.
    tokens: u64,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "SectionShown")]
pub(crate) struct SectionView {
    /// The kind of section: memory, checkpoint, recent messages, recalled excerpts, …
    name: String,
    /// The text of the section.
    text: String,
}

#[tool_router(router = session_tools, vis = "pub(crate)")]
impl McpServer {
    /// List past and present sessions, latest activity first, with what each is about.
    #[tool(annotations(
        title = "List sessions",
        read_only_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn list_sessions(
        &self,
        Parameters(args): Parameters<ListSessionsArgs>,
    ) -> Result<Json<SessionList>, ToolError> {
        let limit = check_limit(args.limit, 20, 100)?;
        let tags: Result<Vec<Tag>, _> = args.tags.iter().map(|tag| tag.parse()).collect();
        let project = match &args.project {
            None => None,
            named => self.resolve_project(named.as_deref()).await?,
        };
        let filter = SessionFilter {
            tags: tags.map_err(throughline::Error::from)?,
            agent: args.agent,
            project,
            ..SessionFilter::default()
        };
        let after: Option<Cursor> = parse_cursor(args.cursor.as_deref())?;
        let page = self.tl.list(&filter, after.as_ref(), limit).await?;
        Ok(Json(SessionList {
            sessions: page
                .items
                .iter()
                .map(|info| self.session_view(info))
                .collect(),
            next: page.next.map(|next| next.to_string()),
        }))
    }

    /// Search all sessions by words and by meaning. Returns quotes; use read_session to read
    /// around them.
    #[tool(annotations(
        title = "Search sessions",
        read_only_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn search_sessions(
        &self,
        Parameters(args): Parameters<SearchSessionsArgs>,
    ) -> Result<Json<Hits>, ToolError> {
        let limit = check_limit(args.limit, 10, 50)?;
        let project = match &args.project {
            None => None,
            named => self.resolve_project(named.as_deref()).await?,
        };
        let searched = self
            .tl
            .search(&SearchOptions {
                query: &args.query,
                mode: Mode::Hybrid,
                limit,
                typing: false,
                project: project.as_ref(),
                listing: &[],
                zone: &self.zone,
                index_wait: IndexWait::For(MAX_INDEX_WAIT),
            })
            .await?;
        let hits = searched.found.hits.iter().map(|hit| HitView {
            session: hit.session.to_string(),
            title: searched
                .session(&hit.session)
                .map(|info| self.redact_text(info.title()).into_owned()),
            seq: hit.seq.0,
            role: hit.role.as_str().to_owned(),
            at: hit.at.to_string(),
            quote: self.safe_quote(&hit.text, &hit.snippet.text),
        });
        Ok(Json(Hits {
            note: QUOTE_NOTICE,
            hits: hits.collect(),
            corrected: searched.found.corrected.clone(),
            behind: searched.lag,
        }))
    }

    /// Returns the snippet of a hit, unless it may contain part of a secret that is only
    /// recognizable in the whole text: then the beginning of the redacted whole.
    fn safe_quote(&self, whole: &str, snippet: &str) -> String {
        let safe = self.redact_text(whole);
        if matches!(safe, std::borrow::Cow::Borrowed(_)) {
            return snippet.to_owned();
        }
        truncate(&safe, 400).0
    }

    /// Read a session's entries, the last ones or any range, oldest first.
    #[tool(annotations(
        title = "Read a session",
        read_only_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn read_session(
        &self,
        Parameters(args): Parameters<ReadSessionArgs>,
    ) -> Result<Json<Entries>, ToolError> {
        let limit = check_limit(args.limit, 20, 200)?;
        let longest = args.longest.unwrap_or(DEFAULT_ENTRY_CHARS);
        if !(1..=50_000).contains(&longest) {
            return Err(ToolError::invalid(format!(
                "longest must be from 1 to 50000 characters, not {longest}"
            )));
        }
        let session = self.resolve_session(&args.session).await?;
        let info = session.record().await?.info;
        let (read, from_end) = match (args.from, args.before) {
            (Some(_), Some(_)) => {
                return Err(ToolError::invalid("give from or before, not both"));
            }
            (Some(from), None) => (Some(ReadRange::starting_at(Seq(from.max(1)), limit)), false),
            (None, Some(0 | 1)) => (None, true),
            (None, Some(seq)) => (Some(ReadRange::up_to(Some(previous_seq(seq)), limit)), true),
            (None, None) => (Some(ReadRange::tail(limit)), true),
        };
        let entries = match read {
            Some(read) => session.read(read).await?,
            None => Vec::new(),
        };
        let shown = entries
            .into_iter()
            .map(|entry| self.entry_view(entry, longest));
        let entries = take_fitting(shown.collect(), from_end);
        let older = entries.first().map(|first| first.seq);
        let newer = entries.last().map(|last| last.seq + 1);
        Ok(Json(Entries {
            note: QUOTE_NOTICE,
            older: older.filter(|seq| *seq > 1),
            newer: newer.filter(|seq| *seq <= info.head.0),
            session: self.session_view(&info),
            entries,
        }))
    }

    /// Build the context for a task: for a session, what a model that continues it would be
    /// sent; without a session, the relevant facts and excerpts from the memory and all
    /// sessions.
    #[tool(annotations(
        title = "Build context",
        read_only_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn build_context(
        &self,
        Parameters(args): Parameters<BuildContextArgs>,
    ) -> Result<Json<ContextView>, ToolError> {
        let budget = args.budget.unwrap_or(DEFAULT_BUDGET);
        if !(100..=MAX_BUDGET).contains(&budget) {
            return Err(ToolError::invalid(format!(
                "budget must be from 100 to {MAX_BUDGET} tokens, not {budget}"
            )));
        }
        let sections = match &args.session {
            Some(named) => self.session_context(named, &args.task, budget).await?,
            None => self.task_context(&args, budget).await?,
        };
        let tokens = sections.iter().map(|s| self.count_tokens(&s.text)).sum();
        Ok(Json(ContextView {
            note: QUOTE_NOTICE,
            sections,
            tokens,
        }))
    }

    /// Returns what a model that continues a session would be sent.
    async fn session_context(
        &self,
        named: &str,
        task: &str,
        budget: u64,
    ) -> Result<Vec<SectionView>, ToolError> {
        let session = self.resolve_session(named).await?;
        let responder = Responder::offline();
        let message = Content::text(task);
        let asking = RequestOptions {
            budget: Some(budget),
            ..responder.request_options(Some(&message))
        };
        let request = session.request(&asking).await?;
        let shown = request.sections.iter().filter(|section| {
            // Leave out the task itself: the caller already has it.
            section.name != throughline::context::SectionName::Message && !section.text.is_empty()
        });
        Ok(shown
            .map(|section| SectionView {
                name: section.name.to_string(),
                text: self.redact_text(&section.text).into_owned(),
            })
            .collect())
    }

    /// Returns what the memory and all sessions contain about a task.
    async fn task_context(
        &self,
        args: &BuildContextArgs,
        budget: u64,
    ) -> Result<Vec<SectionView>, ToolError> {
        let facts = self
            .search_facts(&args.task, args.project.as_deref())
            .await?;
        let found = self
            .search_sessions(Parameters(SearchSessionsArgs {
                query: strip_query_syntax(&args.task),
                project: args.project.clone(),
                limit: Some(20),
            }))
            .await?;
        let mut room = budget;
        let mut within = |lines: Vec<String>| {
            let mut text = String::new();
            for line in lines {
                let tokens = self.count_tokens(&line);
                if tokens > room {
                    break;
                }
                room -= tokens;
                text.push_str(&line);
            }
            text
        };
        let facts = facts
            .iter()
            .map(|fact: &FactView| format!("- {}\n", fact.text));
        let facts = within(facts.collect());
        let quotes = found.0.hits.iter().map(|hit| {
            format!(
                "[session {} entry {}, {}, {}] {}\n",
                hit.session, hit.seq, hit.at, hit.role, hit.quote
            )
        });
        let quotes = within(quotes.collect());
        let named = [("memory", facts), ("recalled", quotes)];
        Ok(named
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| SectionView {
                name: name.to_owned(),
                text,
            })
            .collect())
    }

    fn count_tokens(&self, text: &str) -> u64 {
        throughline::context::Encoding::Rough.count(text)
    }
}

/// Strips query syntax from a task, so that nothing in it is read as a filter or phrase.
fn strip_query_syntax(task: &str) -> String {
    let (task, _) = truncate(task, MAX_HISTORY_CHARS.min(2_000));
    task.replace([':', '"'], " ")
}

pub(crate) fn parse_cursor(cursor: Option<&str>) -> Result<Option<Cursor>, ToolError> {
    cursor.map(str::parse).transpose().map_err(|error| {
        ToolError::invalid(format!(
            "the cursor is invalid ({error}); send `next` of the previous page, or omit it"
        ))
    })
}
