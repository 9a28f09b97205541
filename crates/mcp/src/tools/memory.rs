//! Tools of the memory: remember, recall, forget.

use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::{schemars, tool, tool_router};
use serde::{Deserialize, Serialize};
use throughline::{AddedHow, NewFact, Seq};

use crate::Mcp;
use crate::ask::limit;
use crate::refusal::Refusal;
use crate::shown::{FactShown, QUOTED};

/// Who says what an agent remembers.
const BY: &str = "agent";

/// Of what something is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Scope {
    /// Of the project you work in, or the one that is named.
    #[default]
    Project,
    /// Of everything the owner does.
    Owner,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remember {
    /// One fact, in a sentence that can be understood by itself.
    fact: String,
    /// `project` (the one you work in, or the one named) or `owner` (everywhere). Where
    /// there is no project, everywhere.
    #[serde(default)]
    scope: Scope,
    /// Another project than the one you work in, by its id or name.
    project: Option<String>,
    /// Files and folders it belongs to, relative to the project's top.
    #[serde(default)]
    files: Vec<String>,
    /// Older facts that it replaces, by their numbers.
    #[serde(default)]
    supersedes: Vec<u64>,
    /// Whether it waits for a person's word before it counts.
    #[serde(default)]
    proposed: bool,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RememberedShown {
    /// `new`; `known` where it was remembered already; `accepted` where it was proposed.
    how: &'static str,
    /// The fact.
    fact: FactShown,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recall {
    /// What it is about; everything that is remembered, where left out.
    query: Option<String>,
    /// Another project than the one you work in, by its id or name.
    project: Option<String>,
    /// How many facts to leave out from the beginning: `next` of the answer before.
    #[serde(default)]
    skip: usize,
    /// How many facts at most, up to 100; 20 where left out.
    limit: Option<usize>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Recalled {
    /// What the facts are.
    note: &'static str,
    /// The facts, the best first.
    facts: Vec<FactShown>,
    /// What to send as `skip` for the rest, if there is one.
    next: Option<usize>,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forget {
    /// The fact's number, as recall tells it.
    fact: u64,
    /// Its scope, as recall tells it: `project` or `owner`. Where there is no project, `owner`.
    #[serde(default)]
    scope: Scope,
    /// Another project than the one you work in, by its id or name.
    project: Option<String>,
    /// Why it no longer counts.
    reason: Option<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ForgottenShown {
    /// The fact that no longer counts. It stays readable in the memory's history.
    forgotten: FactShown,
}

#[tool_router(router = memory_tools, vis = "pub(crate)")]
impl Mcp {
    /// Remember a fact beyond this session. What it contradicts it replaces; what is known
    /// already is not remembered twice. Secrets are refused.
    #[tool(annotations(
        title = "Remember a fact",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn remember(
        &self,
        Parameters(asked): Parameters<Remember>,
    ) -> Result<Json<RememberedShown>, Refusal> {
        let (memory, scope) = self.meant(asked.scope, asked.project.as_deref()).await?;
        let added = memory
            .add(NewFact {
                by: BY.to_owned(),
                files: asked.files,
                supersedes: asked.supersedes.into_iter().map(Seq).collect(),
                proposed: asked.proposed,
                ..NewFact::said(asked.fact)
            })
            .await?;
        let how = match added.how {
            AddedHow::New => "new",
            AddedHow::Known => "known",
            AddedHow::Accepted => "accepted",
        };
        let fact = self.fact_shown(added.fact, scope);
        Ok(Json(RememberedShown { how, fact }))
    }

    /// Recall what is remembered of the project and of everything the owner does.
    #[tool(annotations(title = "Recall facts", read_only_hint = true, open_world_hint = false))]
    pub(crate) async fn recall(
        &self,
        Parameters(asked): Parameters<Recall>,
    ) -> Result<Json<Recalled>, Refusal> {
        let limit = limit(asked.limit, 20, 100)?;
        let project = asked.project.as_deref();
        let all = match asked.query.as_deref().map(str::trim) {
            Some(query) if !query.is_empty() => self.known_about(query, project).await?,
            _ => self.known(project).await?,
        };
        let end = asked.skip.saturating_add(limit);
        let next = (end < all.len()).then_some(end);
        let facts = all.into_iter().skip(asked.skip).take(limit).collect();
        Ok(Json(Recalled {
            note: QUOTED,
            facts,
            next,
        }))
    }

    /// Let a fact count no more. It stays readable in the memory's history.
    #[tool(annotations(
        title = "Forget a fact",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn forget(
        &self,
        Parameters(asked): Parameters<Forget>,
    ) -> Result<Json<ForgottenShown>, Refusal> {
        let (memory, scope) = self.meant(asked.scope, asked.project.as_deref()).await?;
        let fact = memory
            .forget(Seq(asked.fact), asked.reason.as_deref())
            .await?;
        let forgotten = self.fact_shown(fact, scope);
        Ok(Json(ForgottenShown { forgotten }))
    }

    /// The memory that was meant, and what its scope is called.
    async fn meant(
        &self,
        scope: Scope,
        project: Option<&str>,
    ) -> Result<(throughline::Memory, &'static str), Refusal> {
        if scope == Scope::Owner {
            return match project {
                None => Ok((self.memory(None), "owner")),
                Some(_) => Err(Refusal::invalid(
                    "scope is owner and a project is named; give one of them",
                )),
            };
        }
        let project = self.project(project).await?;
        let called = if project.is_some() {
            "project"
        } else {
            "owner"
        };
        Ok((self.memory(project), called))
    }

    /// The facts of the project, then those that hold everywhere, that are about something.
    pub(crate) async fn known_about(
        &self,
        query: &str,
        project: Option<&str>,
    ) -> Result<Vec<FactShown>, Refusal> {
        let mut found = Vec::new();
        if let Some(project) = self.project(project).await? {
            let facts = self.memory(Some(project)).search(query).await?;
            found.extend(facts.into_iter().map(|found| ("project", found)));
        }
        let facts = self.memory(None).search(query).await?;
        found.extend(facts.into_iter().map(|found| ("owner", found)));
        found.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score));
        Ok(found
            .into_iter()
            .map(|(scope, found)| self.fact_shown(found.fact, scope))
            .collect())
    }

    /// All facts that count, those of the project first.
    async fn known(&self, project: Option<&str>) -> Result<Vec<FactShown>, Refusal> {
        let mut facts = Vec::new();
        if let Some(project) = self.project(project).await? {
            let known = self.memory(Some(project)).standing(&[], usize::MAX).await?;
            facts.extend(
                known
                    .into_iter()
                    .map(|fact| self.fact_shown(fact, "project")),
            );
        }
        let known = self.memory(None).standing(&[], usize::MAX).await?;
        facts.extend(known.into_iter().map(|fact| self.fact_shown(fact, "owner")));
        Ok(facts)
    }
}
