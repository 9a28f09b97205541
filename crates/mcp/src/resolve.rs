//! Resolves the sessions and projects that an agent names, and checks limits.

use throughline::{Error, Memory, MemoryScope, ProjectId, Session, SessionSpec};

use crate::McpServer;
use crate::tool_error::ToolError;

impl McpServer {
    /// Resolves a session by id, id prefix, name, key, or `last`.
    pub(crate) async fn resolve_session(&self, named: &str) -> Result<Session, ToolError> {
        let spec: SessionSpec = named.parse().map_err(|_| {
            ToolError::invalid("session is empty; name it by id, name or key, or use \"last\"")
        })?;
        Ok(self.tl.resolve(&spec, &[]).await?)
    }

    /// Resolves a project by id or name; without one, returns the project the agent works in.
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
                "{named:?} matches the projects {} and {}; use an id",
                one.id.as_str(),
                other.id.as_str()
            ))),
            (None, _) => match named.parse() {
                Ok(id) if self.tl.is_project(&id).await? => Ok(Some(id)),
                _ => Err(Error::NoSuchProject(named.to_owned()).into()),
            },
        }
    }

    /// Returns the memory of a project, or the owner's.
    pub(crate) fn memory(&self, project: Option<ProjectId>) -> Memory {
        self.tl
            .memory(project.map_or(MemoryScope::Owner, MemoryScope::Project))
    }
}

/// Checks the requested page size, or returns the default.
pub(crate) fn check_limit(
    requested: Option<usize>,
    usual: usize,
    most: usize,
) -> Result<usize, ToolError> {
    match requested {
        None => Ok(usual),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(limit) => Err(ToolError::invalid(format!(
            "limit must be from 1 to {most}, not {limit}"
        ))),
    }
}
