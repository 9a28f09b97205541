//! Resolves the filters of a search (session, tag, project, agent) to log ranges.

use throughline_model::{Lineage, ProjectId, SessionId, SessionSpec};
use throughline_recall::{Filter, Scope, SessionRange};
use throughline_store::{SessionFilter, SessionScope};

use crate::{Error, Session, Throughline};

impl Throughline {
    /// Builds the scope of a search from its filters; `listing` is the last one the
    /// user saw.
    pub(super) async fn build_search_scope(
        &self,
        filters: &[Filter],
        project: Option<&ProjectId>,
        listing: &[SessionId],
    ) -> Result<Scope, Error> {
        let mut scope = Scope::new(self.owner.clone());
        let mut session_filter = SessionFilter {
            project: project.cloned(),
            ..SessionFilter::default()
        };
        let mut is_filtered = project.is_some();
        let mut single_session: Option<Session> = None;
        for filter in filters {
            match filter {
                Filter::Session(text) => {
                    let spec: SessionSpec =
                        text.parse().map_err(|_| Error::NoMatch(text.clone()))?;
                    single_session = Some(self.resolve(&spec, listing).await?);
                }
                Filter::Tag(tag) => {
                    session_filter.tags.push(tag.parse()?);
                    is_filtered = true;
                }
                Filter::Project(name) => {
                    session_filter.project = Some(self.find_project(name).await?);
                    is_filtered = true;
                }
                Filter::Agent(name) => {
                    session_filter.agent = Some(name.clone());
                    is_filtered = true;
                }
                other => {
                    other.narrow(&mut scope);
                }
            }
        }
        if let Some(session) = single_session {
            scope.sessions = Some(session.log_ranges().await?);
        } else if is_filtered {
            let sessions = self.list_all(&session_filter).await?;
            let whole_session = |id| SessionRange {
                session: id,
                to: None,
            };
            let mut ranges: Vec<_> = sessions
                .iter()
                .map(|session| whole_session(session.id.clone()))
                .collect();
            // The shared part of a fork is searched even if its origin is not among the
            // sessions.
            for fork in &sessions {
                if let Lineage::Forked { session, at } = &fork.lineage
                    && sessions.iter().all(|other| other.id != *session)
                {
                    ranges.push(SessionRange {
                        session: session.clone(),
                        to: Some(*at),
                    });
                }
            }
            scope.sessions = Some(ranges);
        } else {
            let trash = SessionFilter {
                scope: SessionScope::Trash,
                ..SessionFilter::default()
            };
            let trashed = self.list_all(&trash).await?;
            scope.except = trashed.into_iter().map(|info| info.id).collect();
        }
        Ok(scope)
    }

    /// Finds a project by name or id.
    async fn find_project(&self, name: &str) -> Result<ProjectId, Error> {
        let projects = self.projects().await?;
        let found = projects
            .iter()
            .find(|project| project.id.as_str() == name || project.name == name);
        if let Some(project) = found {
            return Ok(project.id.clone());
        }
        match name.parse() {
            Ok(id) if self.is_project(&id).await? => Ok(id),
            _ => Err(Error::NoSuchProject(name.to_owned())),
        }
    }
}

impl Session {
    /// Returns this session's log range, and the shared ranges of those it was forked
    /// from.
    pub(super) async fn log_ranges(&self) -> Result<Vec<SessionRange>, Error> {
        let mut ranges = vec![SessionRange {
            session: self.id().clone(),
            to: None,
        }];
        let mut lineage = self.header().await?.lineage;
        while let Lineage::Forked { session, at } = lineage {
            let origin = self.tl.handle(&session);
            ranges.push(SessionRange {
                session,
                to: Some(at),
            });
            lineage = match origin.header().await {
                Ok(header) => header.lineage,
                // Removed or trashed: earlier origins cannot be determined.
                Err(_) => Lineage::Root,
            };
        }
        Ok(ranges)
    }
}
