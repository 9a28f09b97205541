//! Reads line-based formats, from the start or from where the last reading ended.
//!
//! Invariant: a line that is still being written is left for the next reading.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use throughline_model::{Json, MAX_JSON_DEPTH, is_nested_deeper_than};

use super::emitter::Emitter;
use super::{ReadError, SourceCursor, zstd_reader};
use crate::LineError;
use crate::line_reader::LineReader;
use crate::surrogate::replace_lone_surrogates;

/// The state of a line-based reader between two lines.
pub(super) trait LineFormat: Serialize + DeserializeOwned {
    /// Creates the state before the first line of a file.
    fn new(path: &Path) -> Self;

    /// Whether every line must be JSON; an invalid last line is then still being written.
    const IS_JSON: bool = true;

    /// Reads a line. The error describes what is wrong with it.
    fn read_line(
        &mut self,
        emitter: &mut Emitter<'_>,
        place: u64,
        line: &str,
    ) -> Result<(), String>;

    /// Emits the current session when reading continues.
    fn resume(&self, emitter: &mut Emitter<'_>);

    /// Called after the last line.
    fn finish(&mut self, emitter: &mut Emitter<'_>) {
        let _ = emitter;
    }
}

/// Reads the lines of a file.
pub(super) fn read<F: LineFormat>(
    emitter: &mut Emitter<'_>,
    from: Option<&SourceCursor>,
) -> Result<Option<SourceCursor>, ReadError> {
    let path = emitter.path;
    let failed = |error| ReadError::io(path, error);
    let file = File::open(path).map_err(failed)?;
    if path.extension().is_some_and(|extension| extension == "zst") {
        let decoder = zstd_reader::open_zstd(file)
            .map_err(failed)?
            .map_err(|error| ReadError::wrong_format(emitter.format, path, error))?;
        read_lines::<F, _>(emitter, decoder, 0, 0, &mut F::new(path))?;
        return Ok(None);
    }
    let mut file = file;
    let mut format = None;
    let (mut offset, mut line) = (0, 0);
    if let Some(bookmark) = from
        && let Ok(known) = bookmark.reader.decode::<F>()
    {
        file.seek(SeekFrom::Start(bookmark.offset))
            .map_err(failed)?;
        (offset, line) = (bookmark.offset, bookmark.line);
        known.resume(emitter);
        format = Some(known);
    }
    let mut format = format.unwrap_or_else(|| F::new(path));
    let (offset, line) = read_lines(emitter, file, offset, line, &mut format)?;
    let reader = Json::of(&format).map_err(|error| failed(error.into()))?;
    Ok(Some(SourceCursor {
        offset,
        line,
        reader,
    }))
}

/// Reads to the end; returns the total number of bytes and lines.
fn read_lines<F: LineFormat, R: Read>(
    emitter: &mut Emitter<'_>,
    input: R,
    offset: u64,
    line: u64,
    format: &mut F,
) -> Result<(u64, u64), ReadError> {
    let path = emitter.path;
    let mut lines = LineReader::new(BufReader::with_capacity(1 << 18, input));
    if !F::IS_JSON {
        lines.include_blank();
    }
    let mut whole = (offset, line);
    while let Some(next) = read_next(&mut lines, emitter, line, format) {
        let (number, wrong) = next.map_err(|error| ReadError::io(path, error))?;
        emitter.check_stopped()?;
        let unended = !lines.is_terminated();
        if let Err(wrong) = wrong {
            if unended && F::IS_JSON {
                emitter.emit_damaged(line + number, "the last line is not complete");
                break;
            }
            emitter.emit_damaged(line + number, wrong);
        }
        whole = (offset + lines.bytes_read(), line + number);
    }
    format.finish(emitter);
    emitter.check_stopped()?;
    Ok(whole)
}

/// A line's number, and what is wrong with it.
type LineResult = std::io::Result<(u64, Result<(), String>)>;

fn read_next<F: LineFormat, R: BufRead>(
    lines: &mut LineReader<R>,
    emitter: &mut Emitter<'_>,
    before: u64,
    format: &mut F,
) -> Option<LineResult> {
    let next = lines.next_with_position(|at, text| {
        let mended = replace_lone_surrogates(text);
        let text = mended.as_deref().unwrap_or(text);
        if F::IS_JSON && is_nested_deeper_than(text.as_bytes(), MAX_JSON_DEPTH) {
            return Err(LineError::TooDeep);
        }
        Ok::<_, LineError>(format.read_line(emitter, before + at.number, text))
    })?;
    Some(next.map(|(number, read)| {
        let wrong = match read {
            Ok(wrong) => wrong,
            Err(error) => Err(error.to_string()),
        };
        (number, wrong)
    }))
}
