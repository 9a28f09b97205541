//! Texts for going on from an earlier session: one for the model, one for the person.

use throughline_model::{PREVIEW_CHARS, SessionId, SessionInfo, Summary, Timestamp};

/// What a restored agent is told about.
#[derive(Clone, Copy, Debug)]
pub struct Restoration<'a> {
    /// When the earlier conversation was, where that is known.
    pub date: Option<Timestamp>,
    /// Its session.
    pub session: &'a SessionId,
    /// How often the user asked in it.
    pub queries: u64,
    /// What it took.
    pub tokens: u64,
    /// The session before it, where it was continued itself.
    pub resumed_from: Option<&'a SessionId>,
    /// Where its transcript was written.
    pub transcript: Option<&'a str>,
    /// What it came to.
    pub summary: &'a Summary,
}

/// What an agent is told when it goes on from an earlier session's summary.
pub fn render_restoration_prompt(restoration: &Restoration<'_>) -> String {
    let Restoration {
        date,
        session,
        queries,
        tokens,
        resumed_from,
        transcript,
        summary,
    } = restoration;
    let from = date.map_or_else(String::new, |date| {
        format!(" from {}", date.strftime("%Y-%m-%d %H:%M"))
    });
    let mut prompt = format!(
        "CONTEXT RESTORATION: You are continuing a previous conversation{from}.\n\n\
         Previous session summary (Session ID: {session}, {queries} {}, {} tokens):\n\n",
        if *queries == 1 { "query" } else { "queries" },
        abbreviate_count(*tokens),
    );
    if let Some(parent) = resumed_from {
        prompt.push_str(&format!("This session was resumed from: {parent}\n"));
    }
    if let Some(transcript) = transcript {
        prompt.push_str(&format!("Previous session file: {transcript}\n"));
    }
    if resumed_from.is_some() || transcript.is_some() {
        prompt.push('\n');
    }
    prompt.push_str(&summary.to_block());
    prompt.push_str(
        "\n\nTask: Review the above and provide a brief acknowledgment (2-6 sentences or \
         bullets) that includes:\n\
         1. Main topics discussed\n\
         2. Key decisions made\n\
         3. Confirmation you're ready to continue\n\n\
         Keep your response concise.",
    );
    prompt
}

/// What a person is shown when a session is resumed. Never sent to a model.
pub fn render_resume_banner(card: &SessionInfo) -> String {
    let time = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    let mut banner = format!(
        "You are resuming a previous conversation session.\n\
         Session: {}\nCreated: {}\nLast activity: {}\n\
         Total messages: {} ({} from user, {} from assistant)\n",
        card.title(),
        time(card.created_at),
        time(card.last_activity),
        card.messages,
        card.queries,
        card.messages.saturating_sub(card.queries),
    );
    if let Some(description) = &card.description {
        banner.push_str(&format!("Description: {description}\n"));
    }
    if !card.preview.is_empty() {
        let cut = card.preview.chars().count() >= PREVIEW_CHARS;
        let dots = if cut { "..." } else { "" };
        banner.push_str(&format!("First topic: {}{dots}\n", card.preview));
    }
    banner.push_str(
        "\nThe conversation history follows. Continue naturally from where you left off.",
    );
    banner
}

/// A count as people write it: 950, 2.3K, 1.2M.
pub fn abbreviate_count(count: u64) -> String {
    let tenths = |unit: u64, letter: char| {
        let tenths = count / (unit / 10);
        format!("{}.{}{letter}", tenths / 10, tenths % 10)
    };
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => tenths(1_000, 'K'),
        _ => tenths(1_000_000, 'M'),
    }
}

#[cfg(test)]
mod tests {
    use throughline_model::SessionHeader;

    use super::*;

    fn session(id: &str) -> SessionId {
        id.parse().unwrap()
    }

    #[test]
    fn the_restoration_prompt_is_the_documented_one() {
        let summary = Summary {
            background: "We chose JWT.".into(),
            topics: vec!["Rate limiter".into()],
            ..Summary::default()
        };
        let prompt = render_restoration_prompt(&Restoration {
            date: Some("2025-12-30T11:21:53Z".parse().unwrap()),
            session: &session("session_2"),
            queries: 5,
            tokens: 2_345,
            resumed_from: Some(&session("session_1")),
            transcript: Some("/home/wes/session_2.md"),
            summary: &summary,
        });
        let expected = format!(
            "CONTEXT RESTORATION: You are continuing a previous conversation from 2025-12-30 11:21.\n\n\
             Previous session summary (Session ID: session_2, 5 queries, 2.3K tokens):\n\n\
             This session was resumed from: session_1\n\
             Previous session file: /home/wes/session_2.md\n\n\
             {}\n\n\
             Task: Review the above and provide a brief acknowledgment (2-6 sentences or bullets) that includes:\n\
             1. Main topics discussed\n2. Key decisions made\n3. Confirmation you're ready to continue\n\n\
             Keep your response concise.",
            summary.to_block()
        );
        assert_eq!(prompt, expected);
        assert_eq!(Summary::from_transcript(&prompt), Ok(summary));
    }

    #[test]
    fn the_banner_is_the_documented_one() {
        let birth = SessionHeader::new(
            session("my-session"),
            "2025-01-04T14:32:15Z".parse().unwrap(),
        );
        let mut card = SessionInfo::new(&birth);
        card.last_activity = "2025-01-04T15:45:30Z".parse().unwrap();
        (card.messages, card.queries) = (24, 12);
        card.description = Some("Working on authentication feature".into());
        card.preview = "Help me implement JWT authentication".into();
        assert_eq!(
            render_resume_banner(&card),
            "You are resuming a previous conversation session.\n\
             Session: my-session\n\
             Created: 2025-01-04T14:32:15.000Z\n\
             Last activity: 2025-01-04T15:45:30.000Z\n\
             Total messages: 24 (12 from user, 12 from assistant)\n\
             Description: Working on authentication feature\n\
             First topic: Help me implement JWT authentication\n\n\
             The conversation history follows. Continue naturally from where you left off."
        );
    }

    #[test]
    fn counts_are_written_short() {
        assert_eq!(abbreviate_count(950), "950");
        assert_eq!(abbreviate_count(2_345), "2.3K");
        assert_eq!(abbreviate_count(1_250_000), "1.2M");
    }
}
