//! Which sessions a search is about: from names, tags and projects to logs and their
//! beginnings in other logs.

use throughline_model::{Lineage, ProjectId, SessionId, SessionSpec};
use throughline_recall::{Filter, Scope, SessionRange};
use throughline_store::{SessionFilter, SessionScope};

use crate::{Error, Session, Throughline};

impl Throughline {
    /// Narrows a search by what was typed; `listing` is the last one the person saw.
    pub(super) async fn build_search_scope(
        &self,
        filters: &[Filter],
        project: Option<&ProjectId>,
        listing: &[SessionId],
    ) -> Result<Scope, Error> {
        let mut scope = Scope::new(self.owner.clone());
        let mut wanted = SessionFilter {
            project: project.cloned(),
            ..SessionFilter::default()
        };
        let mut listed = project.is_some();
        let mut one: Option<Session> = None;
        for filter in filters {
            match filter {
                Filter::Session(text) => {
                    let spec: SessionSpec =
                        text.parse().map_err(|_| Error::NoMatch(text.clone()))?;
                    one = Some(self.resolve(&spec, listing).await?);
                }
                Filter::Tag(tag) => {
                    wanted.tags.push(tag.parse()?);
                    listed = true;
                }
                Filter::Project(name) => {
                    wanted.project = Some(self.find_project(name).await?);
                    listed = true;
                }
                Filter::Agent(name) => {
                    wanted.agent = Some(name.clone());
                    listed = true;
                }
                other => {
                    other.narrow(&mut scope);
                }
            }
        }
        if let Some(session) = one {
            scope.sessions = Some(session.log_ranges().await?);
        } else if listed {
            let cards = self.list_all(&wanted).await?;
            let whole = |id| SessionRange {
                session: id,
                to: None,
            };
            let mut stretches: Vec<_> = cards.iter().map(|card| whole(card.id.clone())).collect();
            // What a fork shares is found even where its origin is not among them.
            for card in &cards {
                if let Lineage::Forked { session, at } = &card.lineage
                    && cards.iter().all(|other| other.id != *session)
                {
                    stretches.push(SessionRange {
                        session: session.clone(),
                        to: Some(*at),
                    });
                }
            }
            scope.sessions = Some(stretches);
        } else {
            let trash = SessionFilter {
                scope: SessionScope::Trash,
                ..SessionFilter::default()
            };
            let trashed = self.list_all(&trash).await?;
            scope.except = trashed.into_iter().map(|card| card.id).collect();
        }
        Ok(scope)
    }

    /// The project of this name or id.
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
    /// This session's log, and the beginnings of those it was forked from.
    pub(super) async fn log_ranges(&self) -> Result<Vec<SessionRange>, Error> {
        let mut stretches = vec![SessionRange {
            session: self.id().clone(),
            to: None,
        }];
        let mut lineage = self.header().await?.lineage;
        while let Lineage::Forked { session, at } = lineage {
            let origin = self.tl.handle(&session);
            stretches.push(SessionRange {
                session,
                to: Some(at),
            });
            lineage = match origin.header().await {
                Ok(birth) => birth.lineage,
                // Gone, or in the trash: what came before it cannot be followed.
                Err(_) => Lineage::Root,
            };
        }
        Ok(stretches)
    }
}
