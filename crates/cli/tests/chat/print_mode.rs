//! `tl -p`: sends one message and prints only the answer on stdout.

use std::process::Command;

use serde_json::Value;
use throughline_mock_provider::{Fault, MockProvider, Reply};

use crate::harness::{CommandOutput, Tl, run_to_end};
use crate::provider::{
    ANTHROPIC, KEY, OPENAI, RequestPurpose, WIRE_FORMATS, WireFormat, purpose, start_provider,
};

/// Runs `tl` with a provider and text on stdin.
fn run_with_provider(
    tl: &Tl,
    args: &[&str],
    provider: &MockProvider,
    wire: WireFormat,
    stdin: &str,
) -> CommandOutput {
    let mut command = provider_command(tl, args, provider, wire);
    command.env("TL_ENCODING", "rough");
    run_to_end(command, args, stdin.as_bytes())
}

fn provider_command(tl: &Tl, args: &[&str], provider: &MockProvider, wire: WireFormat) -> Command {
    let mut command = tl.command(args);
    command.env(wire.key, KEY).env(wire.address, provider.url());
    command
}

/// Runs `tl` without a provider.
fn run_offline(tl: &Tl, args: &[&str], stdin: &str) -> CommandOutput {
    let mut command = tl.command(args);
    command.env("TL_ENCODING", "rough");
    run_to_end(command, args, stdin.as_bytes())
}

fn count_sessions(tl: &Tl) -> usize {
    tl.json(&["sessions", "--all"])["sessions"]
        .as_array()
        .unwrap()
        .len()
}

#[test]
fn the_answer_is_on_stdout_and_nothing_else() {
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        let provider = start_provider([Reply::text("It holds **tokens**.")]);
        let said = run_with_provider(&tl, &["-p", "What is a token bucket?"], &provider, wire, "");
        assert_eq!(said.ok(), "It holds **tokens**.\n");
        assert_eq!(said.stderr(), "");
        let texts = tl.texts("last");
        assert_eq!(texts, ["What is a token bucket?", "It holds **tokens**."]);
    }
}

#[test]
fn a_prompt_may_come_through_a_pipe() {
    let tl = Tl::new();
    let provider = start_provider([Reply::text("It holds tokens.")]);
    let said = run_with_provider(
        &tl,
        &["-p"],
        &provider,
        ANTHROPIC,
        "What is a token bucket?\n",
    );
    assert_eq!(said.ok(), "It holds tokens.\n");
    assert_eq!(tl.texts("last")[0], "What is a token bucket?");
}

#[test]
fn a_prompt_and_a_pipe_are_said_together() {
    let tl = Tl::new();
    let provider = start_provider([Reply::text("It is a limiter.")]);
    let said = run_with_provider(
        &tl,
        &["-p", "What is this?"],
        &provider,
        ANTHROPIC,
        "fn take() {}\n",
    );
    assert_eq!(said.ok(), "It is a limiter.\n");
    assert_eq!(tl.texts("last")[0], "What is this?\n\nfn take() {}");
}

#[test]
fn the_answer_may_be_json() {
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        let provider = start_provider([Reply::text("It holds tokens.")]);
        let args = ["-p", "What is a token bucket?", "--json"];
        let said = run_with_provider(&tl, &args, &provider, wire, "");
        let answer: Value = serde_json::from_str(&said.ok()).unwrap();
        assert_eq!(answer["answer"], "It holds tokens.");
        assert_eq!(answer["model"], wire.model);
        assert_eq!(answer["provider"], wire.name);
        assert_eq!(answer["usage"]["input"], 100);
        assert_eq!(answer["usage"]["output"], 20);
        assert_eq!(answer["incomplete"], false);
        let shown = tl.json(&["show", answer["session"].as_str().unwrap()]);
        let seq = |entry: usize| shown["entries"][entry]["seq"].clone();
        assert_eq!((&answer["question"], &answer["seq"]), (&seq(0), &seq(1)));
    }
}

#[test]
fn nothing_to_say_is_an_error() {
    let tl = Tl::new();
    for (args, stdin) in [(&["-p"][..], ""), (&["-p", "  "], ""), (&["-p"], " \n")] {
        let said = run_offline(&tl, args, stdin);
        assert_eq!(said.code(), Some(5), "{said}");
        assert!(said.stderr().contains("no prompt given"), "{said}");
    }
    assert_eq!(count_sessions(&tl), 0);
}

#[test]
fn a_failure_has_an_exit_code_of_its_own_and_keeps_what_was_said() {
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        let provider = start_provider([Reply::fault(Fault::WrongKey)]);
        let said = run_with_provider(&tl, &["-p", "What is a token bucket?"], &provider, wire, "");
        assert_eq!(said.code(), Some(7), "{said}");
        assert_eq!(said.stdout(), "");
        let told = format!("{} rejected the API key from {}", wire.name, wire.key);
        assert!(said.stderr().contains(&told), "{said}");
        assert!(said.stderr().contains("your message is saved"), "{said}");
        assert_eq!(tl.texts("last"), ["What is a token bucket?"]);
    }
}

#[test]
fn what_came_of_a_broken_answer_is_printed_and_kept() {
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        let cut = Reply {
            fault: Some(Fault::Disconnect { after: 3 }),
            ..Reply::text("It holds tokens and more.")
        };
        let provider = start_provider([cut]);
        let said = run_with_provider(&tl, &["-p", "What is a token bucket?"], &provider, wire, "");
        assert_eq!(said.code(), Some(7), "{said}");
        assert_eq!(said.stdout(), "It holds tokens \n");
        assert!(
            said.stderr().contains("the partial answer is saved"),
            "{said}"
        );
        assert_eq!(tl.texts("last")[1], "It holds tokens ");
    }
}

#[test]
fn it_goes_on_where_the_last_one_was_unless_it_is_told_otherwise() {
    let tl = Tl::new();
    let provider = start_provider([]);
    let asked = |args: &[&str]| run_with_provider(&tl, args, &provider, ANTHROPIC, "").ok();
    asked(&["-p", "one"]);
    asked(&["-p", "two"]);
    asked(&["-p", "three", "--continue"]);
    assert_eq!(count_sessions(&tl), 1);
    tl.ok(&["rename", "last", "first"]);
    asked(&["-p", "four", "--new", "--with", "recall=off"]);
    assert_eq!(count_sessions(&tl), 2);
    asked(&["-p", "five", "--resume", "first"]);
    assert_eq!(tl.json(&["show", "first"])["session"]["queries"], 4);
    // The model received the earlier messages.
    let requests = provider.requests();
    let answers: Vec<_> = requests
        .iter()
        .filter(|r| purpose(r) == RequestPurpose::Answer)
        .collect();
    let third = answers[2].body.to_string();
    assert!(third.contains("one") && third.contains("two"), "{third}");
    let fourth = answers[3].body.to_string();
    assert!(!fourth.contains("two"), "{fourth}");
}

#[test]
fn which_session_is_meant_has_to_be_said() {
    let tl = Tl::new();
    let said = run_offline(&tl, &["-p", "hello", "--resume"], "");
    assert_eq!(said.code(), Some(5), "{said}");
    assert!(
        said.stderr().contains("specify one: --resume SESSION"),
        "{said}"
    );
    let said = run_offline(&tl, &["-p", "hello", "--resume", "nobody"], "");
    assert_eq!(said.code(), Some(3), "{said}");
}

#[test]
fn without_saving_nothing_is_kept() {
    let tl = Tl::new();
    let said = run_offline(&tl, &["-p", "A secret", "--no-save"], "");
    assert!(said.ok().contains("not a language model"));
    assert!(!tl.store().exists());
    assert_eq!(count_sessions(&tl), 0);
}

#[test]
fn without_a_model_the_offline_agent_answers() {
    let tl = Tl::new();
    run_offline(&tl, &["-p", "TODO: test the burst"], "").ok();
    let said = run_offline(&tl, &["-p", "what tasks are open?"], "");
    assert_eq!(said.ok(), "**Open tasks:**\n\n- TODO: test the burst\n");
    let said = run_offline(&tl, &["-p", "what tasks are open?", "--json"], "");
    let answer: Value = serde_json::from_str(&said.ok()).unwrap();
    assert_eq!(answer["model"], "offline");
    assert_eq!(answer["usage"], Value::Null);
}

#[test]
fn the_flag_decides_before_the_agent_and_the_agent_before_the_configuration() {
    let tl = Tl::new();
    let provider = start_provider([]);
    std::fs::create_dir_all(tl.work().join(".throughline/agents")).unwrap();
    let agent = tl.work().join(".throughline/agents/sally.md");
    std::fs::write(agent, "---\nmodel: anthropic/of-the-agent\n---\nHello.\n").unwrap();
    std::fs::create_dir_all(tl.home()).unwrap();
    let config = tl.home().join("config.toml");
    std::fs::write(config, "model = \"anthropic/of-the-configuration\"\n").unwrap();
    for (args, model) in [
        (&["-p", "hello", "--new"][..], "of-the-configuration"),
        (
            &["-p", "hello", "--new", "--agent", "sally"],
            "of-the-agent",
        ),
        (
            &[
                "-p",
                "hello",
                "--new",
                "--agent",
                "sally",
                "--model",
                "anthropic/of-the-flag",
            ],
            "of-the-flag",
        ),
    ] {
        run_with_provider(&tl, args, &provider, ANTHROPIC, "").ok();
        let requests = provider.requests();
        let asked = requests
            .iter()
            .rfind(|r| purpose(r) == RequestPurpose::Answer);
        assert_eq!(asked.unwrap().model(), model);
    }
    let last = provider.requests();
    let last = last
        .iter()
        .rfind(|r| purpose(r) == RequestPurpose::Answer)
        .unwrap();
    assert!(last.system().contains("Hello."), "the agent's role is sent");
}

#[test]
fn any_address_that_speaks_as_openai_does_will_do() {
    let tl = Tl::new();
    let provider = start_provider([Reply::text("From somewhere else.")]);
    let model = format!("base_url={} model=local", provider.url());
    let mut command = tl.command(&["-p", "hello", "--model", &model]);
    command.env(OPENAI.key, KEY).env("TL_ENCODING", "rough");
    let said = run_to_end(command, &["-p"], b"");
    assert_eq!(said.ok(), "From somewhere else.\n");
}
