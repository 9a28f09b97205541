//! Which session of ours something from elsewhere belongs to.

use throughline_model::{
    Digest, IncomingSession, Key, Name, Origin, Project, ProjectId, SessionId, SessionRef,
};
use throughline_store::{Candidate, StoreError};

use crate::{Error, NewSession, Throughline};

/// Where the entries of a session go.
pub(super) enum Place {
    /// Into one that is there.
    There(SessionRef),
    /// Into one to make.
    New(Box<NewSession>),
}

/// The session that is meant: one that is there, or one to make.
pub(super) async fn find(tl: &Throughline, incoming: &IncomingSession) -> Result<Place, Error> {
    match &incoming.from {
        None => by_word(tl, incoming).await,
        Some(from) => by_key(tl, from, incoming).await,
    }
}

/// The session here of what another system calls `id`, if it was brought in.
pub(super) async fn imported(
    tl: &Throughline,
    from: &str,
    id: &str,
) -> Result<Option<SessionRef>, Error> {
    let key = key(from, id)?;
    let found = tl.store.candidates(&tl.owner, key.as_str(), 100).await?;
    let is_it = |c: &&Candidate| c.card.key.as_ref() == Some(&key);
    // A copy in the trash does not keep one in use from being found.
    let found = found.iter().filter(is_it).min_by_key(|c| c.trashed);
    match found {
        None => Ok(None),
        Some(found) if found.trashed => Err(StoreError::InTrash(found.card.id.clone()).into()),
        Some(found) => Ok(Some(tl.owner.session(&found.card.id))),
    }
}

/// Whoever says `id` without saying whose it is means a session as a person would.
async fn by_word(tl: &Throughline, incoming: &IncomingSession) -> Result<Place, Error> {
    let text = incoming.id.trim();
    if let Ok(key) = text.parse::<Key>()
        && key.is_own()
    {
        return Err(Error::ReservedKey(key));
    }
    let candidates = tl.store.candidates(&tl.owner, text, 100).await?;
    if let Some(id) = existing(text, &candidates)? {
        return Ok(Place::There(tl.owner.session(&id)));
    }
    let mut new = born(tl, incoming).await?;
    match text.parse::<SessionId>() {
        Ok(id) => new.id = Some(id),
        // What cannot be an id is kept as the key, by which it is found again.
        Err(_) => new.key = Some(text.parse::<Key>()?),
    }
    if new.name.is_none() {
        new.name = new.key.as_ref().and_then(|key| name(key.as_str()));
    }
    Ok(Place::New(Box::new(new)))
}

/// A session of another system is found again by the key it got when it was brought in.
async fn by_key(tl: &Throughline, from: &str, incoming: &IncomingSession) -> Result<Place, Error> {
    if let Some(there) = imported(tl, from, &incoming.id).await? {
        return Ok(Place::There(there));
    }
    let mut new = born(tl, incoming).await?;
    new.id = Some(free_id(tl, from, &incoming.id).await?);
    new.key = Some(key(from, &incoming.id)?);
    if let Some(Origin::Started { session }) = &incoming.origin {
        // One that was never brought in, or is gone, is no reason not to have this one.
        let parent = imported(tl, from, session).await.ok().flatten();
        new.continued_from = parent.map(|parent| parent.id);
    }
    Ok(Place::New(Box::new(new)))
}

/// The key of what another system calls `id`.
fn key(from: &str, id: &str) -> Result<Key, Error> {
    match format!("{from}:{id}").parse::<Key>() {
        Ok(key) if !key.is_own() => Ok(key),
        _ => Ok(format!("{from}:#{}", Digest::of(id.as_bytes())).parse()?),
    }
}

/// The id another system gave it where that can be ours and nobody has it; else one that
/// says whose it is, and is the same every time.
async fn free_id(tl: &Throughline, from: &str, id: &str) -> Result<SessionId, Error> {
    let numbered = id.len() < 8 || id.chars().all(|c| c.is_ascii_digit());
    let own = id.parse::<SessionId>().ok().filter(|_| !numbered);
    let told = format!("{from}-{id}").parse::<SessionId>().ok();
    for wanted in own.into_iter().chain(told) {
        let taken = tl
            .store
            .candidates(&tl.owner, wanted.as_str(), 100)
            .await?
            .iter()
            .any(|c| c.card.id == wanted);
        if !taken {
            return Ok(wanted);
        }
    }
    let digest = Digest::of(format!("{from}\0{id}").as_bytes()).to_string();
    Ok(format!("{from}-{}", &digest[..16]).parse()?)
}

/// What a new session starts with, whatever it is called.
async fn born(tl: &Throughline, incoming: &IncomingSession) -> Result<NewSession, Error> {
    let mut new = NewSession {
        at: incoming.at,
        agent: incoming.agent.clone(),
        workspace: incoming.workspace.clone(),
        name: incoming.name.as_deref().and_then(name),
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
                marks: Vec::new(),
            };
            tl.store.put_project(&tl.owner, &project).await?;
            new.project = Some(id);
        }
    }
    Ok(new)
}

/// A title as a name. One that cannot be made a name still leaves the session with its id.
pub(super) fn name(title: &str) -> Option<Name> {
    title.replace(['/', '\\'], "-").parse::<Name>().ok()
}

/// The session that `text` means, if there is one in use.
fn existing(text: &str, candidates: &[Candidate]) -> Result<Option<SessionId>, Error> {
    let by = |is: &dyn Fn(&Candidate) -> bool| candidates.iter().find(|c| is(c));
    let found = by(&|c| c.card.id.as_str() == text)
        .or_else(|| by(&|c| c.card.key.as_ref().is_some_and(|key| key.as_str() == text)))
        .or_else(|| {
            let name = |c: &&Candidate| c.card.name.as_ref().is_some_and(|n| n.as_str() == text);
            let mut named = candidates.iter().filter(name).filter(|c| !c.trashed);
            named.next().filter(|_| named.next().is_none())
        });
    match found {
        None => Ok(None),
        Some(found) if found.trashed => Err(StoreError::InTrash(found.card.id.clone()).into()),
        Some(found) => Ok(Some(found.card.id.clone())),
    }
}
