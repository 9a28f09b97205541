//! Compressed files, decompressed as they are read.
//!
//! Invariant: a small file cannot make a reader go on without end. One that expands out of
//! proportion to its size is refused.

use std::fs::File;
use std::io::{self, BufReader, Read};

use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::FrameDecoderError;

/// How often its own size a file may expand to. What agents write shrinks to a fifth, and to a
/// hundredth where it repeats itself.
const MAX_RATIO: u64 = 1_000;

/// What every file may expand to, however small it is.
const MIN_LIMIT: u64 = 64 << 20;

/// Decompresses a file.
pub(super) fn open_zstd(file: File) -> io::Result<Result<impl Read, FrameDecoderError>> {
    let size = file.metadata()?.len();
    let limit = size.saturating_mul(MAX_RATIO).max(MIN_LIMIT);
    let decoder = StreamingDecoder::new(BufReader::new(file));
    Ok(decoder.map(|decoder| LimitedReader {
        // One more, to tell the end from the limit.
        inner: decoder.take(limit + 1),
        size,
    }))
}

/// A reader that fails at its limit, where others would end.
struct LimitedReader<R> {
    inner: io::Take<R>,
    size: u64,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if self.inner.limit() == 0 {
            let why = format!(
                "it has {} bytes and expands to more than {MAX_RATIO} times as many: decompress it by \
                 hand if that is right",
                self.size
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(read)
    }
}
