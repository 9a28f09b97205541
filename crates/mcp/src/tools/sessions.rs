//! Tools that read: list, search, read, and build context for a task.

use std::time::Duration;

use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::{schemars, tool, tool_router};
use serde::{Deserialize, Serialize};
use throughline::recalling::Mode;
use throughline::{Asking, Content, Cursor, Filter, Patience, Read, Searching, Seq, Tag, Voice};

use crate::Mcp;
use crate::ask::limit;
use crate::refusal::Refusal;
use crate::shown::{EntryShown, FactShown, MOST, QUOTED, SessionShown, before, cut, fitting};

/// How long what was just said is waited for.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Characters of one entry that are shown where nobody says.
const USUAL_ENTRY: usize = 4_000;
/// Tokens of a context where nobody says.
const USUAL_BUDGET: u64 = 8_000;
/// The most tokens of a context.
const MOST_BUDGET: u64 = 100_000;

#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListSessions {
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
    sessions: Vec<SessionShown>,
    /// The cursor of the next page, if there is one.
    next: Option<String>,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchSessions {
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
    hits: Vec<HitShown>,
    /// What was searched for instead, when nothing had the words as they were typed.
    corrected: Option<String>,
    /// How many changes could not be searched yet.
    behind: u64,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct HitShown {
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
pub(crate) struct ReadSession {
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
    session: SessionShown,
    /// The entries, oldest first.
    entries: Vec<EntryShown>,
    /// What to ask for with `before` to read on backwards; none at the beginning.
    older: Option<u64>,
    /// What to ask for with `from` to read on; none at the end.
    newer: Option<u64>,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BuildContext {
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
pub(crate) struct ContextShown {
    /// What the texts are.
    note: &'static str,
    /// The parts, in the order in which to read them.
    sections: Vec<SectionShown>,
    /// About how many tokens they are.
    tokens: u64,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SectionShown {
    /// What it is: memory, checkpoint, recent messages, recalled excerpts, …
    name: String,
    /// What it says.
    text: String,
}

#[tool_router(router = session_tools, vis = "pub(crate)")]
impl Mcp {
    /// List past and present sessions, latest activity first, with what each is about.
    #[tool(annotations(
        title = "List sessions",
        read_only_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn list_sessions(
        &self,
        Parameters(asked): Parameters<ListSessions>,
    ) -> Result<Json<SessionList>, Refusal> {
        let limit = limit(asked.limit, 20, 100)?;
        let tags: Result<Vec<Tag>, _> = asked.tags.iter().map(|tag| tag.parse()).collect();
        let project = match &asked.project {
            None => None,
            named => self.project(named.as_deref()).await?,
        };
        let filter = Filter {
            tags: tags.map_err(throughline::Error::from)?,
            agent: asked.agent,
            project,
            ..Filter::default()
        };
        let after: Option<Cursor> = parsed_cursor(asked.cursor.as_deref())?;
        let page = self.tl.list(&filter, after.as_ref(), limit).await?;
        Ok(Json(SessionList {
            sessions: page
                .items
                .iter()
                .map(|card| self.session_shown(card))
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
        Parameters(asked): Parameters<SearchSessions>,
    ) -> Result<Json<Hits>, Refusal> {
        let limit = limit(asked.limit, 10, 50)?;
        let project = match &asked.project {
            None => None,
            named => self.project(named.as_deref()).await?,
        };
        let searched = self
            .tl
            .search(&Searching {
                typed: &asked.query,
                mode: Mode::Hybrid,
                limit,
                typing: false,
                project: project.as_ref(),
                listing: &[],
                zone: &self.zone,
                patience: Patience::For(PATIENCE),
            })
            .await?;
        let hits = searched.found.hits.iter().map(|hit| HitShown {
            session: hit.session.to_string(),
            title: searched
                .card(&hit.session)
                .map(|card| self.safe(card.title()).into_owned()),
            seq: hit.seq.0,
            role: hit.role.as_str().to_owned(),
            at: hit.at.to_string(),
            quote: self.quote(&hit.text, &hit.snippet.text),
        });
        Ok(Json(Hits {
            note: QUOTED,
            hits: hits.collect(),
            corrected: searched.found.corrected.clone(),
            behind: searched.behind,
        }))
    }

    /// The snippet of a hit, unless it may hold a piece of a secret that is only seen in
    /// the whole: then the beginning of the redacted whole.
    fn quote(&self, whole: &str, snippet: &str) -> String {
        let safe = self.safe(whole);
        if matches!(safe, std::borrow::Cow::Borrowed(_)) {
            return snippet.to_owned();
        }
        cut(&safe, 400).0
    }

    /// Read a session's entries, the last ones or any stretch, oldest first.
    #[tool(annotations(
        title = "Read a session",
        read_only_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn read_session(
        &self,
        Parameters(asked): Parameters<ReadSession>,
    ) -> Result<Json<Entries>, Refusal> {
        let limit = limit(asked.limit, 20, 200)?;
        let longest = asked.longest.unwrap_or(USUAL_ENTRY);
        if !(1..=50_000).contains(&longest) {
            return Err(Refusal::invalid(format!(
                "longest is from 1 to 50000 characters, not {longest}"
            )));
        }
        let session = self.session(&asked.session).await?;
        let card = session.record().await?.card;
        let (read, from_end) = match (asked.from, asked.before) {
            (Some(_), Some(_)) => {
                return Err(Refusal::invalid("give from or before, not both"));
            }
            (Some(from), None) => (Some(Read::from(Seq(from.max(1)), limit)), false),
            (None, Some(0 | 1)) => (None, true),
            (None, Some(seq)) => (Some(Read::before(Some(before(seq)), limit)), true),
            (None, None) => (Some(Read::tail(limit)), true),
        };
        let entries = match read {
            Some(read) => session.read(read).await?,
            None => Vec::new(),
        };
        let shown = entries
            .into_iter()
            .map(|entry| self.entry_shown(entry, longest));
        let entries = fitting(shown.collect(), from_end);
        let older = entries.first().map(|first| first.seq);
        let newer = entries.last().map(|last| last.seq + 1);
        Ok(Json(Entries {
            note: QUOTED,
            older: older.filter(|seq| *seq > 1),
            newer: newer.filter(|seq| *seq <= card.head.0),
            session: self.session_shown(&card),
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
        Parameters(asked): Parameters<BuildContext>,
    ) -> Result<Json<ContextShown>, Refusal> {
        let budget = asked.budget.unwrap_or(USUAL_BUDGET);
        if !(100..=MOST_BUDGET).contains(&budget) {
            return Err(Refusal::invalid(format!(
                "budget is from 100 to {MOST_BUDGET} tokens, not {budget}"
            )));
        }
        let sections = match &asked.session {
            Some(named) => self.context_of(named, &asked.task, budget).await?,
            None => self.context_on(&asked, budget).await?,
        };
        let tokens = sections.iter().map(|s| self.tokens(&s.text)).sum();
        Ok(Json(ContextShown {
            note: QUOTED,
            sections,
            tokens,
        }))
    }

    /// What a model going on with a session would be sent.
    async fn context_of(
        &self,
        named: &str,
        task: &str,
        budget: u64,
    ) -> Result<Vec<SectionShown>, Refusal> {
        let session = self.session(named).await?;
        let voice = Voice::offline();
        let message = Content::text(task);
        let asking = Asking {
            budget: Some(budget),
            ..voice.asking(Some(&message))
        };
        let request = session.request(&asking).await?;
        let said = request.sections.iter().filter(|section| {
            // The task itself is known to whoever sent it.
            section.name != throughline::context::SectionName::Message && !section.text.is_empty()
        });
        Ok(said
            .map(|section| SectionShown {
                name: section.name.to_string(),
                text: self.safe(&section.text).into_owned(),
            })
            .collect())
    }

    /// What the memory and all sessions have on a task.
    async fn context_on(
        &self,
        asked: &BuildContext,
        budget: u64,
    ) -> Result<Vec<SectionShown>, Refusal> {
        let facts = self
            .known_about(&asked.task, asked.project.as_deref())
            .await?;
        let found = self
            .search_sessions(Parameters(SearchSessions {
                query: plain(&asked.task),
                project: asked.project.clone(),
                limit: Some(20),
            }))
            .await?;
        let mut room = budget;
        let mut within = |lines: Vec<String>| {
            let mut text = String::new();
            for line in lines {
                let tokens = self.tokens(&line);
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
            .map(|fact: &FactShown| format!("- {}\n", fact.text));
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
            .map(|(name, text)| SectionShown {
                name: name.to_owned(),
                text,
            })
            .collect())
    }

    fn tokens(&self, text: &str) -> u64 {
        throughline::context::Encoding::Rough.count(text)
    }
}

/// A task in words alone: what it says is no filter and no phrase.
fn plain(task: &str) -> String {
    let (task, _) = cut(task, MOST.min(2_000));
    task.replace([':', '"'], " ")
}

pub(crate) fn parsed_cursor(cursor: Option<&str>) -> Result<Option<Cursor>, Refusal> {
    cursor.map(str::parse).transpose().map_err(|error| {
        Refusal::invalid(format!(
            "the cursor means nothing here ({error}); send `next` of the page before, or none"
        ))
    })
}
