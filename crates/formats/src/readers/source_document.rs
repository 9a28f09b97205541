//! Documents that are read whole, since those who write them rewrite them whole.

use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::ReadError;
use super::emitter::Emitter;
use crate::surrogate::replace_lone_surrogates;

/// The text of the source, or nothing where there is none yet.
///
/// What is no text in it is replaced, and told.
pub(super) fn read_source_text(telling: &mut Emitter<'_>) -> Result<Option<String>, ReadError> {
    let path = telling.path;
    let bytes = std::fs::read(path).map_err(|error| ReadError::io(path, error))?;
    let text = repair_text(telling, path, bytes);
    if text.trim().is_empty() {
        telling.emit_skipped(0, "empty file");
        return Ok(None);
    }
    Ok(Some(text))
}

/// What a text of the source says.
pub(super) fn parse<'a, T: Deserialize<'a>>(
    telling: &Emitter<'_>,
    text: &'a str,
) -> Result<T, ReadError> {
    serde_json::from_str(text)
        .map_err(|error| ReadError::wrong_format(telling.format, telling.path, error))
}

/// The text of a file beside the source, where there is one.
pub(super) fn read_sibling_text(telling: &mut Emitter<'_>, path: &Path) -> Option<String> {
    match std::fs::read(path) {
        Ok(bytes) => Some(repair_text(telling, path, bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            telling.emit_damaged(0, format!("{}: {error}", file_name(path)));
            None
        }
    }
}

/// What a document beside the source says; one that is missing or broken says nothing.
pub(super) fn read_sibling_json<T: Default + DeserializeOwned>(
    telling: &mut Emitter<'_>,
    path: &Path,
) -> T {
    let Some(text) = read_sibling_text(telling, path) else {
        return T::default();
    };
    serde_json::from_str(&text).unwrap_or_else(|error| {
        telling.emit_damaged(0, format!("{}: {error}", file_name(path)));
        T::default()
    })
}

/// Text without a byte-order mark, without bytes that are no text, and without half
/// characters.
fn repair_text(telling: &mut Emitter<'_>, path: &Path, bytes: Vec<u8>) -> String {
    let mut text = String::from_utf8(bytes).unwrap_or_else(|error| {
        let byte = error.utf8_error().valid_up_to() + 1;
        let name = file_name(path);
        telling.emit_damaged(
            0,
            format!("{name}: byte {byte} is no text, and is replaced"),
        );
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    if let Some(mended) = replace_lone_surrogates(&text) {
        text = mended;
    }
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
