//! Mutations of one JSON value.

use serde_json::Value;

use crate::Choices;

/// A placeholder for a text that [`Value`] cannot hold, until the value is serialized.
const PLACEHOLDER: &str = "@@hole@@";

/// Values that decoders often get wrong, as JSON text.
const EDGE_CASES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1",
    "-0",
    "0.5",
    "1e308",
    "-1e308",
    "1e999",
    "1E-999",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "9007199254740993",
    "253402300799",
    "253402300800",
    "-62135596801",
    "253402300800000",
    "9223372036854775807",
    "\"\"",
    "\" \"",
    r#""\u0000""#,
    r#""\ud800""#,
    r#""\udc00 half""#,
    r#""\ud83d\ude00""#,
    r#""a\nb""#,
    r#""\r\n""#,
    r#""../../x""#,
    "\"9999-12-31T23:59:59.999999999Z\"",
    "\"2026-02-30T00:00:00Z\"",
    "\"-009999-01-01T00:00:00Z\"",
    "\"0001-01-01T00:00:00+23:59\"",
    "\"user\"",
    "\"assistant\"",
    "\"system\"",
    "\"tool\"",
    "\"data:image/png;base64,iVBORw0KGgo=\"",
    "\"data:;base64,====\"",
    "\"data:image/png;base64,\"",
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    "[null]",
    "[\"\"]",
    "[\"text\"]",
    "\"text\"",
    "\"thinking\"",
    "\"tool_call\"",
    "\"tool_result\"",
    "\"attachment\"",
    r#"{"type":"text"}"#,
    r#"{"type":"text","text":7}"#,
    r#"[{"type":"text","text":"x"}]"#,
    r#"{"type":"foreign","data":{}}"#,
    r#"{"type":"openai_item","members":{"role":7}}"#,
    r#"{"a":1,"a":2}"#,
    r#"{"":{}}"#,
    "\"<!-- SESSION_SUMMARY_END -->\"",
    "\"## Query 1\"",
];

/// Changes one value within `document`, perhaps to one from `other`. Returns invalid JSON
/// unchanged.
pub(crate) fn mutate(document: &[u8], other: &[u8], by: &mut Choices<'_>) -> Option<Vec<u8>> {
    let Ok(mut value) = serde_json::from_slice::<Value>(document) else {
        return Some(document.to_vec());
    };
    let pointers = list_pointers(&value);
    let pointer = by.pick(&pointers)?.clone();
    let mut hole = None;
    match by.below(8)? {
        0 | 1 => hole = Some(pick_edge_case(by)?),
        2 => {
            // Ids that refer to each other, in a cycle or twice.
            let from = by.pick(&pointers)?.clone();
            replace(&mut value, &pointer, |_, all| all.pointer(&from).cloned());
        }
        3 => remove(&mut value, &pointer),
        4 => {
            let name = by
                .pick(&pointers)?
                .rsplit('/')
                .next()
                .unwrap_or("x")
                .to_owned();
            rename(&mut value, &pointer, name);
        }
        5 => {
            let times = *by.pick(&[1, 2, 60])?;
            replace(&mut value, &pointer, |old, _| {
                Some(match old {
                    Value::Array(list) if times > 1 => {
                        let many = std::iter::repeat_n(list.iter(), times).flatten();
                        many.take(4096).cloned().collect()
                    }
                    Value::String(text) if times > 1 => Value::String(text.repeat(times)),
                    old => Value::Array(vec![old.clone(); times]),
                })
            });
        }
        6 => {
            let theirs = serde_json::from_slice::<Value>(other).unwrap_or_default();
            let from = by.pick(&self::list_pointers(&theirs))?.clone();
            replace(&mut value, &pointer, |_, _| theirs.pointer(&from).cloned());
        }
        _ => {
            // JSON within a string, as in tool calls.
            let cut = by.below(64)?;
            replace(&mut value, &pointer, |old, _| {
                Some(match old {
                    Value::String(text) => {
                        let end = text
                            .char_indices()
                            .nth(cut)
                            .map_or(text.len(), |(at, _)| at);
                        Value::String(text[..end].to_owned())
                    }
                    old => Value::String(old.to_string()),
                })
            });
        }
    }
    if hole.is_some() {
        replace(&mut value, &pointer, |_, _| Some(Value::from(PLACEHOLDER)));
    }
    let mut text = value.to_string();
    if let Some(hole) = hole {
        text = text.replacen(&format!("\"{PLACEHOLDER}\""), &hole, 1);
    }
    Some(text.into_bytes())
}

/// Picks JSON that decoders often get wrong: a value of another type, too large, or too deep.
fn pick_edge_case(by: &mut Choices<'_>) -> Option<String> {
    let depths = [20, 127, 128, 129, 10_000];
    Some(match by.below(EDGE_CASES.len() + 4)? {
        0 => {
            let depth = *by.pick(&depths)?;
            "[".repeat(depth) + &"]".repeat(depth)
        }
        1 => {
            let depth = *by.pick(&depths)?;
            r#"{"content":"#.repeat(depth) + "\"x\"" + &"}".repeat(depth)
        }
        2 => {
            let open = r#"[{"type":"tool_result","call_id":"c","content":"#;
            let depth = *by.pick(&[3, 15, 16, 17, 60, 400])?;
            open.repeat(depth) + "\"x\"" + &"}]".repeat(depth)
        }
        3 => format!(
            "\"{}\"",
            by.pick(&["a", "é", r"\u0001", r"\\"])?.repeat(40_000)
        ),
        at => EDGE_CASES[at - 4].to_owned(),
    })
}

/// Returns JSON pointers to the value and everything in it.
fn list_pointers(value: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, pointers: &mut Vec<String>) {
        if pointers.len() > 2_000 {
            return;
        }
        pointers.push(at.to_owned());
        match value {
            Value::Array(list) => {
                for (index, inner) in list.iter().enumerate() {
                    walk(inner, &format!("{at}/{index}"), pointers);
                }
            }
            Value::Object(members) => {
                for (name, inner) in members {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    walk(inner, &format!("{at}/{name}"), pointers);
                }
            }
            _ => {}
        }
    }
    let mut pointers = Vec::new();
    walk(value, "", &mut pointers);
    pointers
}

fn replace(all: &mut Value, pointer: &str, new: impl FnOnce(&Value, &Value) -> Option<Value>) {
    let new = all.pointer(pointer).and_then(|old| new(old, all));
    if let (Some(old), Some(new)) = (all.pointer_mut(pointer), new) {
        *old = new;
    }
}

/// Returns the parent of the value at `place`, and its key there.
fn parent_mut<'v>(all: &'v mut Value, pointer: &str) -> Option<(&'v mut Value, String)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    let name = name.replace("~1", "/").replace("~0", "~");
    Some((all.pointer_mut(parent)?, name))
}

fn remove(all: &mut Value, pointer: &str) {
    match parent_mut(all, pointer) {
        Some((Value::Object(members), name)) => {
            members.remove(&name);
        }
        Some((Value::Array(list), name)) => {
            if let Some(index) = name.parse().ok().filter(|index| *index < list.len()) {
                list.remove(index);
            }
        }
        _ => {}
    }
}

fn rename(all: &mut Value, pointer: &str, new: String) {
    if let Some((Value::Object(members), name)) = parent_mut(all, pointer)
        && let Some(value) = members.remove(&name)
    {
        members.insert(new, value);
    }
}
