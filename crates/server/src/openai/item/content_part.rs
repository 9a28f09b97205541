//! Converts between content parts of items and the blocks they are stored as.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use throughline::{Attachment, Block, Content, Digest, Json, Throughline};

use crate::openai::OpenAiError;

/// Attachment bytes by digest.
pub(super) type Blobs = HashMap<Digest, Vec<u8>>;

/// Loads the bytes of all attachments in a content.
pub(super) async fn load_blobs(tl: &Throughline, content: &Content) -> Result<Blobs, OpenAiError> {
    let mut blobs = Blobs::new();
    for attachment in content.attachments() {
        if let Entry::Vacant(vacant) = blobs.entry(attachment.blob) {
            vacant.insert(tl.blob(&attachment.blob).await?);
        }
    }
    Ok(blobs)
}

/// Converts a part to a block. File bytes are collected in `files`, to be stored once the whole
/// request has been validated.
pub(super) fn part_to_block(part: &Value, files: &mut Vec<Vec<u8>>) -> Option<Block> {
    let text = |name: &str| part.get(name).and_then(Value::as_str);
    let known = match part.get("type").and_then(Value::as_str)? {
        "input_text" | "output_text" | "text" => Some(Block::Text(text("text")?.to_owned())),
        "input_image" => text("image_url").and_then(|url| inline_attachment(url, None, files)),
        "input_file" => {
            text("file_data").and_then(|url| inline_attachment(url, text("filename"), files))
        }
        _ => None,
    };
    known.or_else(|| {
        let wrapped = json!({"type": "openai_part", "part": part});
        Json::of(&wrapped).ok().map(Block::Foreign)
    })
}

/// Converts a data URL to an attachment, if encoding it again gives the same URL.
fn inline_attachment(url: &str, name: Option<&str>, files: &mut Vec<Vec<u8>>) -> Option<Block> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let bytes = STANDARD.decode(data).ok()?;
    let plain = !media_type.is_empty() && !media_type.contains(|c: char| c.is_ascii_control());
    let attachment = Attachment {
        blob: Digest::of(&bytes),
        media_type: media_type.to_owned(),
        bytes: bytes.len() as u64,
        name: name.map(ToOwned::to_owned),
    };
    let same = plain && data_url(&attachment, &bytes) == url;
    same.then(|| {
        files.push(bytes);
        Block::Attachment(attachment)
    })
}

fn data_url(attachment: &Attachment, bytes: &[u8]) -> String {
    format!(
        "data:{};base64,{}",
        attachment.media_type,
        STANDARD.encode(bytes)
    )
}

/// Converts a block to a part, if it belongs to a message.
pub(super) fn block_to_part(block: &Block, is_answer: bool, blobs: &Blobs) -> Option<Value> {
    Some(match block {
        Block::Text(text) if is_answer => {
            json!({"type": "output_text", "text": text, "annotations": []})
        }
        Block::Text(text) => json!({"type": "input_text", "text": text}),
        Block::Attachment(attachment) => {
            let bytes = blobs.get(&attachment.blob).map_or(&[][..], Vec::as_slice);
            let url = data_url(attachment, bytes);
            if attachment.media_type.starts_with("image/") {
                json!({"type": "input_image", "image_url": url, "detail": "auto"})
            } else {
                let mut part = json!({"type": "input_file", "file_data": url});
                if let Some(name) = &attachment.name {
                    part["filename"] = json!(name);
                }
                part
            }
        }
        Block::Foreign(raw) => foreign_part(raw)?,
        _ => return None,
    })
}

/// The part stored in a foreign block, if it holds one.
fn foreign_part(raw: &Json) -> Option<Value> {
    if !raw.as_str().starts_with(r#"{"type":"openai_part""#) {
        return None;
    }
    raw.decode::<Value>().ok()?.get_mut("part").map(Value::take)
}
