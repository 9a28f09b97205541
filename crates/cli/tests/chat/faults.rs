//! Provider failures, and the messages shown for them.
//!
//! Invariant: whatever fails, the user's message is stored.

use std::net::TcpListener;

use throughline_mock_provider::{Fault, Reply};

use crate::assert_screen;
use crate::harness::Tl;
use crate::provider::{ANTHROPIC, KEY, WIRE_FORMATS, start_provider, wait_for_request};
use crate::pty::Pty;

const QUESTION: &str = "What is a token bucket?";

/// For each wire format, starts a chat and asks a question of a provider with these
/// replies.
fn ask_each_provider(replies: impl Fn() -> Vec<Reply>) -> Vec<(&'static str, Tl, Pty)> {
    let mut chats = Vec::new();
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        let provider = start_provider(replies());
        let mut chat = tl.connected_terminal(&[], &provider, wire).start_ready();
        chat.type_line("/rename limiter");
        chat.type_line(QUESTION);
        chats.push((wire.name, tl, chat, provider));
    }
    // The chats wait in parallel.
    let waited = chats.into_iter().map(|(name, tl, chat, provider)| {
        chat.wait_for_prompt();
        drop(provider);
        (name, tl, chat)
    });
    waited.collect()
}

fn first_text(tl: &Tl) -> String {
    tl.texts("limiter").remove(0)
}

#[test]
fn a_stream_that_breaks_is_kept_as_far_as_it_came() {
    let cut = || {
        vec![Reply {
            fault: Some(Fault::Disconnect { after: 5 }),
            ..Reply::text("A token bucket holds tokens and gives them out.")
        }]
    };
    for (name, tl, chat) in ask_each_provider(cut) {
        assert_screen!(format!("cut_{name}"), chat.screen());
        let shown = tl.json(&["show", "limiter", "--all"]);
        let entries = shown["entries"].as_array().unwrap();
        let answer = entries.iter().find(|entry| entry["role"] == "assistant");
        let answer = answer.unwrap();
        assert_eq!(answer["incomplete"], true);
        assert_eq!(answer["content"], "A token bucket holds tokens ");
    }
}

#[test]
fn rate_limiting_is_reported_and_retried() {
    let busy = || {
        let fault = Fault::RateLimited {
            retry_after: Some("0".to_owned()),
        };
        vec![Reply::fault(fault), Reply::text("It holds tokens.")]
    };
    for (name, _, chat) in ask_each_provider(busy) {
        assert_screen!(format!("rate_limited_{name}"), chat.screen());
    }
}

#[test]
fn a_broken_server_is_tried_again() {
    for (name, _, chat) in ask_each_provider(|| {
        vec![
            Reply::fault(Fault::Status(500)),
            Reply::text("It holds tokens."),
        ]
    }) {
        assert_screen!(format!("broken_{name}"), chat.screen());
    }
}

#[test]
fn a_server_that_stays_broken_is_reported_and_the_message_is_kept() {
    let broken = || (0..8).map(|_| Reply::fault(Fault::Status(503))).collect();
    for (name, tl, chat) in ask_each_provider(broken) {
        assert_screen!(format!("broken_for_good_{name}"), chat.screen());
        assert_eq!(first_text(&tl), QUESTION);
    }
}

#[test]
fn what_cannot_be_read_is_reported() {
    let bad = || (0..8).map(|_| Reply::fault(Fault::BadJson)).collect();
    for (name, tl, chat) in ask_each_provider(bad) {
        assert_screen!(format!("bad_json_{name}"), chat.screen());
        assert_eq!(first_text(&tl), QUESTION);
    }
}

#[test]
fn an_html_answer_is_reported() {
    let page = || (0..8).map(|_| Reply::fault(Fault::HtmlPage)).collect();
    for (name, tl, chat) in ask_each_provider(page) {
        assert_screen!(format!("a_page_{name}"), chat.screen());
        assert_eq!(first_text(&tl), QUESTION);
    }
}

#[test]
fn a_wrong_key_is_reported_and_the_right_one_goes_on() {
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        let provider = start_provider([Reply::text("It holds tokens.")]);
        // There is a reply prepared even for those whose key is wrong; they do not get it.
        let mut chat = tl
            .connected_terminal(&[], &provider, wire)
            .env(wire.key, "sk-wrong")
            .start_ready();
        chat.send_line("/rename limiter");
        chat.send_line(QUESTION);
        chat.exit();
        assert_screen!(format!("wrong_key_{}", wire.name), chat.scrollback());
        drop(provider);

        let provider = start_provider([Reply::text("It holds tokens.")]);
        let mut chat = tl.connected_terminal(&[], &provider, wire).start_ready();
        chat.send_line("/retry");
        let screen = chat.screen();
        assert!(screen.contains("It holds tokens."), "{screen}");
        assert_eq!(tl.texts("limiter"), [QUESTION, "It holds tokens."]);
    }
}

#[test]
fn a_model_that_does_not_exist_is_reported() {
    for (name, tl, mut chat) in ask_each_provider(|| vec![Reply::fault(Fault::NoSuchModel)]) {
        assert_screen!(format!("no_such_model_{name}"), chat.screen());
        chat.send_line("/model offline");
        chat.send_line("/retry");
        assert_eq!(tl.texts("limiter").len(), 2);
    }
}

#[test]
fn a_request_that_is_too_long_is_made_shorter_and_sent_once_more() {
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        let long = "A token bucket holds tokens, and gives them out one by one. ".repeat(30);
        let provider = start_provider([
            Reply::text(&long),
            Reply::text(&long),
            Reply::fault(Fault::TooLong),
            Reply::text("In short: it holds tokens."),
        ]);
        let mut chat = tl
            .connected_terminal(&["--with", "keep=1 messages"], &provider, wire)
            .start_ready();
        chat.send_line("What is a token bucket?");
        chat.send_line("Say that again.");
        let before = chat.scrollback().lines().count();
        chat.send_line("In short?");
        let after: Vec<_> = chat
            .scrollback()
            .lines()
            .skip(before - 1)
            .map(str::to_owned)
            .collect();
        assert_screen!(format!("too_long_{}", wire.name), after.join("\n"));
        let requests = provider.requests();
        let sizes: Vec<_> = requests
            .iter()
            .map(|request| request.body.to_string().len())
            .collect();
        assert!(sizes[sizes.len() - 1] < sizes[sizes.len() - 2], "{sizes:?}");
    }
}

#[test]
fn a_request_that_stays_too_long_is_reported() {
    let too_long = || vec![Reply::fault(Fault::TooLong), Reply::fault(Fault::TooLong)];
    for (name, tl, chat) in ask_each_provider(too_long) {
        assert_screen!(format!("too_long_for_good_{name}"), chat.screen());
        assert_eq!(first_text(&tl), QUESTION);
    }
}

#[test]
fn an_unreachable_address_is_reported() {
    let mut chats = Vec::new();
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let mut chat = tl
            .terminal(&[])
            .env(wire.key, KEY)
            .env(wire.address, &format!("http://{port}"))
            .start_ready();
        chat.type_line("/rename limiter");
        chat.type_line(QUESTION);
        chats.push((wire.name, tl, chat));
    }
    for (name, tl, chat) in chats {
        chat.wait_for_prompt();
        assert_screen!(format!("no_network_{name}"), chat.screen());
        assert_eq!(first_text(&tl), QUESTION);
    }
}

#[test]
fn a_killed_chat_is_told_what_has_no_answer() {
    let tl = Tl::new();
    let provider = start_provider([Reply::fault(Fault::Hang), Reply::text("It holds tokens.")]);
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .start_ready();
    chat.type_line(QUESTION);
    wait_for_request(&provider);
    chat.kill();
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .start_ready();
    assert_screen!("killed_while_answering", chat.screen());
    chat.send_line("/retry");
    assert!(
        chat.screen().contains("It holds tokens."),
        "{}",
        chat.screen()
    );
}
