//! Formats of lines: read a line at a time, and on from where the last reading ended.
//!
//! Invariant: a line that is still being written is left for the next time.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use throughline_model::{Json, MAX_JSON_DEPTH, is_nested_deeper_than};

use super::telling::Telling;
use super::{Bookmark, ReadError, unpack};
use crate::LineError;
use crate::lines::Lines;
use crate::surrogate::repair;

/// What a format of lines knows between two lines.
pub(super) trait LineFormat: Serialize + DeserializeOwned {
    /// Before the first line of a file.
    fn before(path: &Path) -> Self;

    /// Whether every line must be JSON; a last one that is not is then still being written.
    const JSON: bool = true;

    /// Reads a line. What is wrong with it is the error.
    fn line(&mut self, telling: &mut Telling<'_>, place: u64, line: &str) -> Result<(), String>;

    /// Tells which session the next line belongs to, when the reading goes on.
    fn again(&self, telling: &mut Telling<'_>);

    /// After the last line, for now.
    fn end(&mut self, telling: &mut Telling<'_>) {
        let _ = telling;
    }
}

/// Reads the lines of a file.
pub(super) fn read<F: LineFormat>(
    telling: &mut Telling<'_>,
    from: Option<&Bookmark>,
) -> Result<Option<Bookmark>, ReadError> {
    let path = telling.path;
    let failed = |error| ReadError::io(path, error);
    let file = File::open(path).map_err(failed)?;
    if path.extension().is_some_and(|extension| extension == "zst") {
        let decoder = unpack::zstd(file)
            .map_err(failed)?
            .map_err(|error| ReadError::shape(telling.agent, path, error))?;
        all::<F, _>(telling, decoder, 0, 0, &mut F::before(path))?;
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
        known.again(telling);
        format = Some(known);
    }
    let mut format = format.unwrap_or_else(|| F::before(path));
    let (offset, line) = all(telling, file, offset, line, &mut format)?;
    let reader = Json::of(&format).map_err(|error| failed(error.into()))?;
    Ok(Some(Bookmark {
        offset,
        line,
        reader,
    }))
}

/// Reads to the end; tells how many bytes and lines there were, with those before.
fn all<F: LineFormat, R: Read>(
    telling: &mut Telling<'_>,
    input: R,
    offset: u64,
    line: u64,
    format: &mut F,
) -> Result<(u64, u64), ReadError> {
    let path = telling.path;
    let mut lines = Lines::new(BufReader::with_capacity(1 << 18, input));
    if !F::JSON {
        lines.keep_blank();
    }
    let mut whole = (offset, line);
    while let Some(next) = next(&mut lines, telling, line, format) {
        let (number, wrong) = next.map_err(|error| ReadError::io(path, error))?;
        telling.go_on()?;
        let unended = !lines.ended();
        if let Err(wrong) = wrong {
            if unended && F::JSON {
                telling.damaged(line + number, "the last line is not complete");
                break;
            }
            telling.damaged(line + number, wrong);
        }
        whole = (offset + lines.bytes(), line + number);
    }
    format.end(telling);
    telling.go_on()?;
    Ok(whole)
}

/// The next line's number, and what is wrong with it.
type Wrong = std::io::Result<(u64, Result<(), String>)>;

fn next<F: LineFormat, R: BufRead>(
    lines: &mut Lines<R>,
    telling: &mut Telling<'_>,
    before: u64,
    format: &mut F,
) -> Option<Wrong> {
    let next = lines.next_placed(|at, text| {
        let mended = repair(text);
        let text = mended.as_deref().unwrap_or(text);
        if F::JSON && is_nested_deeper_than(text.as_bytes(), MAX_JSON_DEPTH) {
            return Err(LineError::TooDeep);
        }
        Ok::<_, LineError>(format.line(telling, before + at.number, text))
    })?;
    Some(next.map(|(number, read)| {
        let wrong = match read {
            Ok(wrong) => wrong,
            Err(error) => Err(error.to_string()),
        };
        (number, wrong)
    }))
}
