//! Parses what `tl` had acknowledged at some moment from its writes to stdout and sockets.

use std::collections::BTreeSet;

use serde_json::Value;

/// An entry whose append was acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct AppendedEntry {
    pub(crate) session: String,
    pub(crate) seq: u64,
    pub(crate) external_id: String,
    pub(crate) digest: String,
}

/// Everything acknowledged before a power cut.
#[derive(Debug, Default)]
pub(crate) struct Acknowledgements {
    pub(crate) created: BTreeSet<String>,
    pub(crate) appended: Vec<AppendedEntry>,
    /// Session and number.
    pub(crate) erased: BTreeSet<(String, u64)>,
    pub(crate) deleted: BTreeSet<String>,
    pub(crate) purged: BTreeSet<String>,
    /// The numbers of checkpoints; the output does not name their session.
    pub(crate) checkpoints: BTreeSet<u64>,
    /// Whether an import has reported that all its lines are stored.
    pub(crate) imported: bool,
}

impl Acknowledgements {
    /// Parses the outputs; the last value of each may be incomplete.
    pub(crate) fn parse(outputs: &[Vec<u8>]) -> Self {
        let mut all = Self::default();
        for output in outputs {
            if output.starts_with(b"HTTP/") {
                for body in http_bodies(output) {
                    all.add(&body);
                }
            } else {
                let values = serde_json::Deserializer::from_slice(output).into_iter::<Value>();
                for value in values.map_while(Result::ok) {
                    all.add(&value);
                }
            }
        }
        all
    }

    fn add(&mut self, value: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().map(text).collect()
        };
        let entry = |session: &Value, entry: &Value| AppendedEntry {
            session: text(session),
            seq: entry["seq"].as_u64().unwrap_or_default(),
            external_id: text(&entry["external_id"]),
            digest: text(&entry["digest"]),
        };
        if value["covers"].is_u64() && value["how"].is_string() {
            self.checkpoints.extend(value["seq"].as_u64());
        } else if let Some(entries) = value["entries"].as_array() {
            let entries = entries.iter().map(|one| entry(&value["session"], one));
            self.appended.extend(entries);
        } else if value["seq"].is_u64() {
            self.appended.push(entry(&value["session"], value));
        } else if let Some(erased) = value["erased"].as_array() {
            let session = text(&value["id"]);
            let seqs = erased.iter().filter_map(Value::as_u64);
            self.erased.extend(seqs.map(|seq| (session.clone(), seq)));
        } else if value["removed"].is_array() {
            self.purged.extend(texts(&value["removed"]));
        } else if value["sessions"].is_array() {
            self.deleted.extend(texts(&value["sessions"]));
        } else if value["known"].is_u64() {
            self.imported |= value["ok"] == true;
        } else if value["id"].is_string() {
            self.created.insert(text(&value["id"]));
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.created.len()
            + self.appended.len()
            + self.erased.len()
            + self.deleted.len()
            + self.purged.len()
            + self.checkpoints.len()
            + usize::from(self.imported)
    }
}

/// The bodies of the complete successful responses on one connection.
fn http_bodies(mut stream: &[u8]) -> Vec<Value> {
    let mut bodies = Vec::new();
    while let Some(end) = stream.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&stream[..end]).to_lowercase();
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        let length = fields.find_map(|(name, value)| match name {
            "content-length" => value.parse::<usize>().ok(),
            _ => None,
        });
        let body = end + 4..end + 4 + length.unwrap_or(0);
        let Some(content) = stream.get(body.clone()) else {
            break;
        };
        let is_success = head.starts_with("http/1.1 20");
        if let (true, Ok(value)) = (is_success, serde_json::from_slice(content)) {
            bodies.push(value);
        }
        stream = &stream[body.end..];
    }
    bodies
}
