//! Fuzz target for the item decoder.
//!
//! Checks that any item is either refused or stored, and that a stored item is returned as it was
//! sent.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value};
use throughline::{Block, Content, Digest, EntryId, Json, Message, Role};
use throughline_fuzz::{Case, Input, Target, fuzz, mutate};

use super::content_part::Blobs;
use super::entry_items::items_of_message;
use super::new_item::parse_item;

/// Items of every type, with every field.
const ITEMS: &[&str] = &[
    r#"{"role":"user","content":"hello"}"#,
    r#"{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"high"},{"type":"input_image","file_id":"f1"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="}]}"#,
    r#"{"type":"message","role":"assistant","status":"incomplete","phase":"final_answer","content":[{"type":"output_text","text":"hi","annotations":[{"type":"url_citation","url":"https://a","start_index":0,"end_index":2}],"logprobs":[]},{"type":"refusal","refusal":"no"}]}"#,
    r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"be brief"}],"metadata":{"a":1}}"#,
    r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{\"path\": \"a\", \"n\": 1.10}","status":"completed","namespace":"files"}"#,
    r#"{"type":"function_call_output","call_id":"c1","output":"out"}"#,
    r#"{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"out"},{"type":"input_image","image_url":"https://a/b.png"}],"status":"incomplete"}"#,
    r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}],"content":[{"type":"reasoning_text","text":"raw"}],"encrypted_content":"gAAA"}"#,
    r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}"#,
    r#"{"type":"local_shell_call_output","call_id":"c2","output":"1e400","z":1e400}"#,
    r#"{"type":"foreign","data":{"type":"message"}}"#,
    r#"{"type":"item_reference","id":"msg_1"}"#,
];

/// Returns the item of a message, if the message converts to exactly one.
fn single_item(message: &Message, blobs: &Blobs) -> Option<Json> {
    let mut items = items_of_message(message, &EntryId::from_bytes([7; 16]), blobs);
    assert!(items.len() <= 1, "one item comes back as {}", items.len());
    items.pop().map(|item| item.json)
}

fn check(input: &Input) {
    let Ok(text) = std::str::from_utf8(&input.bytes) else {
        return;
    };
    let Ok(raw) = Json::parse(text) else {
        return;
    };
    let Ok(understood) = parse_item(&raw, "input[0]") else {
        return;
    };
    let message = understood.message();
    let files = understood.files().iter();
    let blobs: HashMap<_, _> = files
        .map(|bytes| (Digest::of(bytes), bytes.clone()))
        .collect();
    for attachment in message.content.attachments() {
        assert!(blobs.contains_key(&attachment.blob), "a file is missing");
    }
    // The stored message is read back unchanged.
    let stored = serde_json::to_string(message).expect("it can be stored");
    let read: Message = serde_json::from_str(&stored).expect("it can be read");
    assert_eq!(&read, message);
    let Some(back) = single_item(message, &blobs) else {
        panic!("{text} does not come back");
    };
    assert_members_preserved(&raw, &back);
    // The returned item, sent again, gives the same result.
    let again = parse_item(&back, "input[0]").expect("what came back can be given");
    let back_again = single_item(again.message(), &blobs).expect("it comes back again");
    assert_eq!(back_again.as_str(), back.as_str());
}

/// Asserts that every field of an item is returned with its value. Null equals absent, text is
/// shorthand for a part, and ids are chosen by the server.
fn assert_members_preserved(raw: &Json, back: &Json) {
    let decode = |json: &Json| json.decode::<Map<String, Value>>().ok();
    let (Some(given), Some(back)) = (decode(raw), decode(back)) else {
        return;
    };
    for (name, value) in &given {
        let is_short = name == "content" && value.is_string();
        if name == "id" || value.is_null() || is_short {
            continue;
        }
        let shown = back.get(name).unwrap_or(&Value::Null);
        assert!(contains(shown, value), "{name} was {value} and is {shown}");
    }
}

/// Whether a value contains everything another one has.
fn contains(shown: &Value, given: &Value) -> bool {
    match (shown, given) {
        (Value::Object(shown), Value::Object(given)) => given.iter().all(|(name, value)| {
            value.is_null() || contains(shown.get(name).unwrap_or(&Value::Null), value)
        }),
        (Value::Array(shown), Value::Array(given)) => {
            let mut pairs = shown.iter().zip(given);
            shown.len() == given.len() && pairs.all(|(shown, given)| contains(shown, given))
        }
        (shown, given) => shown == given,
    }
}

#[test]
fn items() {
    let case = Case {
        name: "item".to_owned(),
        seeds: ITEMS.iter().map(|item| item.as_bytes().to_vec()).collect(),
        mutation: mutate::json_document,
    };
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz_corpus");
    let target = Target::new("items", &corpus, vec![case]);
    fuzz!(target, check);
}

#[test]
fn an_id_that_is_not_a_string_is_refused() {
    for kind in ["message", "hologram"] {
        let item = format!(r#"{{"type":"{kind}","role":"user","content":"x","id":4}}"#);
        let refused = parse_item(&Json::parse(item).unwrap(), "input[0]").unwrap_err();
        assert!(
            format!("{refused:?}").contains("input[0].id"),
            "{refused:?}"
        );
    }
}

/// Importers store items that no caller could send.
#[test]
fn a_stored_item_is_always_returned_with_an_id() {
    for item in [
        r#"{"type":"hologram","id":4,"z":1e400}"#,
        r#"{"type":"hologram","id":null,"z":1e400}"#,
        r#"{"type":"hologram","id":"a","id":[],"z":1e400}"#,
        r#"{"type":"hologram","z":1e400}"#,
        r#"["a","b",{"z":1e400}]"#,
        r#"{"z":1e400}"#,
    ] {
        let block = Block::from_foreign(Json::parse(item).unwrap());
        let message = Message::new(Role::Assistant, Content(vec![block]));
        let back = single_item(&message, &HashMap::new()).expect("it comes back");
        assert!(back.as_str().contains(r#""z":1e400"#), "{back}");
        assert_eq!(back.as_str().matches(r#""id":"item_"#).count(), 1, "{back}");
        assert_eq!(back.as_str().matches(r#""id""#).count(), 1, "{back}");
    }
}

#[test]
fn a_file_is_returned_as_the_kind_of_part_it_was_sent_as() {
    for part in [
        r#"{"type":"input_file","filename":"a.png","file_data":"data:image/png;base64,iVBORw0KGgo="}"#,
        r#"{"type":"input_file","file_data":"data:image/png;base64,iVBORw0KGgo=","detail":"auto"}"#,
        r#"{"type":"input_file","file_data":"data:image/png;base64,iVBORw0KGgo=","image_url":"data:image/png;base64,AA=="}"#,
        r#"{"type":"input_image","image_url":"data:application/pdf;base64,JVBERg==","detail":"high"}"#,
        r#"{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","file_data":"data:a/b;base64,AA=="}"#,
    ] {
        let bytes = format!(r#"{{"role":"user","content":[{part}]}}"#).into_bytes();
        check(&Input { case: 0, bytes });
    }
}
