//! Tools of the memory: remember, recall, forget.

use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::{schemars, tool, tool_router};
use serde::{Deserialize, Serialize};
use throughline::{AddFactStatus, NewFact, Seq};

use crate::McpServer;
use crate::history_view::{FactView, QUOTE_NOTICE};
use crate::resolve::check_limit;
use crate::tool_error::ToolError;

/// Who says what an agent remembers.
const FACT_AUTHOR: &str = "agent";

/// Of what something is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Scope")]
enum FactScope {
    /// Of the project you work in, or the one that is named.
    #[default]
    Project,
    /// Of everything the owner does.
    Owner,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Remember")]
pub(crate) struct RememberArgs {
    /// One fact, in a sentence that can be understood by itself.
    fact: String,
    /// `project` (the one you work in, or the one named) or `owner` (everywhere). Where
    /// there is no project, everywhere.
    #[serde(default)]
    scope: FactScope,
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
#[schemars(rename = "RememberedShown")]
pub(crate) struct RememberOutcome {
    /// `new`; `known` where it was remembered already; `accepted` where it was proposed.
    how: &'static str,
    /// The fact.
    fact: FactView,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Recall")]
pub(crate) struct RecallArgs {
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
#[schemars(rename = "Recalled")]
pub(crate) struct FactPage {
    /// What the facts are.
    note: &'static str,
    /// The facts, the best first.
    facts: Vec<FactView>,
    /// What to send as `skip` for the rest, if there is one.
    next: Option<usize>,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Forget")]
pub(crate) struct ForgetArgs {
    /// The fact's number, as recall tells it.
    fact: u64,
    /// Its scope, as recall tells it: `project` or `owner`. Where there is no project, `owner`.
    #[serde(default)]
    scope: FactScope,
    /// Another project than the one you work in, by its id or name.
    project: Option<String>,
    /// Why it no longer counts.
    reason: Option<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ForgottenShown")]
pub(crate) struct ForgetOutcome {
    /// The fact that no longer counts. It stays readable in the memory's history.
    forgotten: FactView,
}

#[tool_router(router = memory_tools, vis = "pub(crate)")]
impl McpServer {
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
        Parameters(asked): Parameters<RememberArgs>,
    ) -> Result<Json<RememberOutcome>, ToolError> {
        let (memory, scope) = self
            .resolve_memory(asked.scope, asked.project.as_deref())
            .await?;
        let added = memory
            .add(NewFact {
                by: FACT_AUTHOR.to_owned(),
                files: asked.files,
                supersedes: asked.supersedes.into_iter().map(Seq).collect(),
                proposed: asked.proposed,
                ..NewFact::from_person(asked.fact)
            })
            .await?;
        let how = match added.status {
            AddFactStatus::New => "new",
            AddFactStatus::Known => "known",
            AddFactStatus::Accepted => "accepted",
        };
        let fact = self.fact_view(added.fact, scope);
        Ok(Json(RememberOutcome { how, fact }))
    }

    /// Recall what is remembered of the project and of everything the owner does.
    #[tool(annotations(title = "Recall facts", read_only_hint = true, open_world_hint = false))]
    pub(crate) async fn recall(
        &self,
        Parameters(asked): Parameters<RecallArgs>,
    ) -> Result<Json<FactPage>, ToolError> {
        let limit = check_limit(asked.limit, 20, 100)?;
        let project = asked.project.as_deref();
        let all = match asked.query.as_deref().map(str::trim) {
            Some(query) if !query.is_empty() => self.search_facts(query, project).await?,
            _ => self.list_facts(project).await?,
        };
        let end = asked.skip.saturating_add(limit);
        let next = (end < all.len()).then_some(end);
        let facts = all.into_iter().skip(asked.skip).take(limit).collect();
        Ok(Json(FactPage {
            note: QUOTE_NOTICE,
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
        Parameters(asked): Parameters<ForgetArgs>,
    ) -> Result<Json<ForgetOutcome>, ToolError> {
        let (memory, scope) = self
            .resolve_memory(asked.scope, asked.project.as_deref())
            .await?;
        let fact = memory
            .forget(Seq(asked.fact), asked.reason.as_deref())
            .await?;
        let forgotten = self.fact_view(fact, scope);
        Ok(Json(ForgetOutcome { forgotten }))
    }

    /// The memory that was meant, and what its scope is called.
    async fn resolve_memory(
        &self,
        scope: FactScope,
        project: Option<&str>,
    ) -> Result<(throughline::Memory, &'static str), ToolError> {
        if scope == FactScope::Owner {
            return match project {
                None => Ok((self.memory(None), "owner")),
                Some(_) => Err(ToolError::invalid(
                    "scope is owner and a project is named; give one of them",
                )),
            };
        }
        let project = self.resolve_project(project).await?;
        let called = if project.is_some() {
            "project"
        } else {
            "owner"
        };
        Ok((self.memory(project), called))
    }

    /// The facts of the project, then those that hold everywhere, that are about something.
    pub(crate) async fn search_facts(
        &self,
        query: &str,
        project: Option<&str>,
    ) -> Result<Vec<FactView>, ToolError> {
        let mut found = Vec::new();
        if let Some(project) = self.resolve_project(project).await? {
            let facts = self.memory(Some(project)).search(query).await?;
            found.extend(facts.into_iter().map(|found| ("project", found)));
        }
        let facts = self.memory(None).search(query).await?;
        found.extend(facts.into_iter().map(|found| ("owner", found)));
        found.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score));
        Ok(found
            .into_iter()
            .map(|(scope, found)| self.fact_view(found.fact, scope))
            .collect())
    }

    /// All facts that count, those of the project first.
    async fn list_facts(&self, project: Option<&str>) -> Result<Vec<FactView>, ToolError> {
        let mut facts = Vec::new();
        if let Some(project) = self.resolve_project(project).await? {
            let known = self
                .memory(Some(project))
                .top_facts(&[], usize::MAX)
                .await?;
            facts.extend(
                known
                    .into_iter()
                    .map(|fact| self.fact_view(fact, "project")),
            );
        }
        let known = self.memory(None).top_facts(&[], usize::MAX).await?;
        facts.extend(known.into_iter().map(|fact| self.fact_view(fact, "owner")));
        Ok(facts)
    }
}
