//! `tl append`: appends messages to a session, one from arguments or many as JSON lines.

use std::collections::VecDeque;
use std::io::{BufReader, IsTerminal, Read as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::ExitCode;
use std::task::Poll;

use anyhow::{Context, Result};
use serde_json::json;
use throughline::{
    AppendKind, AppendOutcome, Attachment, Block, ConflictPolicy, Content, Error, Expect, Message,
    NewEntry, Role, Seq, Session, SessionId, SessionSpec, Timestamp,
};
use throughline_formats::{LineError, MessageLine, MessageLines};
use tokio::sync::mpsc;

use crate::app::App;
use crate::error_report::UserError;
use crate::signals::StopSignals;
use crate::threads::spawn_thread;
use crate::time::parse_instant;

/// Maximum concurrent appends: enough to share commits, few enough to hold in memory.
const MAX_IN_FLIGHT: usize = 256;

/// Append messages to a session
///
/// The message is TEXT, or read from stdin. With --json, stdin holds one JSON message per
/// line (`{"role": "user", "content": "…"}`; also at, id, author, model, usage). Prints a
/// line with the number of each entry as soon as it is durable.
#[derive(clap::Args, Debug)]
pub(crate) struct AppendArgs {
    /// The session
    session: SessionSpec,
    /// The message [default: stdin]
    text: Option<String>,
    /// The role: user, assistant, system or tool [default: user]
    #[arg(long)]
    role: Option<Role>,
    /// The author, if the role alone does not identify them
    #[arg(long)]
    author: Option<String>,
    /// The time of the message [default: now]
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,
    /// The message's id in another system
    #[arg(long, value_name = "ID")]
    external_id: Option<String>,
    /// The expected last entry of the session (0: none)
    #[arg(long, value_name = "SEQ")]
    expect: Option<Seq>,
    /// What to do if the session has moved on: reject, rebase (append anyway, marked) or fork
    #[arg(long, default_value = "reject", value_parser = ["reject", "rebase", "fork"])]
    on_conflict: String,
    /// Attach a file or image (may be repeated)
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Replace invalid UTF-8 instead of rejecting it
    #[arg(long)]
    lossy: bool,
}

impl AppendArgs {
    /// Rejects flags that each JSON line sets for itself.
    fn reject_flags_for_json_lines(&self) -> Result<()> {
        for (given, flag) in [
            (self.role.is_some(), "--role"),
            (self.author.is_some(), "--author"),
            (self.at.is_some(), "--at"),
            (self.external_id.is_some(), "--external-id"),
        ] {
            if given {
                let what = format!("{flag} cannot be used with JSON lines");
                return Err(UserError::invalid(what)
                    .with_hint("each line has its own role, author, at and id")
                    .into());
            }
        }
        Ok(())
    }

    fn conflict(&self) -> ConflictPolicy {
        match self.on_conflict.as_str() {
            "rebase" => ConflictPolicy::Rebase,
            "fork" => ConflictPolicy::Fork,
            _ => ConflictPolicy::Reject,
        }
    }
}

pub(crate) async fn run(app: &App, args: AppendArgs) -> Result<ExitCode> {
    let session = app.session(&args.session).await?;
    if app.ui.json && args.text.is_none() && args.attach.is_empty() {
        args.reject_flags_for_json_lines()?;
        return append_lines(app, &args, session).await;
    }
    let text = match &args.text {
        Some(text) => Some(text.clone()),
        // An attachment may be sent without text.
        None if !args.attach.is_empty() && std::io::stdin().is_terminal() => None,
        None => read_stdin(app, args.lossy)?,
    };
    if text.as_deref().unwrap_or_default().is_empty() && args.attach.is_empty() {
        return Err(UserError::invalid("no message to append")
            .with_hint("pass the text as an argument or on stdin")
            .into());
    }
    let content = text.filter(|text| !text.is_empty()).map(Content::text);
    let role = args.role.unwrap_or(Role::User);
    let mut message = Message::new(role, content.unwrap_or_default());
    for path in &args.attach {
        let attachment = attach(app, path).await?;
        message.content.0.push(Block::Attachment(attachment));
    }
    let mut entry = session.new_entry(message);
    if let Some(at) = &args.at {
        let now = app.tl().await?.now();
        let at = parse_instant(at, now, &app.zone).map_err(UserError::invalid)?;
        if is_future(at, now) {
            return Err(UserError::invalid(format!("{at} is in the future")).into());
        }
        entry = NewEntry::new(entry.id, at, entry.body);
    }
    entry.author.clone_from(&args.author);
    set_external_id(&mut entry, session.id(), args.external_id.clone());
    let expect = args.expect.map_or(Expect::Any, Expect::At);
    // From here on, the append completes and is reported even if a stop signal arrives.
    let _finishes = StopSignals::listen()?;
    let appended = session
        .append_all(vec![entry], expect, args.conflict())
        .await?;
    report_appended(app, session.id(), &appended)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns whether a time is further ahead than clock skew explains. A session with a
/// future time would be listed as the latest until that time.
pub(crate) fn is_future(at: Timestamp, now: Timestamp) -> bool {
    at.duration_since(now).as_hours() >= 24
}

/// Stores a file's bytes and returns the attachment that describes them.
async fn attach(app: &App, path: &Path) -> Result<Attachment> {
    let file = app.resolve_path(path);
    let bytes = std::fs::read(&file).map_err(|error| {
        UserError::invalid(format!("{} cannot be attached: {error}", path.display()))
    })?;
    let size = bytes.len() as u64;
    let media_type = mime_guess::from_path(&file).first_or_octet_stream();
    Ok(Attachment {
        blob: app.tl().await?.put_blob(bytes).await?,
        media_type: media_type.essence_str().to_owned(),
        bytes: size,
        name: path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned()),
    })
}

/// Sets the external id and derives the entry id from it, so that a repeat is recognized.
fn set_external_id(entry: &mut NewEntry, session: &SessionId, external: Option<String>) {
    if let Some(external) = external {
        entry.id = throughline::EntryId::from_external(session, &external);
        entry.external_id = Some(external);
    }
}

fn read_stdin(app: &App, lossy: bool) -> Result<Option<String>> {
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        app.ui.status("Type the message and end it with Ctrl-D:");
    }
    let mut bytes = Vec::new();
    stdin
        .read_to_end(&mut bytes)
        .context("stdin cannot be read")?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if lossy => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            return Err(
                UserError::invalid(format!("stdin is not UTF-8 at byte {at}"))
                    .with_hint("convert it, or use --lossy to replace invalid bytes")
                    .into(),
            );
        }
    };
    // The newline that ends shell input is not part of the message.
    let text = text
        .strip_suffix('\n')
        .map_or(text.as_str(), |t| t.strip_suffix('\r').unwrap_or(t));
    Ok(Some(text.to_owned()))
}

fn report_appended(app: &App, requested: &SessionId, appended: &AppendOutcome) -> Result<()> {
    let how = match appended.kind {
        AppendKind::Appended => "appended",
        AppendKind::Rebased => "rebased",
        AppendKind::Forked => "forked",
        AppendKind::Repeated => "repeated",
    };
    for entry in &appended.entries {
        if app.ui.json {
            app.ui.json_line(&json!({
                "session": appended.session,
                "seq": entry.seq,
                "id": entry.id,
                "external_id": entry.external_id,
                "how": how,
                "digest": entry.digest,
            }))?;
        } else {
            app.ui.data(entry.seq)?;
        }
    }
    if appended.session != *requested && !app.ui.json {
        app.ui.warn(format_args!(
            "the session had new entries; appended to fork {}",
            appended.session
        ));
    }
    if appended.kind == AppendKind::Rebased && !app.ui.json {
        app.ui
            .warn("the session had new entries; appended after them");
    }
    Ok(())
}

type IncomingLine = std::io::Result<(u64, Result<MessageLine, LineError>)>;
type PendingAppend = Pin<Box<dyn Future<Output = Result<AppendOutcome, Error>>>>;

/// Appends a stream of messages as they arrive and reports each once it is durable.
///
/// After the first stop signal it stops reading, then appends and reports what was read, so
/// that everything stored is acknowledged. After the second it exits at once.
async fn append_lines(app: &App, args: &AppendArgs, session: Session) -> Result<ExitCode> {
    let mut signals = StopSignals::listen()?;
    let mut stopped = None;
    let mut incoming = read_lines()?;
    let mut stream = LineAppender {
        app,
        conflict: args.conflict(),
        requested_session: session.id().clone(),
        session,
        expect: args.expect,
        in_flight: VecDeque::new(),
        bad_lines: 0,
        now: app.tl().await?.now(),
    };
    loop {
        // A sender may wait for an answer before sending more, so answers come first
        // whenever there is nothing to read yet.
        tokio::select! {
            biased;
            code = signals.received() => {
                stopped = Some(code);
                incoming.close();
                break;
            }
            line = incoming.recv(), if stream.has_capacity() => match line {
                None => break,
                Some(line) => stream.submit(line?).await?,
            },
            done = stream.next_done() => stream.report_done(done)?,
        }
    }
    tokio::select! {
        finished = stream.finish(&mut incoming) => finished?,
        // Second stop signal.
        code = signals.received(), if stopped.is_some() => return Ok(ExitCode::from(code)),
    }
    if let Some(code) = stopped {
        app.ui
            .warn("stopped; every stored message has been reported");
        return Ok(ExitCode::from(code));
    }
    if stream.bad_lines > 0 {
        let lines = throughline::format::pluralize(stream.bad_lines, "line");
        app.ui
            .warn(format_args!("{lines} skipped; all others were appended"));
        return Ok(ExitCode::from(5));
    }
    Ok(ExitCode::SUCCESS)
}

struct LineAppender<'a> {
    app: &'a App,
    requested_session: SessionId,
    session: Session,
    conflict: ConflictPolicy,
    expect: Option<Seq>,
    in_flight: VecDeque<PendingAppend>,
    bad_lines: u64,
    now: Timestamp,
}

impl LineAppender<'_> {
    fn has_capacity(&self) -> bool {
        self.in_flight.len() < MAX_IN_FLIGHT
    }

    async fn submit(
        &mut self,
        (number, line): (u64, Result<MessageLine, LineError>),
    ) -> Result<()> {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                self.bad_lines += 1;
                self.app.ui.warn(format_args!("line {number}: {error}"));
                return Ok(());
            }
        };
        if line.at.is_some_and(|at| is_future(at, self.now)) {
            self.app.ui.warn(format_args!(
                "line {number}: its time is in the future; using the current time"
            ));
        }
        if line.repaired {
            self.app
                .ui
                .warn(format_args!("line {number}: replaced invalid characters"));
        }
        let entry = self.build_entry(line);
        let (session, conflict) = (self.session.clone(), self.conflict);
        let expect = self.expect.map_or(Expect::Any, Expect::At);
        let mut append: PendingAppend =
            Box::pin(async move { session.append_all(vec![entry], expect, conflict).await });
        if self.expect.is_some() {
            // The next append expects this one's outcome, so wait for it.
            let appended = append.await?;
            self.expect = appended.entries.last().map(|entry| entry.seq);
            self.session = self.app.tl().await?.session(&appended.session).await?;
            report_appended(self.app, &self.requested_session, &appended)?;
            return Ok(());
        }
        // Polled once now, so that appends reach the store in the order of the lines. An append
        // that is already done is still reported after those before it.
        let first = std::future::poll_fn(|context| Poll::Ready(append.as_mut().poll(context)));
        self.in_flight.push_back(match first.await {
            Poll::Ready(done) => Box::pin(std::future::ready(done)),
            Poll::Pending => append,
        });
        Ok(())
    }

    fn build_entry(&self, line: MessageLine) -> NewEntry {
        let mut entry = self.session.new_entry(line.message);
        if let Some(at) = line.at.filter(|at| !is_future(*at, entry.at)) {
            entry = NewEntry::new(entry.id, at, entry.body);
        }
        entry.author = line.author;
        set_external_id(&mut entry, &self.requested_session, line.external_id);
        entry
    }

    /// Waits for the oldest pending append; never resolves if there is none.
    async fn next_done(&mut self) -> Option<Result<AppendOutcome, Error>> {
        match self.in_flight.front_mut() {
            None => std::future::pending().await,
            Some(oldest) => {
                let done = oldest.await;
                self.in_flight.pop_front();
                Some(done)
            }
        }
    }

    /// Appends everything already read and reports all pending appends.
    async fn finish(&mut self, incoming: &mut mpsc::Receiver<IncomingLine>) -> Result<()> {
        while let Some(line) = incoming.recv().await {
            while !self.has_capacity() {
                let done = self.next_done().await;
                self.report_done(done)?;
            }
            self.submit(line?).await?;
        }
        while !self.in_flight.is_empty() {
            let done = self.next_done().await;
            self.report_done(done)?;
        }
        Ok(())
    }

    fn report_done(&mut self, done: Option<Result<AppendOutcome, Error>>) -> Result<()> {
        if let Some(done) = done {
            report_appended(self.app, &self.requested_session, &done?)?;
        }
        Ok(())
    }
}

/// Reads lines of stdin on a separate thread, because reading blocks.
fn read_lines() -> Result<mpsc::Receiver<IncomingLine>> {
    let (send, receive) = mpsc::channel(MAX_IN_FLIGHT);
    spawn_thread("reading stdin", move || {
        for line in MessageLines::new(BufReader::new(std::io::stdin())) {
            if send.blocking_send(line).is_err() {
                break;
            }
        }
    })?;
    Ok(receive)
}
