//! Which session of ours something from elsewhere belongs to.

use throughline_model::{
    Digest, IncomingOrigin, IncomingSession, Key, Name, Project, ProjectId, SessionId, SessionRef,
};
use throughline_store::{Candidate, StoreError};

use crate::{Error, NewSession, Throughline};

/// Where the entries of a session go.
pub(super) enum ImportTarget {
    /// Into one that is there.
    Existing(SessionRef),
    /// Into one to make.
    New(Box<NewSession>),
}

/// The session that is meant: one that is there, or one to make.
pub(super) async fn find_target(
    tl: &Throughline,
    incoming: &IncomingSession,
) -> Result<ImportTarget, Error> {
    match &incoming.source_system {
        None => resolve_by_text(tl, incoming).await,
        Some(from) => resolve_by_key(tl, from, incoming).await,
    }
}

/// The session here of what another system calls `id`, if it was brought in.
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
    let is_it = |c: &&Candidate| c.info.key.as_ref() == Some(&key);
    // A copy in the trash does not keep one in use from being found.
    let found = found.iter().filter(is_it).min_by_key(|c| c.trashed);
    match found {
        None => Ok(None),
        Some(found) if found.trashed => Err(StoreError::InTrash(found.info.id.clone()).into()),
        Some(found) => Ok(Some(tl.owner.session(&found.info.id))),
    }
}

/// Whoever says `id` without saying whose it is means a session as a person would.
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
        // What cannot be an id is kept as the key, by which it is found again.
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

/// A session of another system is found again by the key it got when it was brought in.
async fn resolve_by_key(
    tl: &Throughline,
    from: &str,
    incoming: &IncomingSession,
) -> Result<ImportTarget, Error> {
    if let Some(there) = find_imported(tl, from, &incoming.id).await? {
        return Ok(ImportTarget::Existing(there));
    }
    let mut new = build_new_session(tl, incoming).await?;
    new.id = Some(choose_session_id(tl, from, &incoming.id).await?);
    new.key = Some(import_key(from, &incoming.id)?);
    if let Some(IncomingOrigin::Started { session }) = &incoming.origin {
        // One that was never brought in, or is gone, is no reason not to have this one.
        let parent = find_imported(tl, from, session).await.ok().flatten();
        new.continued_from = parent.map(|parent| parent.id);
    }
    Ok(ImportTarget::New(Box::new(new)))
}

/// The key of what another system calls `id`.
fn import_key(from: &str, id: &str) -> Result<Key, Error> {
    match format!("{from}:{id}").parse::<Key>() {
        Ok(key) if !key.is_internal() => Ok(key),
        _ => Ok(format!("{from}:#{}", Digest::of(id.as_bytes())).parse()?),
    }
}

/// The id another system gave it where that can be ours and nobody has it; else one that
/// says whose it is, and is the same every time.
async fn choose_session_id(tl: &Throughline, from: &str, id: &str) -> Result<SessionId, Error> {
    let numbered = id.len() < 8 || id.chars().all(|c| c.is_ascii_digit());
    let own = id.parse::<SessionId>().ok().filter(|_| !numbered);
    let told = format!("{from}-{id}").parse::<SessionId>().ok();
    for wanted in own.into_iter().chain(told) {
        let taken = tl
            .store
            .find_candidates(&tl.owner, wanted.as_str(), 100)
            .await?
            .iter()
            .any(|c| c.info.id == wanted);
        if !taken {
            return Ok(wanted);
        }
    }
    let digest = Digest::of(format!("{from}\0{id}").as_bytes()).to_string();
    Ok(format!("{from}-{}", &digest[..16]).parse()?)
}

/// What a new session starts with, whatever it is called.
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
        let same = |known: &&Project| known.id == id || known.name == *project;
        if let Some(known) = known.iter().find(same) {
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

/// A title as a name. One that cannot be made a name still leaves the session with its id.
pub(super) fn name_from_title(title: &str) -> Option<Name> {
    title.replace(['/', '\\'], "-").parse::<Name>().ok()
}

/// The session that `text` means, if there is one in use.
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
