//! Texts for continuing an earlier session: the prompt for the model and the banner for
//! the user.

use throughline_model::{PREVIEW_CHARS, SessionId, SessionInfo, Summary, Timestamp};

/// The facts about an earlier session that the restoration prompt states.
#[derive(Clone, Copy, Debug)]
pub struct Restoration<'a> {
    /// When the earlier conversation took place, if known.
    pub date: Option<Timestamp>,
    /// The earlier session.
    pub session: &'a SessionId,
    /// The number of user messages in it.
    pub queries: u64,
    /// The tokens it used.
    pub tokens: u64,
    /// The session it was itself continued from, if any.
    pub resumed_from: Option<&'a SessionId>,
    /// The path of its transcript.
    pub transcript: Option<&'a str>,
    /// Its summary.
    pub summary: &'a Summary,
}

/// Renders the prompt for an agent that continues from an earlier session's summary.
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

/// Renders the banner shown when a session is resumed. Never sent to a model.
pub fn render_resume_banner(info: &SessionInfo) -> String {
    let time = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    let mut banner = format!(
        "You are resuming a previous conversation session.\n\
         Session: {}\nCreated: {}\nLast activity: {}\n\
         Total messages: {} ({} from user, {} from assistant)\n",
        info.title(),
        time(info.created_at),
        time(info.last_activity),
        info.messages,
        info.queries,
        info.messages.saturating_sub(info.queries),
    );
    if let Some(description) = &info.description {
        banner.push_str(&format!("Description: {description}\n"));
    }
    if !info.preview.is_empty() {
        let cut = info.preview.chars().count() >= PREVIEW_CHARS;
        let dots = if cut { "..." } else { "" };
        banner.push_str(&format!("First topic: {}{dots}\n", info.preview));
    }
    banner.push_str(
        "\nThe conversation history follows. Continue naturally from where you left off.",
    );
    banner
}

/// Abbreviates a count: 950, 2.3K, 1.2M.
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
        let header = SessionHeader::new(
            session("my-session"),
            "2025-01-04T14:32:15Z".parse().unwrap(),
        );
        let mut info = SessionInfo::new(&header);
        info.last_activity = "2025-01-04T15:45:30Z".parse().unwrap();
        (info.messages, info.queries) = (24, 12);
        info.description = Some("Working on authentication feature".into());
        info.preview = "Help me implement JWT authentication".into();
        assert_eq!(
            render_resume_banner(&info),
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
