//! Acceptance tests for dagent: agent sessions by feature and task, checkpoints, and
//! requests ready to send.

use serde_json::{Value, json};
use throughline::context::{Encoding, Policy};
use throughline::{
    CompactOptions, CompactOutcome, CompactionEvent, Key, Message, NewSession, Role, Throughline,
    Usage,
};

use crate::harness::Tl;
use crate::steps::{
    append_exchanges, entries, list_sessions, run_chat, run_rough, run_rough_json, section,
    session_info,
};

const DAGENT: &str = "dagent";

fn checkpoint(tl: &Tl, session: &str) -> Value {
    serde_json::from_str(&tl.ok(&["show", session, "--checkpoint"])).unwrap()
}

#[test]
fn the_same_options_always_give_the_same_session() {
    let tl = Tl::new();
    let feature = ["open", "--feature", "my-feature", "--agent", "pm"];
    let task = [
        "open",
        "--feature",
        "my-feature",
        "--agent",
        "dev",
        "--task",
        "task-123",
        "--state",
        "in_dev",
    ];
    assert_eq!(tl.ok(&feature), tl.ok(&feature));
    assert_eq!(tl.ok(&task), tl.ok(&task));
    assert_ne!(tl.ok(&feature), tl.ok(&task));
    let keys: Vec<_> = list_sessions(&tl)
        .iter()
        .map(|card| card["key"].clone())
        .collect();
    assert!(keys.contains(&json!("pm-feature-my-feature")), "{keys:?}");
    assert!(
        keys.contains(&json!("dev-task-my-feature-task-123-in_dev")),
        "{keys:?}"
    );
}

#[test]
fn every_type_of_agent_has_sessions_of_its_own() {
    let tl = Tl::new();
    for agent in ["pm", "dev", "qa", "harness", "merge"] {
        let id = tl.ok(&["open", "--feature", "f", "--agent", agent]);
        tl.ok(&["append", id.trim(), &format!("said to {agent}")]);
    }
    assert_eq!(list_sessions(&tl).len(), 5);
    assert_eq!(tl.texts("qa-feature-f"), ["said to qa"]);
    assert_eq!(session_info(&tl, "qa-feature-f")["agent"]["name"], "qa");
}

#[test]
fn a_new_session_has_no_messages_and_an_empty_checkpoint() {
    let tl = Tl::new();
    let id = tl.ok(&["open", "--feature", "f", "--agent", "pm"]);
    assert_eq!(session_info(&tl, id.trim())["messages"], 0);
    let checkpoint = checkpoint(&tl, id.trim());
    for list in [
        "completed",
        "inProgress",
        "pending",
        "blockers",
        "decisions",
    ] {
        assert_eq!(checkpoint["summary"][list], json!([]), "{list}");
    }
    assert_eq!(checkpoint["version"], 0);
}

#[test]
fn messages_are_added_with_ids_timestamps_and_token_metadata() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "s", 0);
    let line = json!({
        "role": "assistant",
        "content": "I created a new task...",
        "author": "pm",
        "usage": {"input": 1_000, "output": 500},
    });
    tl.run_with(&["append", &id, "--json"], line.to_string().as_bytes())
        .ok();
    let entry = &entries(&tl, &id)[0];
    assert!(
        entry["id"].is_string() && entry["at"].is_string(),
        "{entry}"
    );
    assert_eq!(entry["author"], "pm");
    assert_eq!(entry["usage"]["input"], 1_000);
    assert_eq!(
        session_info(&tl, &id)["tokens"]["output"],
        500,
        "the stats follow"
    );
}

#[test]
fn recent_messages_are_read_for_display() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "s", 40);
    let shown = tl.json(&["show", &id, "--last", "50"]);
    let shown = shown["entries"].as_array().unwrap();
    assert_eq!(shown.len(), 50);
    assert_eq!(shown[49]["seq"], 80);
}

#[test]
fn a_request_is_assembled_of_agent_context_checkpoint_and_messages() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "s", 20);
    tl.ok(&["context", "set", &id, "task", "Implement the OAuth flow"]);
    run_rough(&tl, &["compact", &id, "--policy", DAGENT]).ok();
    tl.ok(&["append", &id, "What is next?"]);
    let args = [
        "context",
        &id,
        "--policy",
        DAGENT,
        "--message",
        "Please go on",
    ];
    let request = run_rough_json(&tl, &args);
    assert!(
        section(&request, "context")["text"]
            .to_string()
            .contains("OAuth")
    );
    assert!(
        !section(&request, "checkpoint")["text"]
            .as_str()
            .unwrap()
            .is_empty()
    );
    assert!(
        section(&request, "recent")["text"]
            .to_string()
            .contains("What is next?")
    );
    assert!(
        section(&request, "message")["text"]
            .to_string()
            .contains("Please go on")
    );
    assert_eq!(request["budget"], 100_000);
}

#[test]
fn a_request_can_be_previewed_without_a_trace() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "s", 2);
    let before = session_info(&tl, &id);
    run_rough_json(&tl, &["context", &id, "--message", "what if?"]);
    assert_eq!(session_info(&tl, &id), before);
}

#[test]
fn compaction_happens_at_90_percent_of_100_000_tokens() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "s", 500);
    let asked =
        |said: &str| run_rough(&tl, &["-p", said, "--resume", "s", "--policy", DAGENT]).ok();
    asked("is there room?");
    assert_eq!(session_info(&tl, &id)["compactions"], 0);
    let lines: String = (0..150)
        .map(|n| {
            format!(
                "{}\n",
                json!({"role": "user", "content": format!("{n} ").repeat(300)})
            )
        })
        .collect();
    tl.run_with(&["append", &id, "--json"], lines.as_bytes())
        .ok();
    asked("and now?");
    assert_eq!(session_info(&tl, &id)["compactions"], 1);
    let request = run_rough_json(&tl, &["context", &id, "--policy", DAGENT]);
    assert!(request["tokens"].as_u64().unwrap() < 90_000);
}

#[test]
fn a_checkpoint_lists_what_is_done_in_progress_pending_blocked_and_decided() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "s", 10);
    for said in [
        "We decided to use JWT for session tokens.",
        "Done: reviewed the feature requirements.",
        "Blocked by: the missing credentials of the provider.",
        "TODO: add session management",
    ] {
        tl.ok(&["append", &id, said]);
    }
    tl.ok(&["append", &id, "Noted.", "--role", "assistant"]);
    run_rough(&tl, &["compact", &id, "--policy", DAGENT]).ok();
    let checkpoint = checkpoint(&tl, &id);
    let lists = checkpoint["summary"].to_string();
    assert!(
        checkpoint["summary"]["decisions"]
            .to_string()
            .contains("JWT"),
        "{lists}"
    );
    assert!(
        checkpoint["summary"]["completed"]
            .to_string()
            .contains("requirements"),
        "{lists}"
    );
    assert!(
        checkpoint["summary"]["blockers"]
            .to_string()
            .contains("credentials"),
        "{lists}"
    );
    assert!(lists.contains("session management"), "{lists}");
}

#[test]
fn a_checkpoint_tells_of_the_compaction() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "s", 10);
    run_rough(&tl, &["compact", &id, "--policy", DAGENT]).ok();
    let checkpoint = checkpoint(&tl, &id);
    assert_eq!(checkpoint["version"], 1);
    assert_eq!(checkpoint["compactionInfo"]["messagesCompacted"], 20);
    assert!(checkpoint["compactionInfo"]["oldestMessageTimestamp"].is_string());
    assert_eq!(checkpoint["stats"]["totalCompactions"], 1);
}

#[test]
fn the_old_checkpoint_is_merged_into_the_new_one() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "s", 10);
    tl.ok(&["append", &id, "We decided to use JWT for session tokens."]);
    run_rough(&tl, &["compact", &id, "--policy", DAGENT]).ok();
    let lines: String = (0..20)
        .map(|n| {
            format!(
                "{}\n",
                json!({"role": "user", "content": format!("More about {n}. ").repeat(30)})
            )
        })
        .collect();
    tl.run_with(&["append", &id, "--json"], lines.as_bytes())
        .ok();
    tl.ok(&["append", &id, "We decided on GitHub as the only provider."]);
    tl.ok(&["append", &id, "Noted.", "--role", "assistant"]);
    run_rough(&tl, &["compact", &id, "--policy", DAGENT]).ok();
    let checkpoint = checkpoint(&tl, &id);
    let decisions = checkpoint["summary"]["decisions"].to_string();
    assert!(
        decisions.contains("JWT") && decisions.contains("GitHub"),
        "{decisions}"
    );
    assert_eq!(checkpoint["version"], 2);
}

#[test]
fn compacted_messages_are_cleared_from_the_request_and_kept_in_the_log() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "s", 10);
    run_rough(&tl, &["compact", &id, "--policy", DAGENT]).ok();
    let request = run_rough_json(&tl, &["context", &id, "--policy", DAGENT]);
    assert_eq!(section(&request, "recent")["text"], "");
    assert_eq!(tl.texts(&id).len(), 20);
}

#[test]
fn compaction_can_be_forced_and_messages_cleared_from_the_chat() {
    let tl = Tl::new();
    append_exchanges(&tl, "s", 10);
    let screen = run_chat(
        &tl,
        &["--resume", "s", "--policy", DAGENT],
        &["/compact", "/clear", "/context"],
    );
    assert!(
        screen.contains("Summarized everything up to entry 20"),
        "{screen}"
    );
    assert!(screen.contains("Cleared"), "{screen}");
    assert_eq!(session_info(&tl, "s")["compactions"], 1);
}

#[test]
fn an_archived_session_can_be_viewed_and_is_no_longer_active() {
    let tl = Tl::new();
    append_exchanges(&tl, "s", 2);
    tl.ok(&["archive", "s"]);
    assert_eq!(session_info(&tl, "s")["status"], "archived");
    assert_eq!(tl.texts("s").len(), 4);
    assert_eq!(tl.json(&["sessions"])["sessions"], json!([]));
    let screen = tl.chat(&[]).screen();
    assert!(screen.starts_with("New session."), "{screen}");
}

#[test]
fn the_agents_description_is_part_of_every_request() {
    let tl = Tl::new();
    let agent = "---\nname: PM\ntools: Available tools are CreateTask and UpdateTask.\n---\n\
                 You are a Project Manager agent.\n";
    std::fs::write(tl.work().join("pm.md"), agent).unwrap();
    let provider = crate::provider::start_provider([]);
    let args = ["--agent", "pm.md", "--policy", DAGENT];
    let mut chat = tl
        .connected_terminal(&args, &provider, crate::provider::ANTHROPIC)
        .start_ready();
    chat.send_line("Create a task for auth");
    let system = provider.requests()[0].system();
    assert!(
        system.contains("You are a Project Manager agent."),
        "{system}"
    );
    assert!(system.contains("CreateTask and UpdateTask"), "{system}");
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work)
}

#[test]
fn compaction_tells_of_its_start_and_completion() {
    block_on(async {
        let tl = Throughline::open("memory:").await.unwrap();
        let key = Key::feature("pm", "my-feature").unwrap();
        let new = NewSession {
            key: Some(key),
            ..NewSession::default()
        };
        let (session, existed) = tl.get_or_create(new).await.unwrap();
        assert!(!existed);
        for n in 0..40 {
            let mut message =
                Message::text(Role::User, format!("We decided on step {n}. ").repeat(20));
            message.usage = Some(Usage::default());
            session.append(message).await.unwrap();
        }
        let told = std::sync::Mutex::new(Vec::new());
        let tell = |event: CompactionEvent| told.lock().unwrap().push(event.name());
        let policy = Policy::preset(DAGENT).unwrap();
        let compacted = session
            .compact(&CompactOptions {
                policy: &policy,
                window: 100_000,
                encoding: Encoding::Rough,
                fixed_tokens: 0,
                before: None,
                force: true,
                allow_larger: false,
                summarizer: None,
                on_event: Some(&tell),
            })
            .await
            .unwrap();
        assert!(
            matches!(compacted, CompactOutcome::Done(_)),
            "{compacted:?}"
        );
        assert_eq!(
            *told.lock().unwrap(),
            ["session:compaction-start", "session:compaction-complete"]
        );
    });
}
