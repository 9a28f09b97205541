//! Reads documents as a whole, for systems that rewrite their files.

use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::ReadError;
use super::emitter::Emitter;
use crate::surrogate::replace_lone_surrogates;

/// Reads the text of the source; `None` if it is empty.
///
/// Invalid UTF-8 is replaced and reported.
pub(super) fn read_source_text(emitter: &mut Emitter<'_>) -> Result<Option<String>, ReadError> {
    let path = emitter.path;
    let bytes = std::fs::read(path).map_err(|error| ReadError::io(path, error))?;
    let text = repair_text(emitter, path, bytes);
    if text.trim().is_empty() {
        emitter.emit_skipped(0, "empty file");
        return Ok(None);
    }
    Ok(Some(text))
}

/// Parses a text of the source as JSON.
pub(super) fn parse<'a, T: Deserialize<'a>>(
    emitter: &Emitter<'_>,
    text: &'a str,
) -> Result<T, ReadError> {
    serde_json::from_str(text)
        .map_err(|error| ReadError::wrong_format(emitter.format, emitter.path, error))
}

/// Reads a file beside the source, if it exists.
pub(super) fn read_sibling_text(emitter: &mut Emitter<'_>, path: &Path) -> Option<String> {
    match std::fs::read(path) {
        Ok(bytes) => Some(repair_text(emitter, path, bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            emitter.emit_damaged(0, format!("{}: {error}", file_name(path)));
            None
        }
    }
}

/// Reads a document beside the source; the default value if it is missing or invalid.
pub(super) fn read_sibling_json<T: Default + DeserializeOwned>(
    emitter: &mut Emitter<'_>,
    path: &Path,
) -> T {
    let Some(text) = read_sibling_text(emitter, path) else {
        return T::default();
    };
    serde_json::from_str(&text).unwrap_or_else(|error| {
        emitter.emit_damaged(0, format!("{}: {error}", file_name(path)));
        T::default()
    })
}

/// Removes a byte-order mark, and replaces invalid UTF-8 and lone surrogates.
fn repair_text(emitter: &mut Emitter<'_>, path: &Path, bytes: Vec<u8>) -> String {
    let mut text = String::from_utf8(bytes).unwrap_or_else(|error| {
        let byte = error.utf8_error().valid_up_to() + 1;
        let name = file_name(path);
        emitter.emit_damaged(
            0,
            format!("{name}: byte {byte} is not valid UTF-8 and was replaced"),
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
