//! Reads the chat loop's sessions: one Markdown transcript each, with a summary at the end.

use jiff::tz::TimeZone;
use throughline_model::{
    AgentRef, Body, IncomingOrigin, Message, Role, SessionId, SessionRestore, Timestamp,
};

use super::emitter::Emitter;
use super::{ReadError, SourceFormat, aiarmy, source_document};
use crate::read_transcript;

pub(super) fn read(emitter: &mut Emitter<'_>) -> Result<(), ReadError> {
    let path = emitter.path;
    let Some(text) = source_document::read_source_text(emitter)? else {
        return Ok(());
    };
    let transcript = read_transcript(&text)
        .map_err(|error| ReadError::wrong_format(SourceFormat::ChatLoop, path, error))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let zone = TimeZone::system();
    let began = transcript.started_at(&zone);
    let id = transcript.session_id.clone();
    let mut found = emitter.new_session(id.unwrap_or_else(|| stem.into_owned()));
    found.at = began;
    found.agent = transcript.agent.clone().map(|name| AgentRef {
        name,
        path: transcript.agent_path.clone(),
    });
    let parent = transcript.resumed_from.clone();
    found.origin = parent
        .clone()
        .map(|session| IncomingOrigin::Started { session });
    emitter.emit_session(found);

    // Sections have only a time of day; if it goes backwards, a day has passed.
    let mut last = began;
    let mut at = |time: jiff::civil::Time| -> Option<Timestamp> {
        let before = last?.to_zoned(zone.clone());
        let mut day = before.date();
        if time < before.time().with().subsec_nanosecond(0).build().ok()? {
            day = day.tomorrow().ok()?;
        }
        let when = day
            .to_datetime(time)
            .to_zoned(zone.clone())
            .ok()?
            .timestamp();
        last = Some(when);
        last
    };
    if let (Some(restored), Some(from)) = (&transcript.restored, parent)
        && let Ok(from) = from.parse::<SessionId>()
    {
        let body = Body::Restored(SessionRestore {
            from,
            prompt: restored.context.clone().unwrap_or_default(),
            acknowledgement: Some(restored.acknowledgement.clone()),
            transcript: transcript.previous_session.clone(),
            usage: restored.usage,
            latency_ms: None,
        });
        emitter.emit_body(0, "restored", at(restored.time), body);
    }
    for query in &transcript.queries {
        let when = at(query.time);
        let place = query.number;
        let asked = Message::text(Role::User, &query.text);
        emitter.emit_message(place, Some(format!("query {place}")), when, asked);
        if !query.answer.is_empty() {
            let mut answer = Message::text(Role::Assistant, &query.answer);
            answer.usage = query.usage;
            answer.latency_ms = query.latency_ms;
            emitter.emit_message(place, Some(format!("answer {place}")), when, answer);
        }
        emitter.check_stopped()?;
    }
    if let Ok(summary) = transcript.summary {
        aiarmy::emit_summary(emitter, None, summary, None);
    }
    Ok(())
}
