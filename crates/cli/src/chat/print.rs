//! `tl -p`: runs one turn with plain output.
//!
//! stdout contains only the answer, so that it can be piped.

use std::io::{IsTerminal, Read as _, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use throughline::llm::{Delta, Model, ModelError, ModelErrorKind, OFFLINE_MODEL, OFFLINE_PROVIDER};
use throughline::{ConflictPolicy, Content, Expect, TurnEvent};

use super::chat_turn::{explain_model_error, format_retry};
use super::input::Input;
use super::{Chat, ChatArgs};
use crate::app::App;
use crate::commands::memory::remember_turn;
use crate::error_report::UserError;
use crate::threads::spawn_thread;

/// How long to wait for piped input that may never come.
const STDIN_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) async fn run(app: &App, args: ChatArgs) -> Result<ExitCode> {
    let prompt = read_prompt(args.print.clone().flatten())?;
    if matches!(args.resume, Some(None)) {
        return Err(UserError::invalid("-p cannot show a list of sessions")
            .with_hint("specify one: --resume SESSION")
            .into());
    }
    let Some(mut chat) = Chat::open(app, args, Input::Pipe).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let session = chat.ensure_session().await?;
    let claim = session.claim_turn().await?;
    let content = Content::text(&prompt);
    let posting = claim
        .session()
        .post_message(content, Expect::Any, ConflictPolicy::Reject);
    let posted = posting.await?;
    let responder = chat.build_responder(&session).await?;
    let json = app.ui.json;
    let mut ends_with_newline = true;
    let mut failed = None;
    let mut tell = |event| match event {
        TurnEvent::Delta(Delta::Text(text)) if !json => {
            ends_with_newline = text.ends_with('\n');
            let mut out = std::io::stdout().lock();
            let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            if let Err(error) = written {
                failed.get_or_insert(error);
            }
        }
        TurnEvent::Delta(Delta::Retry {
            after, reason: why, ..
        }) => {
            app.ui.status(format_retry(after, &why));
        }
        TurnEvent::Warning(warning) => app.ui.warn(crate::markdown::sanitize(&warning)),
        _ => {}
    };
    let (claimed, question) = (claim.session(), &posted.entry);
    let answering = responder.answer(claimed, question, &app.zone, None, None, &mut tell);
    let outcome = claim.run_with_renewal(Box::pin(answering)).await?;
    claim.release().await;
    if !ends_with_newline {
        app.ui.data("")?;
    }
    remember_turn(app, &session, &outcome).await;
    // Do not make a script wait for a generated title.
    session.name_from_first_message().await?;
    chat.exit_silently();
    let answer = outcome.answer.as_ref();
    if json {
        let message = answer.and_then(|entry| entry.message());
        app.ui.json(&json!({
            "session": session.id(),
            "question": posted.entry.seq,
            "seq": answer.map(|entry| entry.seq),
            "answer": message.map(|message| message.content.to_text()),
            "model": chat.responder.model().map_or(OFFLINE_MODEL, Model::name),
            "provider": chat.responder.model().map_or(OFFLINE_PROVIDER, Model::provider),
            "usage": outcome.usage,
            "incomplete": message.is_some_and(|message| message.incomplete),
            "context": {"tokens": outcome.request.tokens, "budget": outcome.request.budget},
        }))?;
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    match outcome.error {
        Some(error) => Err(explain_model_error(
            &error,
            print_error_hint(&error, answer.is_some()),
        )),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Returns the remedy for a model error of `tl -p`.
fn print_error_hint(error: &ModelError, answered: bool) -> &'static str {
    match error.kind() {
        ModelErrorKind::Key => "your message is saved: set the right key, then use `tl` and /retry",
        ModelErrorKind::NotFound => "your message is saved: choose another with --model NAME",
        _ if answered => "the partial answer is saved",
        _ => "your message is saved: use `tl` and /retry to try again",
    }
}

/// Reads the message: the prompt, followed by piped input.
fn read_prompt(given: Option<String>) -> Result<String> {
    let piped = match &given {
        _ if std::io::stdin().is_terminal() => None,
        None => Some(read_stdin_to_end()?),
        Some(_) => read_stdin_if_piped()?,
    };
    let text = match (given, piped) {
        (Some(given), Some(piped)) if !piped.trim().is_empty() => format!("{given}\n\n{piped}"),
        (Some(given), _) => given,
        (None, Some(piped)) => piped,
        (None, None) => String::new(),
    };
    if text.trim().is_empty() {
        return Err(UserError::invalid("no prompt given")
            .with_hint("tl -p \"PROMPT\", or pipe a prompt")
            .into());
    }
    Ok(text.trim_end().to_owned())
}

fn read_stdin_to_end() -> Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| stdin_error(&error))?;
    Ok(text)
}

/// Reads piped input, if any arrives in time.
fn read_stdin_if_piped() -> Result<Option<String>> {
    let (first, waiting) = mpsc::channel();
    let reader = spawn_thread("reading stdin", move || {
        let mut start = [0; 1];
        let mut bytes = Vec::new();
        let read = std::io::stdin().read(&mut start);
        // The receiver may have timed out.
        let _ = first.send(());
        if matches!(read, Ok(1)) {
            bytes.push(start[0]);
            std::io::stdin().read_to_end(&mut bytes)?;
        }
        read.map(|_| bytes)
    })?;
    if waiting.recv_timeout(STDIN_TIMEOUT).is_err() {
        return Ok(None);
    }
    let bytes = reader
        .join()
        .map_err(|_| UserError::invalid("piped input cannot be read"))?
        .map_err(|error| stdin_error(&error))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| UserError::invalid(format!("piped input: {error}")))?;
    Ok(Some(text))
}

fn stdin_error(error: &std::io::Error) -> anyhow::Error {
    UserError::invalid(format!("piped input cannot be read: {error}")).into()
}
