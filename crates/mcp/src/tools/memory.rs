//! MCP tools for the memory: remember, recall, forget.

use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::{schemars, tool, tool_router};
use serde::{Deserialize, Serialize};
use throughline::{AddFactStatus, NewFact, Seq};

use crate::McpServer;
use crate::history_view::{FactView, QUOTE_NOTICE};
use crate::resolve::check_limit;
use crate::tool_error::ToolError;

/// The author recorded for facts that an agent remembers.
const FACT_AUTHOR: &str = "agent";

/// The scope a fact applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Scope")]
enum FactScope {
    /// The project you work in, or the one that is named.
    #[default]
    Project,
    /// Everything the owner does.
    Owner,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Remember")]
pub(crate) struct RememberArgs {
    /// One fact, in a sentence that can be understood by itself.
    fact: String,
    /// `project` (the one you work in, or the one named) or `owner` (everywhere). Without a
    /// project, the fact applies everywhere.
    #[serde(default)]
    scope: FactScope,
    /// A project other than the one you work in, by id or name.
    project: Option<String>,
    /// Files and folders it is about, relative to the project root.
    #[serde(default)]
    files: Vec<String>,
    /// The numbers of older facts that it replaces.
    #[serde(default)]
    supersedes: Vec<u64>,
    /// Whether it needs a person's approval before it takes effect.
    #[serde(default)]
    proposed: bool,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "RememberedShown")]
pub(crate) struct RememberOutcome {
    /// `new`, `known` if it was remembered already, or `accepted` if it had been proposed.
    how: &'static str,
    /// The fact.
    fact: FactView,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Recall")]
pub(crate) struct RecallArgs {
    /// What the facts should be about [default: all facts].
    query: Option<String>,
    /// A project other than the one you work in, by id or name.
    project: Option<String>,
    /// The number of facts to skip: `next` of the previous answer.
    #[serde(default)]
    skip: usize,
    /// The maximum number of facts, up to 100 [default: 20].
    limit: Option<usize>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Recalled")]
pub(crate) struct FactPage {
    /// What the facts are.
    note: &'static str,
    /// The facts, the best first.
    facts: Vec<FactView>,
    /// The value of `skip` for the next page, if there is one.
    next: Option<usize>,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Forget")]
pub(crate) struct ForgetArgs {
    /// The fact's number, as returned by recall.
    fact: u64,
    /// Its scope, as returned by recall: `project` or `owner`. Without a project, `owner`.
    #[serde(default)]
    scope: FactScope,
    /// A project other than the one you work in, by id or name.
    project: Option<String>,
    /// Why the fact no longer applies.
    reason: Option<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ForgottenShown")]
pub(crate) struct ForgetOutcome {
    /// The fact that no longer applies. It stays readable in the memory's history.
    forgotten: FactView,
}

#[tool_router(router = memory_tools, vis = "pub(crate)")]
impl McpServer {
    /// Remember a fact beyond this session. It replaces facts that it contradicts; a fact that
    /// is already known is not remembered twice. Secrets are rejected.
    #[tool(annotations(
        title = "Remember a fact",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn remember(
        &self,
        Parameters(args): Parameters<RememberArgs>,
    ) -> Result<Json<RememberOutcome>, ToolError> {
        let (memory, scope) = self
            .resolve_memory(args.scope, args.project.as_deref())
            .await?;
        let added = memory
            .add(NewFact {
                by: FACT_AUTHOR.to_owned(),
                files: args.files,
                supersedes: args.supersedes.into_iter().map(Seq).collect(),
                proposed: args.proposed,
                ..NewFact::from_person(args.fact)
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

    /// Recall the facts remembered for the project and for the owner.
    #[tool(annotations(title = "Recall facts", read_only_hint = true, open_world_hint = false))]
    pub(crate) async fn recall(
        &self,
        Parameters(args): Parameters<RecallArgs>,
    ) -> Result<Json<FactPage>, ToolError> {
        let limit = check_limit(args.limit, 20, 100)?;
        let project = args.project.as_deref();
        let all = match args.query.as_deref().map(str::trim) {
            Some(query) if !query.is_empty() => self.search_facts(query, project).await?,
            _ => self.list_facts(project).await?,
        };
        let end = args.skip.saturating_add(limit);
        let next = (end < all.len()).then_some(end);
        let facts = all.into_iter().skip(args.skip).take(limit).collect();
        Ok(Json(FactPage {
            note: QUOTE_NOTICE,
            facts,
            next,
        }))
    }

    /// Forget a fact, so that it no longer applies. It stays readable in the memory's history.
    #[tool(annotations(
        title = "Forget a fact",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    pub(crate) async fn forget(
        &self,
        Parameters(args): Parameters<ForgetArgs>,
    ) -> Result<Json<ForgetOutcome>, ToolError> {
        let (memory, scope) = self
            .resolve_memory(args.scope, args.project.as_deref())
            .await?;
        let fact = memory
            .forget(Seq(args.fact), args.reason.as_deref())
            .await?;
        let forgotten = self.fact_view(fact, scope);
        Ok(Json(ForgetOutcome { forgotten }))
    }

    /// Returns the memory for a scope, and the name of that scope.
    async fn resolve_memory(
        &self,
        scope: FactScope,
        project: Option<&str>,
    ) -> Result<(throughline::Memory, &'static str), ToolError> {
        if scope == FactScope::Owner {
            return match project {
                None => Ok((self.memory(None), "owner")),
                Some(_) => Err(ToolError::invalid(
                    "scope is owner and project is set; give one of them",
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

    /// Returns the facts about a query: the project's, then the owner's.
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

    /// Returns all current facts, the project's first.
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
