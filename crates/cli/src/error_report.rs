//! From errors to what a person is told and what the shell gets: the one place.

use std::fmt::Write as _;
use std::process::ExitCode;

use throughline::{AmbiguousMatch, Error, ErrorKind, MemoryError, RemoteError, StoreError};

use crate::ui::{Ui, truncate};

/// Something the person asked for that cannot be, found out by the program itself.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct UserError {
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
    pub(crate) kind: ErrorKind,
}

impl UserError {
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            hint: None,
            kind: ErrorKind::Invalid,
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The exit code of each kind of failure. Codes 1 (anything else) and 2 (wrong usage)
/// are given elsewhere.
fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::NotFound => 3,
        ErrorKind::Conflict => 4,
        ErrorKind::Invalid => 5,
        ErrorKind::Damaged => 6,
        ErrorKind::Unavailable => 7,
    }
}

/// For `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict,
5 invalid input, 6 damaged data, 7 store or model unavailable.";

/// What went wrong, what to do about it, and what the shell gets.
pub(crate) struct ErrorReport {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    code: u8,
}

/// Tells what went wrong and what to do about it.
pub(crate) fn report(ui: &Ui, error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        // Whoever read our output has had enough: `tl sessions | head`.
        return ExitCode::SUCCESS;
    }
    let told = describe_error(error);
    ui.error(&told.message, told.hint.as_deref());
    ExitCode::from(told.code)
}

/// An error in a person's words.
pub(crate) fn describe_error(error: &anyhow::Error) -> ErrorReport {
    let mut message = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        // A cause that its error has quoted already is not said twice.
        if !message.contains(&text) {
            if !message.is_empty() {
                message.push_str(": ");
            }
            message.push_str(&text);
        }
    }
    let ours = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Error>());
    let store = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<StoreError>());
    let refusal = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<UserError>());
    if let Some(Error::Ambiguous(ambiguous)) = ours {
        let _ = write!(message, ":{}", list_candidates(ambiguous));
    }
    let hint = match (ours, store, refusal) {
        (_, _, Some(refusal)) => refusal.hint.clone(),
        (Some(Error::Store(error)), _, _) | (None, Some(error), _) => store_hint(error),
        (Some(error), _, _) => error_hint(error),
        (None, None, None) => None,
    };
    let kind = refusal
        .map(|refusal| refusal.kind)
        .or(ours.map(Error::kind))
        .or(store.map(StoreError::kind));
    ErrorReport {
        message,
        hint,
        code: kind.map_or(1, exit_code),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

fn list_candidates(ambiguous: &AmbiguousMatch) -> String {
    let mut list = String::new();
    for card in &ambiguous.candidates {
        let name = card.name.as_ref().map_or("", |name| name.as_str());
        let _ = write!(list, "\n  {}  {}", card.id, truncate(name, 40));
    }
    list
}

/// What to do about an error of the library's.
fn error_hint(error: &Error) -> Option<String> {
    Some(match error {
        Error::NoMatch(_) => "`tl sessions --all` lists every session".into(),
        Error::NoSessions => "`tl new` makes one".into(),
        Error::NotListed { .. } => "`tl sessions` numbers them anew".into(),
        Error::Ambiguous(_) => "use the whole id of the one you mean".into(),
        Error::NoSuchPin(_) => "`tl show SESSION --working-set` lists the pins".into(),
        Error::NotAFork { .. } | Error::NoOrigin(_) => {
            "`tl tree SESSION` shows what was forked from what".into()
        }
        Error::Diverged { .. } => {
            "take its messages with --append, or tell what came of it with --summary TEXT".into()
        }
        Error::ReservedKey(_) => "choose a key that begins otherwise".into(),
        Error::Memory(error) => return memory_hint(error),
        Error::Store(_)
        | Error::IsTranscriptPath(_)
        | Error::Name(_)
        | Error::Id(_)
        | Error::NoCheckpoint(_)
        | Error::MergeIntoSelf(_)
        | _ => return None,
    })
}

/// What to do about a fact that cannot be had.
fn memory_hint(error: &MemoryError) -> Option<String> {
    Some(match error {
        MemoryError::Secret(_) => "--force remembers it all the same".into(),
        MemoryError::NoSuchFact { .. } | MemoryError::Forgotten(_) => {
            "`tl memory list --all` lists every fact".into()
        }
        MemoryError::Superseded { by, .. } => format!("use {by}, which counts now"),
        MemoryError::TooLong { .. } => {
            "keep it in a file, and remember where; or `tl context set` it for a session".into()
        }
        MemoryError::Empty | MemoryError::OwnerWide(_) | _ => return None,
    })
}

fn store_hint(error: &StoreError) -> Option<String> {
    Some(match error {
        StoreError::NoSuchSession(_) => "`tl sessions --all` lists every session".into(),
        StoreError::InTrash(id) => format!("`tl restore {id}` brings it back"),
        StoreError::NotInTrash(_) => "`tl sessions --trash` lists what is in the trash".into(),
        StoreError::NoSuchEntry { head, .. } => format!("use a number up to {head}"),
        StoreError::EntryIdReused { .. } => {
            "what was said first stands; give what is new an id of its own".into()
        }
        StoreError::SessionExists(id) => {
            format!("choose another id; if it is in the trash, `tl restore {id}`")
        }
        StoreError::KeyTaken { held_by, .. } => {
            format!("`tl delete {held_by}` frees the key; nothing is lost by it")
        }
        StoreError::Moved { found, .. } => format!(
            "somebody appended meanwhile; read on from there and use --expect {found}, \
             or --on-conflict rebase or fork"
        ),
        StoreError::LeaseLost { name } if name.starts_with("turn in ") => {
            "this process did not respond for a while and another one continued the turn; \
             `tl show` shows its answer"
                .into()
        }
        StoreError::Damaged { .. } | StoreError::DamagedStore { .. } => {
            "`tl doctor` tells what is damaged, `tl doctor --salvage FILE` saves the rest".into()
        }
        StoreError::MainFileLost { .. } => {
            "`tl doctor --salvage FILE` recovers the entries; or put the main file back".into()
        }
        StoreError::FileReplaced { .. } => {
            "start `tl` again to use what is there now; `tl restore-backup FILE` restores a \
             backup while servers run"
                .into()
        }
        StoreError::SchemaTooNew { .. } => {
            "use a newer `tl`, and restart servers of an older one; this one has changed nothing"
                .into()
        }
        StoreError::DiskFull { .. } => {
            "make room and try again; everything acknowledged is safe".into()
        }
        StoreError::ReadOnly { .. } => {
            "check who owns the folder, or choose another store with --store".into()
        }
        StoreError::OutcomeUnknown { .. } => {
            "look whether it was stored before repeating it; with --external-id a repeat is recognized"
                .into()
        }
        StoreError::Busy { .. } => {
            "another program keeps the store busy; find it and try again".into()
        }
        StoreError::Remote {
            source: Some(source),
            ..
        } => return remote_hint(source.downcast_ref()?),
        _ => return None,
    })
}

/// What to do where a server cannot be talked with.
fn remote_hint(error: &RemoteError) -> Option<String> {
    Some(match error {
        RemoteError::TokenRequired { server } | RemoteError::TokenRefused { server } => {
            format!("`tl login {server}` takes a token; `tl token create` on the server makes one")
        }
        RemoteError::WrongOwner { wanted, .. } => {
            format!("leave --owner out, or use a token that was made for {wanted}")
        }
        RemoteError::Unreachable { .. } => "is the address right, and is the server up?".into(),
        RemoteError::NoResponse { .. } => {
            "try again: whatever the server has acknowledged is safe, and nothing is done twice"
                .into()
        }
        RemoteError::NotThroughline { .. } => {
            "the address is the one that `tl serve` prints, or that of the proxy before it".into()
        }
        RemoteError::UnsupportedVersion { .. } => {
            "use the same version of Throughline here and there".into()
        }
        _ => return None,
    })
}
