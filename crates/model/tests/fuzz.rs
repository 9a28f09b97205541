//! Fuzz target: the entry decoder.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use throughline_fuzz::{Case, Input, Target, fuzz, mutate};
use throughline_model::{
    Body, Digest, Entry, EntryId, GENESIS, Seq, StoredEntry, Timestamp, encode_payload,
};

/// Payloads of every kind that has members, with every type of block.
const PAYLOADS: &[&str] = &[
    r#"{"kind":"message","role":"user","content":"hello","author":"ada","external_id":"x1"}"#,
    r#"{"kind":"message","role":"assistant","content":[{"type":"thinking","text":"hm","signature":"s"},{"type":"text","text":"hi"},{"type":"tool_call","id":"c1","name":"read","input":{"path":"a","n":1.10}},{"type":"hologram","z":[1e400]}],"model":"m","provider":"p","usage":{"input":3,"output":4,"cache_read":1},"latency_ms":12,"incomplete":true}"#,
    r#"{"kind":"message","role":"tool","content":[{"type":"tool_result","call_id":"c1","content":[{"type":"text","text":"out"}],"is_error":true}],"rebased":7}"#,
    r#"{"kind":"checkpoint","covers":4,"by":"extractive","messages":3,"oldest":"2026-01-02T10:00:00Z","summary":{"background":"b","topics":["t"],"decisions":["d"]}}"#,
    r#"{"kind":"checkpoint_retracted","checkpoint":4}"#,
    r#"{"kind":"restored","from":"s0","prompt":"p","acknowledgement":"a"}"#,
    r#"{"kind":"pinned","text":"always"}"#,
    r#"{"kind":"unpinned","pin":3}"#,
    r#"{"kind":"decided","text":"SQLite"}"#,
    r#"{"kind":"renamed","name":"auth","by":"person"}"#,
    r#"{"kind":"tagged","tags":["a","b"]}"#,
    r#"{"kind":"moved","workspace":"/work/app"}"#,
    r#"{"kind":"context_set","document":"notes","content":{"a":1}}"#,
    r#"{"kind":"cleared"}"#,
    r#"{"kind":"rewound","to":2}"#,
    r#"{"kind":"merged","from":"s2","through":2,"how":"summarized","entries":2,"summary":"s"}"#,
    r#"{"kind":"remembered","text":"make test","by":"person","files":["src"],"supersedes":[2]}"#,
    r#"{"kind":"used","facts":[1,2],"session":"s1"}"#,
    r#"{"kind":"forked","session":"s1","at":3}"#,
    r#"{"kind":"agent_set","name":"codex","path":"/a"}"#,
    r#"{"kind":"forgotten","fact":3}"#,
    r#"{"kind":"foreign","from":"codex","data":{"a":[1,2]}}"#,
    r#"{"kind":"erased","of":"message","payload":"0000000000000000000000000000000000000000000000000000000000000000","role":"user"}"#,
    r#"{"kind":"lost"}"#,
    r#"{"kind":"hologram","v":2,"z":1}"#,
];

fn stored_entry(payload: String) -> StoredEntry {
    let hash = Digest::of(payload.as_bytes());
    let id = EntryId::from_bytes([7; 16]);
    StoredEntry::from_payload(&GENESIS, Seq(1), id, Timestamp::UNIX_EPOCH, payload, &hash)
}

fn encode_entry(entry: &Entry) -> String {
    encode_payload(
        &entry.body,
        entry.author.as_deref(),
        entry.external_id.as_deref(),
        entry.rebased,
    )
    .expect("what was decoded can be encoded")
}

fn check_payload(input: &Input) {
    let Ok(payload) = String::from_utf8(input.bytes.clone()) else {
        return;
    };
    let stored = stored_entry(payload);
    let decoded = stored.decode();
    // Any entry can be erased, and its link in the digest chain stays valid.
    let erased = stored.to_tombstone(Some("a test")).unwrap();
    if !stored.payload.starts_with(r#"{"kind":"erased""#) {
        stored.verify(&GENESIS).unwrap();
        erased.verify(&GENESIS).unwrap();
    }
    assert!(matches!(erased.decode().unwrap().body, Body::Erased(_)));
    let _ = stored.to_redacted();
    let Ok(entry) = decoded else {
        return;
    };
    let payload = encode_entry(&entry);
    let again = self::stored_entry(payload.clone())
        .decode()
        .expect("what was encoded can be decoded");
    let (body, author) = (&entry.body, &entry.author);
    assert_eq!((&again.body, &again.author), (body, author));
    assert_eq!(
        (&again.external_id, again.rebased),
        (&entry.external_id, entry.rebased)
    );
    assert_eq!(
        encode_entry(&again),
        payload,
        "what is stored changes by reading it"
    );
    let shown = serde_json::to_string(&entry).expect("it can be shown");
    serde_json::from_str::<serde_json::Value>(&shown).map_or_else(
        // Numbers out of range and deep nesting are preserved as text only.
        |error| assert!(error.is_syntax() || error.is_data(), "{error}"),
        |shown| assert!(shown.is_object()),
    );
    let _ = entry.into_redacted();
}

#[test]
fn entry() {
    let case = Case {
        name: "payload".to_owned(),
        seeds: PAYLOADS
            .iter()
            .map(|payload| payload.as_bytes().to_vec())
            .collect(),
        mutation: mutate::json_document,
    };
    for payload in PAYLOADS {
        stored_entry((*payload).to_owned())
            .decode()
            .unwrap_or_else(|error| panic!("{payload}: {error:?}"));
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz_corpus");
    fuzz!(Target::new("entry", &corpus, vec![case]), check_payload);
}
