//! Tools that read: list, search, read, and build context for a task.

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

/// How long what was just said is waited for.
const MAX_INDEX_WAIT: Duration = Duration::from_millis(1_500);
/// Characters of one entry that are shown where nobody says.
const DEFAULT_ENTRY_CHARS: usize = 4_000;
/// Tokens of a context where nobody says.
const DEFAULT_BUDGET: u64 = 8_000;
/// The most tokens of a context.
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
    /// Only sessions last with the agent of this name.
    agent: Option<String>,
    /// Where the page starts: `next` of the page before.
    cursor: Option<String>,
    /// How many at most, up to 100; 20 where left out.
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
    /// How many hits at most, up to 50; 10 where left out.
    limit: Option<usize>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Hits {
    /// What the quotes are.
    note: &'static str,
    /// The hits, the best first.
    hits: Vec<HitView>,
    /// What was searched for instead, when nothing had the words as they were typed.
    corrected: Option<String>,
    /// How many changes could not be searched yet.
    behind: u64,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "HitShown")]
pub(crate) struct HitView {
    /// The session it is in.
    session: String,
    /// What that session is called.
    title: Option<String>,
    /// The entry, for read_session.
    seq: u64,
    /// Who spoke.
    role: String,
    /// When.
    at: String,
    /// The best place in it.
    quote: String,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ReadSession")]
pub(crate) struct ReadSessionArgs {
    /// Which: its id, the beginning of one, its name or key, or `last`.
    session: String,
    /// The first entry to read, to read forwards; without it and `before`, the last ones
    /// are read.
    from: Option<u64>,
    /// Read the entries before this one, to read backwards.
    before: Option<u64>,
    /// How many entries at most, up to 200; 20 where left out.
    limit: Option<usize>,
    /// How many characters of each entry at most, up to 50000; 4000 where left out.
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
    /// What to ask for with `before` to read on backwards; none at the beginning.
    older: Option<u64>,
    /// What to ask for with `from` to read on; none at the end.
    newer: Option<u64>,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BuildContext")]
pub(crate) struct BuildContextArgs {
    /// What is to be done, in a sentence or two.
    task: String,
    /// The session to go on with; without one, what all sessions and the memory have on
    /// the task.
    session: Option<String>,
    /// Only from this project, by its id or name; the one you work in where left out.
    project: Option<String>,
    /// How many tokens it may take, up to 100000; 8000 where left out.
    budget: Option<u64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ContextShown")]
pub(crate) struct ContextView {
    /// What the texts are.
    note: &'static str,
    /// The parts, in the order in which to read them.
    sections: Vec<SectionView>,
    /// About how many tokens they are.
    tokens: u64,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "SectionShown")]
pub(crate) struct SectionView {
    /// What it is: memory, checkpoint, recent messages, recalled excerpts, …
    name: String,
    /// What it says.
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
        Parameters(asked): Parameters<ListSessionsArgs>,
    ) -> Result<Json<SessionList>, ToolError> {
        let limit = check_limit(asked.limit, 20, 100)?;
        let tags: Result<Vec<Tag>, _> = asked.tags.iter().map(|tag| tag.parse()).collect();
        let project = match &asked.project {
            None => None,
            named => self.resolve_project(named.as_deref()).await?,
        };
        let filter = SessionFilter {
            tags: tags.map_err(throughline::Error::from)?,
            agent: asked.agent,
            project,
            ..SessionFilter::default()
        };
        let after: Option<Cursor> = parse_cursor(asked.cursor.as_deref())?;
        let page = self.tl.list(&filter, after.as_ref(), limit).await?;
        Ok(Json(SessionList {
            sessions: page
                .items
                .iter()
                .map(|card| self.session_view(card))
                .collect(),
            next: page.next.map(|next| next.to_string()),
        }))
    }

    /// Find where something was said, in all sessions, by words and by meaning. Answers with
    /// quotes; read_session reads around them.
    #[tool(annotations(
        title = "Search sessions",
        read_only_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn search_sessions(
        &self,
        Parameters(asked): Parameters<SearchSessionsArgs>,
    ) -> Result<Json<Hits>, ToolError> {
        let limit = check_limit(asked.limit, 10, 50)?;
        let project = match &asked.project {
            None => None,
            named => self.resolve_project(named.as_deref()).await?,
        };
        let searched = self
            .tl
            .search(&SearchOptions {
                query: &asked.query,
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
                .map(|card| self.redact_text(card.title()).into_owned()),
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

    /// The snippet of a hit, unless it may hold a piece of a secret that is only seen in
    /// the whole: then the beginning of the redacted whole.
    fn safe_quote(&self, whole: &str, snippet: &str) -> String {
        let safe = self.redact_text(whole);
        if matches!(safe, std::borrow::Cow::Borrowed(_)) {
            return snippet.to_owned();
        }
        truncate(&safe, 400).0
    }

    /// Read a session's entries, the last ones or any stretch, oldest first.
    #[tool(annotations(
        title = "Read a session",
        read_only_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn read_session(
        &self,
        Parameters(asked): Parameters<ReadSessionArgs>,
    ) -> Result<Json<Entries>, ToolError> {
        let limit = check_limit(asked.limit, 20, 200)?;
        let longest = asked.longest.unwrap_or(DEFAULT_ENTRY_CHARS);
        if !(1..=50_000).contains(&longest) {
            return Err(ToolError::invalid(format!(
                "longest is from 1 to 50000 characters, not {longest}"
            )));
        }
        let session = self.resolve_session(&asked.session).await?;
        let card = session.record().await?.info;
        let (read, from_end) = match (asked.from, asked.before) {
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
            newer: newer.filter(|seq| *seq <= card.head.0),
            session: self.session_view(&card),
            entries,
        }))
    }

    /// Put together what matters for a task: of one session, what a model going on with it
    /// would be sent; without a session, what the memory and all sessions have on it.
    #[tool(annotations(
        title = "Build context",
        read_only_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn build_context(
        &self,
        Parameters(asked): Parameters<BuildContextArgs>,
    ) -> Result<Json<ContextView>, ToolError> {
        let budget = asked.budget.unwrap_or(DEFAULT_BUDGET);
        if !(100..=MAX_BUDGET).contains(&budget) {
            return Err(ToolError::invalid(format!(
                "budget is from 100 to {MAX_BUDGET} tokens, not {budget}"
            )));
        }
        let sections = match &asked.session {
            Some(named) => self.session_context(named, &asked.task, budget).await?,
            None => self.task_context(&asked, budget).await?,
        };
        let tokens = sections.iter().map(|s| self.count_tokens(&s.text)).sum();
        Ok(Json(ContextView {
            note: QUOTE_NOTICE,
            sections,
            tokens,
        }))
    }

    /// What a model going on with a session would be sent.
    async fn session_context(
        &self,
        named: &str,
        task: &str,
        budget: u64,
    ) -> Result<Vec<SectionView>, ToolError> {
        let session = self.resolve_session(named).await?;
        let voice = Responder::offline();
        let message = Content::text(task);
        let asking = RequestOptions {
            budget: Some(budget),
            ..voice.request_options(Some(&message))
        };
        let request = session.request(&asking).await?;
        let said = request.sections.iter().filter(|section| {
            // The task itself is known to whoever sent it.
            section.name != throughline::context::SectionName::Message && !section.text.is_empty()
        });
        Ok(said
            .map(|section| SectionView {
                name: section.name.to_string(),
                text: self.redact_text(&section.text).into_owned(),
            })
            .collect())
    }

    /// What the memory and all sessions have on a task.
    async fn task_context(
        &self,
        asked: &BuildContextArgs,
        budget: u64,
    ) -> Result<Vec<SectionView>, ToolError> {
        let facts = self
            .search_facts(&asked.task, asked.project.as_deref())
            .await?;
        let found = self
            .search_sessions(Parameters(SearchSessionsArgs {
                query: strip_query_syntax(&asked.task),
                project: asked.project.clone(),
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

/// A task in words alone: what it says is no filter and no phrase.
fn strip_query_syntax(task: &str) -> String {
    let (task, _) = truncate(task, MAX_HISTORY_CHARS.min(2_000));
    task.replace([':', '"'], " ")
}

pub(crate) fn parse_cursor(cursor: Option<&str>) -> Result<Option<Cursor>, ToolError> {
    cursor.map(str::parse).transpose().map_err(|error| {
        ToolError::invalid(format!(
            "the cursor means nothing here ({error}); send `next` of the page before, or none"
        ))
    })
}
