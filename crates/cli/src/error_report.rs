//! Converts errors into messages, hints and exit codes. This is the only place that does.

use std::fmt::Write as _;
use std::process::ExitCode;

use throughline::{AmbiguousMatch, Error, ErrorKind, MemoryError, RemoteError, StoreError};

use crate::ui::{Ui, truncate};

/// A user error detected by the program itself, with an optional hint.
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

/// Returns the exit code of each kind of failure. Codes 1 (anything else) and 2 (wrong
/// usage) are set elsewhere.
fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::NotFound => 3,
        ErrorKind::Conflict => 4,
        ErrorKind::Invalid => 5,
        ErrorKind::Damaged => 6,
        ErrorKind::Unavailable => 7,
    }
}

/// The exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict,
5 invalid input, 6 damaged data, 7 store or model unavailable.";

/// The message, hint and exit code of an error.
pub(crate) struct ErrorReport {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    code: u8,
}

/// Prints an error with its hint and returns the exit code.
pub(crate) fn report(ui: &Ui, error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        // The reader closed the pipe: `tl sessions | head`.
        return ExitCode::SUCCESS;
    }
    let report = describe_error(error);
    ui.error(&report.message, report.hint.as_deref());
    ExitCode::from(report.code)
}

/// Converts an error into a message, a hint and an exit code.
pub(crate) fn describe_error(error: &anyhow::Error) -> ErrorReport {
    let mut message = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        // A cause that the error already quotes is not repeated.
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
    for info in &ambiguous.candidates {
        let name = info.name.as_ref().map_or("", |name| name.as_str());
        let _ = write!(list, "\n  {}  {}", info.id, truncate(name, 40));
    }
    list
}

/// Returns the hint for an error of the library.
fn error_hint(error: &Error) -> Option<String> {
    Some(match error {
        Error::NoMatch(_) => "`tl sessions --all` lists every session".into(),
        Error::NoSessions => "`tl new` creates one".into(),
        Error::NotListed { .. } => "`tl sessions` prints a new listing".into(),
        Error::Ambiguous(_) => "use the full id".into(),
        Error::NoSuchPin(_) => "`tl show SESSION --working-set` lists the pins".into(),
        Error::NotAFork { .. } | Error::NoOrigin(_) => "`tl tree SESSION` shows the lineage".into(),
        Error::Diverged { .. } => {
            "append its messages with --append, or its outcome with --summary TEXT".into()
        }
        Error::ReservedKey(_) => "choose a key with another prefix".into(),
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

/// Returns the hint for a memory error.
fn memory_hint(error: &MemoryError) -> Option<String> {
    Some(match error {
        MemoryError::Secret(_) => "--force stores it anyway".into(),
        MemoryError::NoSuchFact { .. } | MemoryError::Forgotten(_) => {
            "`tl memory list --all` lists every fact".into()
        }
        MemoryError::Superseded { by, .. } => format!("use {by}, which replaced it"),
        MemoryError::TooLong { .. } => {
            "put it in a file and store the path, or use `tl context set` for one session".into()
        }
        MemoryError::Empty | MemoryError::OwnerWide(_) | _ => return None,
    })
}

fn store_hint(error: &StoreError) -> Option<String> {
    Some(match error {
        StoreError::NoSuchSession(_) => "`tl sessions --all` lists every session".into(),
        StoreError::InTrash(id) => format!("`tl restore {id}` restores it"),
        StoreError::NotInTrash(_) => "`tl sessions --trash` lists the trash".into(),
        StoreError::NoSuchEntry { head, .. } => format!("use a number up to {head}"),
        StoreError::EntryIdReused { .. } => {
            "the first message with this id is kept; use another id for a new message".into()
        }
        StoreError::SessionExists(id) => {
            format!("choose another id; if it is in the trash, `tl restore {id}`")
        }
        StoreError::KeyTaken { held_by, .. } => {
            format!("`tl delete {held_by}` frees the key and can be undone")
        }
        StoreError::Moved { found, .. } => format!(
            "someone else appended meanwhile; read the new entries and use --expect {found}, \
             or --on-conflict rebase or fork"
        ),
        StoreError::LeaseLost { name } if name.starts_with("turn in ") => {
            "this process did not respond for a while and another one continued the turn; \
             `tl show` shows its answer"
                .into()
        }
        StoreError::Damaged { .. } | StoreError::DamagedStore { .. } => {
            "`tl doctor` shows what is damaged, `tl doctor --salvage FILE` recovers the rest".into()
        }
        StoreError::MainFileLost { .. } => {
            "`tl doctor --salvage FILE` recovers the entries; or restore the main file".into()
        }
        StoreError::FileReplaced { .. } => {
            "restart `tl` to use the new file; `tl restore-backup FILE` restores a \
             backup while servers run"
                .into()
        }
        StoreError::SchemaTooNew { .. } => {
            "use a newer `tl`, and restart older servers; nothing was changed"
                .into()
        }
        StoreError::DiskFull { .. } => {
            "free some space and try again; everything acknowledged is safe".into()
        }
        StoreError::ReadOnly { .. } => {
            "check the folder's permissions, or choose another store with --store".into()
        }
        StoreError::OutcomeUnknown { .. } => {
            "check whether it was stored before repeating it; with --external-id a repeat is recognized"
                .into()
        }
        StoreError::Busy { .. } => {
            "another program is using the store; stop it or try again later".into()
        }
        StoreError::Remote {
            source: Some(source),
            ..
        } => return remote_hint(source.downcast_ref()?),
        _ => return None,
    })
}

/// Returns the hint for an error of a remote server.
fn remote_hint(error: &RemoteError) -> Option<String> {
    Some(match error {
        RemoteError::TokenRequired { server } | RemoteError::TokenRefused { server } => {
            format!(
                "`tl login {server}` saves a token; `tl token create` on the server creates one"
            )
        }
        RemoteError::WrongOwner { wanted, .. } => {
            format!("omit --owner, or use a token for {wanted}")
        }
        RemoteError::Unreachable { .. } => {
            "check the address, and that the server is running".into()
        }
        RemoteError::NoResponse { .. } => {
            "try again: everything the server acknowledged is safe, and nothing is done twice"
                .into()
        }
        RemoteError::NotThroughline { .. } => {
            "use the address that `tl serve` prints, or that of its proxy".into()
        }
        RemoteError::UnsupportedVersion { .. } => {
            "use the same version of Throughline on both sides".into()
        }
        _ => return None,
    })
}
