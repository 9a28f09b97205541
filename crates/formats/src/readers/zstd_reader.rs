//! Decompresses zstd files while they are read.
//!
//! Invariant: a small file cannot expand without bound; one that exceeds a multiple of its
//! size is rejected.

use std::fs::File;
use std::io::{self, BufReader, Read};

use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::FrameDecoderError;

/// Maximum ratio of decompressed to compressed size. Sessions compress to a fifth, and very
/// repetitive ones to a hundredth.
const MAX_RATIO: u64 = 1_000;

/// Decompressed size that is always allowed.
const MIN_LIMIT: u64 = 64 << 20;

/// Opens a compressed file.
pub(super) fn open_zstd(file: File) -> io::Result<Result<impl Read, FrameDecoderError>> {
    let size = file.metadata()?.len();
    let limit = size.saturating_mul(MAX_RATIO).max(MIN_LIMIT);
    let decoder = StreamingDecoder::new(BufReader::new(file));
    Ok(decoder.map(|decoder| LimitedReader {
        // One byte more, to distinguish the end from the limit.
        inner: decoder.take(limit + 1),
        size,
    }))
}

/// A reader that fails at its limit instead of ending.
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
