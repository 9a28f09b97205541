//! Forks, merges and the fork tree.

use crate::assert_output;
use crate::harness::{Tl, regex_escape};

#[test]
fn a_fork_is_drawn_merged_and_outlives_its_origin() {
    let tl = Tl::new();
    let origin = tl.session("origin", &["one", "two"]);
    let fork = tl.json(&["fork", "origin", "--at", "2", "--name", "idea"]);
    let fork = fork["id"].as_str().unwrap();
    assert_eq!(tl.ok(&["append", fork, "three"]), "3\n");
    tl.ok(&["fork", "origin", "--at", "1", "--name", "other"]);
    assert_output!(
        tl,
        "fork_and_merge",
        tl.run(&["tree", "idea"]),
        tl.run(&["merge", "idea"]),
        tl.run(&["merge", "idea"]),
        tl.run(&["tree", "origin"]),
    );
    tl.ok(&["delete", &origin]);
    tl.ok(&["purge", "--older-than", "0s"]);
    assert_eq!(tl.texts(fork), ["one", "two", "three"]);
    assert!(tl.json(&["doctor"])["ok"].as_bool().unwrap());
}

#[test]
fn a_moved_origin_is_merged_only_as_asked() {
    let tl = Tl::new();
    let origin = tl.session("origin", &["one"]);
    for name in ["a", "b"] {
        tl.ok(&["fork", "origin", "--name", name]);
        tl.ok(&["append", name, &format!("from {name}")]);
    }
    tl.ok(&["append", "origin", "two"]);
    assert_output!(
        tl,
        "merge_moved",
        tl.run(&["merge", "a"]),
        tl.run(&["merge", "a", "--append"]),
        tl.run(&["merge", "b", "--summary", "it did not work"]),
        tl.run(&["merge", "origin"]),
        tl.run(&["show", "origin"]),
    );
    assert_eq!(tl.texts(&origin), ["one", "two", "from a"]);
}

#[test]
fn a_fork_at_a_tool_call_takes_the_result_along() {
    let tl = Tl::new();
    let id = tl.session("s", &["look"]);
    let lines = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read","input":{"path":"src/main.rs"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"fn main() {}"}]}
{"role":"assistant","content":"It is empty."}
"#;
    tl.run_with(&["append", &id, "--json"], lines.as_bytes())
        .ok();
    assert_output!(
        tl,
        "fork_at_tool_call",
        tl.run(&["fork", &id, "--at", "2", "--name", "f"]),
        tl.run(&["show", "f"]),
    );
}
