//! What was meant: sessions, projects and pages by what an agent calls them.

use throughline::{Error, Memory, MemoryScope, ProjectId, Session, SessionSpec};

use crate::McpServer;
use crate::tool_error::ToolError;

impl McpServer {
    /// The session that was meant: by id, the beginning of one, name, key, or `last`.
    pub(crate) async fn resolve_session(&self, named: &str) -> Result<Session, ToolError> {
        let spec: SessionSpec = named.parse().map_err(|_| {
            ToolError::invalid("session is empty; name it by id, name or key, or say \"last\"")
        })?;
        Ok(self.tl.resolve(&spec, &[]).await?)
    }

    /// The project that was meant: by its id or its name; the one the agent works in,
    /// where it is left out.
    pub(crate) async fn resolve_project(
        &self,
        named: Option<&str>,
    ) -> Result<Option<ProjectId>, ToolError> {
        let Some(named) = named.map(str::trim).filter(|named| !named.is_empty()) else {
            return Ok(self.project.clone());
        };
        if self.project.as_ref().is_some_and(|id| id.as_str() == named) {
            return Ok(self.project.clone());
        }
        let known = self.tl.projects().await?;
        if let Some(exact) = known.iter().find(|project| project.id.as_str() == named) {
            return Ok(Some(exact.id.clone()));
        }
        let mut called = known.iter().filter(|project| project.name == named);
        match (called.next(), called.next()) {
            (Some(one), None) => Ok(Some(one.id.clone())),
            (Some(one), Some(other)) => Err(ToolError::invalid(format!(
                "{named:?} may mean the project {} or {}; use the id",
                one.id.as_str(),
                other.id.as_str()
            ))),
            (None, _) => match named.parse() {
                Ok(id) if self.tl.is_project(&id).await? => Ok(Some(id)),
                _ => Err(Error::NoSuchProject(named.to_owned()).into()),
            },
        }
    }

    /// The memory that was meant.
    pub(crate) fn memory(&self, project: Option<ProjectId>) -> Memory {
        self.tl
            .memory(project.map_or(MemoryScope::Owner, MemoryScope::Project))
    }
}

/// How many to put on a page.
pub(crate) fn check_limit(
    asked: Option<usize>,
    usual: usize,
    most: usize,
) -> Result<usize, ToolError> {
    match asked {
        None => Ok(usual),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(limit) => Err(ToolError::invalid(format!(
            "limit is from 1 to {most}, not {limit}"
        ))),
    }
}
