//! Acceptance tests for the chat loop: summaries on exit, and `compact` and `resume` in a
//! chain of sessions.

use std::path::PathBuf;

use serde_json::Value;
use throughline_mock_provider::{Fault, Reply};

use crate::harness::Tl;
use crate::provider::{
    ANTHROPIC, RequestPurpose, purpose, start_provider, start_provider_by_purpose, summary_reply,
};
use crate::pty::Pty;
use crate::steps::{entries, list_sessions, session_info};

const CHAIN: &[&str] = &["--new", "--policy", "chain"];
const SUMMARY_START: &str = "<!-- SESSION_SUMMARY_START -->";
const SUMMARY_END: &str = "<!-- SESSION_SUMMARY_END -->";

/// Starts a chat in a chain, with transcripts.
fn start_chained_chat(tl: &Tl) -> Pty {
    tl.terminal(CHAIN)
        .env("TL_TRANSCRIPTS", "transcripts")
        .start_ready()
}

/// Lists the transcripts, oldest first.
fn transcripts(tl: &Tl) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(tl.work().join("transcripts")).unwrap();
    let mut files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn transcript(tl: &Tl, index: usize) -> String {
    std::fs::read_to_string(&transcripts(tl)[index]).unwrap()
}

/// Returns every complete summary block, in order.
fn summary_blocks(text: &str) -> Vec<&str> {
    let starts = text.split(SUMMARY_START).skip(1);
    starts
        .filter_map(|rest| rest.split_once(SUMMARY_END))
        .map(|(block, _)| block)
        .collect()
}

/// Creates a session of two queries, summarized on exit; returns its id.
fn create_summarized_session(tl: &Tl) -> String {
    let mut chat = start_chained_chat(tl);
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("TODO: write the integration tests");
    chat.exit();
    let files = transcripts(tl);
    let name = files.last().unwrap().file_stem().unwrap();
    name.to_str().unwrap().to_owned()
}

fn screen_of(chat: &Pty) -> String {
    chat.scrollback()
}

#[test]
fn a_summary_is_generated_automatically_on_exit() {
    let tl = Tl::new();
    let id = create_summarized_session(&tl);
    let last = entries(&tl, &id).pop().unwrap();
    assert_eq!(last["kind"], "checkpoint");
    assert!(last["summary"].to_string().contains("Redis"), "{last}");
}

#[test]
fn summaries_have_the_correct_structure_and_markers() {
    let tl = Tl::new();
    create_summarized_session(&tl);
    let text = transcript(&tl, 0);
    let blocks = summary_blocks(&text);
    assert_eq!(blocks.len(), 1, "{text}");
    let mut rest = blocks[0];
    for part in [
        "**Background Context:** Initial session.",
        "**Current Session Summary:**",
        "**Topics Discussed:**\n- ",
        "**Decisions Made:**\n- We decided to use Redis",
        "**Pending:**\n- ",
    ] {
        let found = rest.split_once(part);
        rest = found.unwrap_or_else(|| panic!("{part} in {text}")).1;
    }
}

#[test]
fn summaries_are_generated_for_conversations_of_various_lengths() {
    for queries in [1, 5, 20] {
        let tl = Tl::new();
        let mut chat = start_chained_chat(&tl);
        for n in 0..queries {
            chat.send_line(&format!("We decided on step {n} of the plan."));
        }
        assert_eq!(chat.exit(), Some(0));
        let text = transcript(&tl, 0);
        let block = summary_blocks(&text)[0];
        assert!(block.contains("We decided on step 0"), "{block}");
        let last = format!("We decided on step {}", queries - 1);
        assert!(block.contains(&last), "{block}");
        assert!(
            text.contains(&format!("**Total Queries:** {queries}")),
            "{text}"
        );
    }
}

#[test]
fn failed_summaries_are_handled_gracefully() {
    let tl = Tl::new();
    let provider = start_provider_by_purpose(
        [],
        || Reply::text("limiter"),
        || Reply::fault(Fault::WrongKey),
    );
    let mut chat = tl
        .connected_terminal(CHAIN, &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("We decided to use a token bucket.");
    assert_eq!(chat.exit(), Some(0));
    let screen = screen_of(&chat);
    assert!(screen.contains("could not summarize"), "{screen}");
    assert!(
        screen.contains("✓ Conversation saved successfully!"),
        "{screen}"
    );
    assert_eq!(tl.texts("last").len(), 2);
}

#[test]
fn a_summary_is_tried_once_more() {
    let tl = Tl::new();
    let provider = start_provider_by_purpose(
        [],
        || Reply::text("limiter"),
        || Reply::text("no summary at all"),
    );
    let mut chat = tl
        .connected_terminal(CHAIN, &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("We decided to use a token bucket.");
    chat.exit();
    let requests = provider.requests();
    let tried = requests
        .iter()
        .filter(|r| purpose(r) == RequestPurpose::Summary);
    assert_eq!(tried.count(), 2);
    let screen = screen_of(&chat);
    assert!(
        screen.contains("summarized without a model instead"),
        "{screen}"
    );
}

#[test]
fn a_summary_that_takes_too_long_is_not_waited_for_and_nothing_is_lost() {
    let tl = Tl::new();
    let provider =
        start_provider_by_purpose([], || Reply::text("limiter"), || Reply::fault(Fault::Hang));
    let mut chat = tl
        .connected_terminal(CHAIN, &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("We decided to use a token bucket.");
    chat.type_line("exit");
    chat.wait_for("summarizing");
    chat.send_keys(crate::pty::CTRL_C);
    assert_eq!(chat.exit_code(), Some(0));
    let screen = screen_of(&chat);
    assert!(screen.contains("all messages are saved"), "{screen}");
    assert_eq!(tl.texts("last").len(), 2);
}

#[test]
fn summarization_is_progressive() {
    let tl = Tl::new();
    create_summarized_session(&tl);
    let mut chat = start_chained_chat(&tl);
    chat.send_line("/sessions");
    chat.send_line("resume 1");
    chat.send_line("We decided on a token bucket.");
    chat.exit();
    let text = transcript(&tl, 1);
    let block = *summary_blocks(&text).last().unwrap();
    assert!(
        block.contains("Redis"),
        "what was known is condensed: {block}"
    );
    assert!(block.contains("token bucket"), "{block}");
}

#[test]
fn the_exit_shows_the_session_its_queries_and_tokens() {
    let tl = Tl::new();
    let provider = start_provider([]);
    let mut chat = tl
        .connected_terminal(CHAIN, &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("What is a token bucket?");
    chat.exit();
    let screen = screen_of(&chat);
    let end: Vec<_> = screen
        .lines()
        .skip_while(|line| *line != "You: exit")
        .take(7)
        .collect();
    assert_eq!(
        end,
        [
            "You: exit",
            "📝 Generating session summary... ✓",
            "Goodbye!",
            "✓ Conversation saved successfully!",
            "  Session ID: YYYY-MM-DD-hh-mm-ss-mmm-random",
            "  Queries: 1",
            "  Tokens: 240",
        ]
    );
}

#[test]
fn the_compact_command_works_end_to_end() {
    let tl = Tl::new();
    let mut chat = start_chained_chat(&tl);
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("compact");
    let screen = screen_of(&chat);
    let flow: Vec<_> = screen
        .lines()
        .skip_while(|line| *line != "You: compact")
        .filter(|line| !line.is_empty())
        .take(5)
        .collect();
    assert_eq!(
        flow,
        [
            "You: compact",
            "📝 Generating session summary...",
            "💾 Saved session: decided-use-redis-session-cache (1 query, 0 tokens)",
            "🔄 Starting new session with summary...",
            "offline:",
        ]
    );
    chat.send_line("And on we go.");
    assert_eq!(list_sessions(&tl).len(), 2);
    assert_eq!(session_info(&tl, "last")["queries"], 1);
}

#[test]
fn compact_works_after_one_five_and_twenty_queries() {
    for queries in [1, 5, 20] {
        let tl = Tl::new();
        let mut chat = start_chained_chat(&tl);
        for n in 0..queries {
            chat.send_line(&format!("We decided on step {n} of the plan."));
        }
        chat.send_line("compact");
        let saved = match queries {
            1 => "(1 query, ".to_owned(),
            many => format!("({many} queries, "),
        };
        assert!(screen_of(&chat).contains(&saved), "{}", screen_of(&chat));
        chat.send_line("what was decided?");
        assert!(
            screen_of(&chat).contains("step 0 of the plan"),
            "{}",
            screen_of(&chat)
        );
    }
}

#[test]
fn compact_works_with_different_agents() {
    let tl = Tl::new();
    std::fs::write(tl.work().join("sally.md"), "You answer simply.\n").unwrap();
    let mut chat = tl
        .terminal(&[CHAIN, &["--agent", "sally.md"]].concat())
        .start_ready();
    chat.send_line("We decided to use Redis.");
    chat.send_line("compact");
    let screen = screen_of(&chat);
    assert!(
        screen.contains("\nsally:\nI have reviewed our previous conversation."),
        "{screen}"
    );
    assert_eq!(session_info(&tl, "last")["agent"]["name"], "sally");
}

#[test]
fn a_new_session_properly_references_its_parent() {
    let tl = Tl::new();
    let mut chat = start_chained_chat(&tl);
    chat.send_line("We decided to use Redis.");
    chat.send_line("compact");
    chat.send_line("And on we go.");
    chat.exit();
    let files = transcripts(&tl);
    let first = files[0].file_stem().unwrap().to_str().unwrap().to_owned();
    let text = transcript(&tl, 1);
    assert!(
        text.contains(&format!("**Resumed From:** {first}")),
        "{text}"
    );
    assert!(
        text.contains(&format!("**Previous Session:** {}", files[0].display())),
        "{text}"
    );
    assert!(text.contains("## Session Restored ("), "{text}");
    assert!(
        text.contains(&format!("**Context:** Resumed from {first}")),
        "{text}"
    );
    assert_eq!(
        session_info(&tl, "last")["lineage"]["session"],
        first.as_str()
    );
}

#[test]
fn the_agents_acknowledgment_is_displayed() {
    let tl = Tl::new();
    let words = "I've reviewed our conversation about rate limits. Ready to continue!";
    let provider = start_provider([Reply::text("A bucket."), Reply::text(words)]);
    let mut chat = tl
        .connected_terminal(CHAIN, &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("How do I limit the rate of requests?");
    chat.send_line("compact");
    assert!(screen_of(&chat).contains(words), "{}", screen_of(&chat));
    let requests = provider.requests();
    let asked = requests
        .iter()
        .rfind(|r| purpose(r) == RequestPurpose::Answer)
        .unwrap();
    let prompt = asked.last_user_text();
    for part in [
        "CONTEXT RESTORATION: You are continuing a previous conversation from",
        "1 query",
        SUMMARY_START,
        SUMMARY_END,
        "Main topics discussed",
        "Key decisions made",
        "ready to continue",
    ] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
}

#[test]
fn an_acknowledgment_that_fails_does_not_keep_one_from_continuing() {
    let tl = Tl::new();
    let provider = start_provider([Reply::text("A bucket."), Reply::fault(Fault::WrongKey)]);
    let mut chat = tl
        .connected_terminal(CHAIN, &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("How do I limit the rate of requests?");
    chat.send_line("compact");
    assert!(
        screen_of(&chat).contains("did not acknowledge"),
        "{}",
        screen_of(&chat)
    );
    chat.send_line("And then?");
    assert!(screen_of(&chat).contains("There is nothing more to say."));
}

#[test]
fn a_weird_acknowledgment_is_shown_as_it_is() {
    let tl = Tl::new();
    let provider = start_provider([Reply::text("A bucket."), Reply::text("¯\\_(ツ)_/¯")]);
    let mut chat = tl
        .connected_terminal(CHAIN, &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("How do I limit the rate of requests?");
    chat.send_line("compact");
    assert!(screen_of(&chat).contains("(ツ)"), "{}", screen_of(&chat));
}

#[test]
fn the_resume_command_loads_old_sessions_by_number() {
    let tl = Tl::new();
    create_summarized_session(&tl);
    let mut chat = start_chained_chat(&tl);
    chat.send_line("/sessions");
    chat.send_line("resume 1");
    let screen = screen_of(&chat);
    let flow: Vec<_> = screen
        .lines()
        .skip_while(|line| *line != "You: resume 1")
        .filter(|line| !line.is_empty())
        .take(6)
        .collect();
    assert_eq!(
        flow,
        [
            "You: resume 1",
            "📋 Loading session...",
            "✓ Found: decided-use-redis-session-cache - Mon DD, hh:mm (2 queries, 0 tokens)",
            "🔄 Restoring context...",
            "offline:",
            "I have reviewed our previous conversation.",
        ]
    );
}

#[test]
fn the_resume_command_takes_a_session_id() {
    let tl = Tl::new();
    let id = create_summarized_session(&tl);
    let mut chat = start_chained_chat(&tl);
    chat.send_line(&format!("resume {id}"));
    chat.send_line("what tasks are open?");
    assert!(screen_of(&chat).contains("- TODO: write the integration tests"));
    chat.exit();
    assert_eq!(session_info(&tl, "last")["lineage"]["session"], id.as_str());
}

#[test]
fn a_missing_parent_starts_fresh_with_a_warning() {
    let tl = Tl::new();
    let id = create_summarized_session(&tl);
    let mut chat = start_chained_chat(&tl);
    chat.send_line("/sessions");
    tl.ok(&["delete", &id]);
    tl.ok(&["purge", "--older-than", "0d"]);
    chat.send_line("resume 1");
    let screen = screen_of(&chat);
    assert!(screen.contains("⚠ Parent session"), "{screen}");
    assert!(screen.contains("not found, starting fresh"), "{screen}");
    chat.send_line("Hello all the same");
    assert_eq!(session_info(&tl, "last")["queries"], 1);
}

#[test]
fn a_corrupted_summary_starts_fresh_with_a_warning() {
    let tl = Tl::new();
    let id = create_summarized_session(&tl);
    let file = transcripts(&tl).remove(0);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace(SUMMARY_START, "")).unwrap();
    tl.ok(&["delete", &id]);
    tl.ok(&["purge", "--older-than", "0d"]);
    let mut chat = start_chained_chat(&tl);
    chat.send_line(&format!("resume {}", file.display()));
    let warning = "⚠ Session can't be resumed (invalid summary format)";
    assert!(screen_of(&chat).contains(warning), "{}", screen_of(&chat));
    chat.send_line("Hello all the same");
    assert_eq!(session_info(&tl, "last")["queries"], 1);
}

#[test]
fn a_session_without_a_summary_starts_fresh_with_a_warning() {
    let tl = Tl::new();
    tl.session("plain", &["Nobody has summarized this."]);
    let mut chat = start_chained_chat(&tl);
    chat.send_line("/resume plain");
    let warning = "⚠ Session can't be resumed (no summary), starting fresh";
    assert!(screen_of(&chat).contains(warning), "{}", screen_of(&chat));
}

#[test]
fn resuming_with_a_different_agent_asks() {
    let tl = Tl::new();
    for name in ["sally", "terse"] {
        std::fs::write(tl.work().join(format!("{name}.md")), "You answer.\n").unwrap();
    }
    let mut chat = tl
        .terminal(&[CHAIN, &["--agent", "sally.md"]].concat())
        .start_ready();
    chat.send_line("We decided to use Redis.");
    chat.send_line("/rename first");
    chat.exit();
    let mut chat = tl
        .terminal(&[CHAIN, &["--agent", "terse.md"]].concat())
        .start_ready();
    chat.send_line("/resume first");
    let screen = screen_of(&chat);
    assert!(screen.contains("⚠ Session created with"), "{screen}");
    assert!(screen.contains("Continue? (y/n)"), "{screen}");
    chat.send_line("n");
    assert!(screen_of(&chat).contains("Staying here."));
    chat.send_line("/resume first");
    chat.send_line("y");
    assert!(screen_of(&chat).contains("I have reviewed our previous conversation."));
}

#[test]
fn sessions_are_chained_and_only_the_last_summary_is_loaded() {
    let tl = Tl::new();
    let mut chat = start_chained_chat(&tl);
    for said in [
        "We decided to use Redis.",
        "We decided on a token bucket.",
        "We decided on tests.",
    ] {
        chat.send_line(said);
        chat.send_line("compact");
    }
    let mut session = "last".to_owned();
    let mut chain = Vec::new();
    loop {
        let card = session_info(&tl, &session);
        chain.push(card["id"].as_str().unwrap().to_owned());
        match &card["lineage"]["session"] {
            Value::String(parent) => session.clone_from(parent),
            _ => break,
        }
    }
    assert_eq!(chain.len(), 4, "each references the one before");
    let restored = &entries(&tl, "last")[0];
    assert_eq!(restored["from"], chain[1].as_str());
    let prompt = restored["prompt"].as_str().unwrap();
    assert_eq!(summary_blocks(prompt).len(), 1, "{prompt}");
    assert!(
        prompt.contains(&chain[2]),
        "it tells what came before the one it is from"
    );
    assert!(!prompt.contains(&chain[3]), "and no more: {prompt}");
}

#[test]
fn resuming_and_compacting_can_be_mixed() {
    let tl = Tl::new();
    create_summarized_session(&tl);
    let mut chat = start_chained_chat(&tl);
    chat.send_line("/sessions");
    chat.send_line("resume 1");
    chat.send_line("We decided on a token bucket.");
    chat.send_line("compact");
    chat.send_line("/sessions");
    chat.send_line("resume 2");
    chat.send_line("what was decided?");
    let screen = chat.screen();
    assert!(
        screen.contains("Redis") && screen.contains("token bucket"),
        "{screen}"
    );
}

#[test]
fn the_restoration_counts_as_tokens_and_not_as_a_query() {
    let tl = Tl::new();
    let provider = start_provider([]);
    let mut chat = tl
        .connected_terminal(CHAIN, &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("How do I limit the rate of requests?");
    chat.send_line("compact");
    chat.send_line("And then?");
    chat.exit();
    let screen = screen_of(&chat);
    for line in [
        "  Queries: 1",
        "  Restoration: 120 tokens (in: 100, out: 20)",
        "  Session Tokens: 240 tokens",
        "  Combined Total: 360 tokens",
    ] {
        assert!(screen.contains(line), "{line}\n{screen}");
    }
}

#[test]
fn no_configuration_is_needed() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("We decided to use Redis.");
    chat.exit();
    let last = entries(&tl, "last").pop().unwrap();
    assert_eq!(last["kind"], "summarized", "{last}");
    let transcript = tl.ok(&["export", "last"]);
    assert_eq!(summary_blocks(&transcript).len(), 1, "{transcript}");
}

#[test]
fn very_long_summaries_are_accepted() {
    let tl = Tl::new();
    let long = || {
        let text = match &summary_reply().blocks[0] {
            throughline_mock_provider::ReplyBlock::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        let words = "and so on ".repeat(600);
        Reply::text(text.replace("A rate limiter", &format!("A rate limiter {words}")))
    };
    let provider = start_provider_by_purpose([], || Reply::text("limiter"), long);
    let mut chat = tl
        .connected_terminal(CHAIN, &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("How do I limit the rate of requests?");
    chat.send_line("compact");
    chat.send_line("And then?");
    let requests = provider.requests();
    let asked = requests
        .iter()
        .rfind(|r| purpose(r) == RequestPurpose::Answer)
        .unwrap();
    assert!(asked.body.to_string().contains("and so on and so on"));
}
