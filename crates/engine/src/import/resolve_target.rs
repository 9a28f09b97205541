//! Determines which session imported entries belong to.

use throughline_model::{
    Digest, IncomingOrigin, IncomingSession, Key, Name, Project, ProjectId, SessionId, SessionRef,
};
use throughline_store::{Candidate, StoreError};

use crate::{Error, NewSession, Throughline};

/// The session that imported entries go to.
pub(super) enum ImportTarget {
    /// A session that exists.
    Existing(SessionRef),
    /// A session to create.
    New(Box<NewSession>),
}

/// Finds the session to import into, or describes the one to create.
pub(super) async fn find_target(
    tl: &Throughline,
    incoming: &IncomingSession,
) -> Result<ImportTarget, Error> {
    match &incoming.source_system {
        None => resolve_by_text(tl, incoming).await,
        Some(from) => resolve_by_key(tl, from, incoming).await,
    }
}

/// Finds the session that was imported from another system under `id`.
pub(super) async fn find_imported(
    tl: &Throughline,
    from: &str,
    id: &str,
) -> Result<Option<SessionRef>, Error> {
    let key = import_key(from, id)?;
    let found = tl
        .store
        .find_candidates(&tl.owner, key.as_str(), 100)
        .await?;
    let has_key = |c: &&Candidate| c.info.key.as_ref() == Some(&key);
    // A session in use takes precedence over one in the trash.
    let found = found.iter().filter(has_key).min_by_key(|c| c.trashed);
    match found {
        None => Ok(None),
        Some(found) if found.trashed => Err(StoreError::InTrash(found.info.id.clone()).into()),
        Some(found) => Ok(Some(tl.owner.session(&found.info.id))),
    }
}

/// Resolves an id that names no other system like one that a user typed.
async fn resolve_by_text(
    tl: &Throughline,
    incoming: &IncomingSession,
) -> Result<ImportTarget, Error> {
    let text = incoming.id.trim();
    if let Ok(key) = text.parse::<Key>()
        && key.is_internal()
    {
        return Err(Error::ReservedKey(key));
    }
    let candidates = tl.store.find_candidates(&tl.owner, text, 100).await?;
    if let Some(id) = find_existing(text, &candidates)? {
        return Ok(ImportTarget::Existing(tl.owner.session(&id)));
    }
    let mut new = build_new_session(tl, incoming).await?;
    match text.parse::<SessionId>() {
        Ok(id) => new.id = Some(id),
        // An id that is not valid here becomes the key, by which the session is found
        // again.
        Err(_) => new.key = Some(text.parse::<Key>()?),
    }
    if new.name.is_none() {
        new.name = new
            .key
            .as_ref()
            .and_then(|key| name_from_title(key.as_str()));
    }
    Ok(ImportTarget::New(Box::new(new)))
}

/// Finds a session of another system by the key it got when it was first imported.
async fn resolve_by_key(
    tl: &Throughline,
    from: &str,
    incoming: &IncomingSession,
) -> Result<ImportTarget, Error> {
    if let Some(session) = find_imported(tl, from, &incoming.id).await? {
        return Ok(ImportTarget::Existing(session));
    }
    let mut new = build_new_session(tl, incoming).await?;
    new.id = Some(choose_session_id(tl, from, &incoming.id).await?);
    new.key = Some(import_key(from, &incoming.id)?);
    if let Some(IncomingOrigin::Started { session }) = &incoming.origin {
        // A parent that was not imported or no longer exists does not prevent the
        // import.
        let parent = find_imported(tl, from, session).await.ok().flatten();
        new.continued_from = parent.map(|parent| parent.id);
    }
    Ok(ImportTarget::New(Box::new(new)))
}

/// Returns the key for a session of another system.
fn import_key(from: &str, id: &str) -> Result<Key, Error> {
    match format!("{from}:{id}").parse::<Key>() {
        Ok(key) if !key.is_internal() => Ok(key),
        _ => Ok(format!("{from}:#{}", Digest::of(id.as_bytes())).parse()?),
    }
}

/// Uses the other system's id if it is valid and free here, else one prefixed with the
/// system's name, else one derived from both. The result is the same on every import.
async fn choose_session_id(tl: &Throughline, from: &str, id: &str) -> Result<SessionId, Error> {
    let numbered = id.len() < 8 || id.chars().all(|c| c.is_ascii_digit());
    let unprefixed = id.parse::<SessionId>().ok().filter(|_| !numbered);
    let prefixed = format!("{from}-{id}").parse::<SessionId>().ok();
    for candidate in unprefixed.into_iter().chain(prefixed) {
        let taken = tl
            .store
            .find_candidates(&tl.owner, candidate.as_str(), 100)
            .await?
            .iter()
            .any(|c| c.info.id == candidate);
        if !taken {
            return Ok(candidate);
        }
    }
    let digest = Digest::of(format!("{from}\0{id}").as_bytes()).to_string();
    Ok(format!("{from}-{}", &digest[..16]).parse()?)
}

/// Builds the properties of a new session, except id and key.
async fn build_new_session(
    tl: &Throughline,
    incoming: &IncomingSession,
) -> Result<NewSession, Error> {
    let mut new = NewSession {
        at: incoming.at,
        agent: incoming.agent.clone(),
        workspace: incoming.workspace.clone(),
        name: incoming.name.as_deref().and_then(name_from_title),
        ..NewSession::default()
    };
    if let Some(project) = &incoming.project {
        let id: ProjectId = project.parse()?;
        let known = tl.projects().await?;
        let is_match = |known: &&Project| known.id == id || known.name == *project;
        if let Some(known) = known.iter().find(is_match) {
            new.project = Some(known.id.clone());
        } else {
            let project = Project {
                id: id.clone(),
                name: project.clone(),
                markers: Vec::new(),
            };
            tl.store.put_project(&tl.owner, &project).await?;
            new.project = Some(id);
        }
    }
    Ok(new)
}

/// Converts a title to a name; `None` if that is not possible.
pub(super) fn name_from_title(title: &str) -> Option<Name> {
    title.replace(['/', '\\'], "-").parse::<Name>().ok()
}

/// Finds the existing session that `text` refers to; fails if it is in the trash.
fn find_existing(text: &str, candidates: &[Candidate]) -> Result<Option<SessionId>, Error> {
    let by = |is: &dyn Fn(&Candidate) -> bool| candidates.iter().find(|c| is(c));
    let found = by(&|c| c.info.id.as_str() == text)
        .or_else(|| by(&|c| c.info.key.as_ref().is_some_and(|key| key.as_str() == text)))
        .or_else(|| {
            let name = |c: &&Candidate| c.info.name.as_ref().is_some_and(|n| n.as_str() == text);
            let mut named = candidates.iter().filter(name).filter(|c| !c.trashed);
            named.next().filter(|_| named.next().is_none())
        });
    match found {
        None => Ok(None),
        Some(found) if found.trashed => Err(StoreError::InTrash(found.info.id.clone()).into()),
        Some(found) => Ok(Some(found.info.id.clone())),
    }
}
