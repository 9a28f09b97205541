//! The write-ahead log beside the file: which of its pages count.
//!
//! A frame counts if it and all before it are of this generation and add up, and a
//! commit follows: exactly the frames that the database itself would recover.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use super::format::big_u32;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const VERSION: u32 = 3_007_000;
/// The last bit says in which order the bytes of a sum are taken.
const MAGIC: u32 = 0x377f_0682;

/// The pages of a write-ahead log that count.
#[derive(Debug)]
pub(super) struct Wal {
    file: File,
    /// How large its pages are.
    pub(super) page_size: usize,
    /// Where in the file the newest version of each page is.
    frames: HashMap<u32, u64>,
    /// Whether something followed the last frame that counts.
    pub(super) cut: bool,
}

impl Wal {
    /// Reads a log; none if its header cannot be trusted.
    pub(super) fn open(file: File) -> std::io::Result<Option<Self>> {
        let mut reader = BufReader::with_capacity(1 << 16, &file);
        let mut header = [0; HEADER];
        if fill(&mut reader, &mut header)? < HEADER {
            return Ok(None);
        }
        let word = |at| big_u32(&header, at).unwrap_or(0);
        let page_size = word(8) as usize;
        let big_endian = word(0) & 1 == 1;
        let mut sum = sum(big_endian, (0, 0), &header[..24]);
        if word(0) & !1 != MAGIC
            || word(4) != VERSION
            || !super::pages::SIZES.contains(&page_size)
            || sum != (word(24), word(28))
        {
            return Ok(None);
        }
        let salt = &header[16..24];

        let mut frames = HashMap::new();
        let mut pending = Vec::new();
        let mut frame = vec![0; FRAME_HEADER + page_size];
        let mut at = HEADER as u64;
        let mut cut = false;
        loop {
            let got = fill(&mut reader, &mut frame)?;
            if got < frame.len() {
                cut |= got > 0 && frame[8..16] == *salt;
                break;
            }
            let word = |at| big_u32(&frame, at).unwrap_or(0);
            let (page, commit) = (word(0), word(4));
            if frame[8..16] != *salt {
                // Left from before the log was last started anew.
                break;
            }
            sum = self::sum(big_endian, sum, &frame[..8]);
            sum = self::sum(big_endian, sum, &frame[FRAME_HEADER..]);
            if page == 0 || sum != (word(16), word(20)) {
                cut = true;
                break;
            }
            pending.push((page, at + FRAME_HEADER as u64));
            if commit > 0 {
                frames.extend(pending.drain(..));
            }
            at += frame.len() as u64;
        }
        Ok(Some(Self {
            page_size,
            frames,
            cut: cut || !pending.is_empty(),
            file,
        }))
    }

    /// The numbers of the pages it has, in no order.
    pub(super) fn pages(&self) -> impl Iterator<Item = u32> {
        self.frames.keys().copied()
    }

    pub(super) fn has(&self, number: u32) -> bool {
        self.frames.contains_key(&number)
    }

    /// Reads a page, if it is here.
    pub(super) fn page(&mut self, number: u32, into: &mut [u8]) -> std::io::Result<bool> {
        let Some(at) = self.frames.get(&number) else {
            return Ok(false);
        };
        self.file.seek(SeekFrom::Start(*at))?;
        self.file.read_exact(into)?;
        Ok(true)
    }
}

/// Reads until the buffer is full or there is no more; answers how much there was.
pub(super) fn fill(from: &mut impl Read, into: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match from.read(&mut into[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// The log's running sum, which covers everything before.
fn sum(big_endian: bool, start: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let word = |four: &[u8]| match <[u8; 4]>::try_from(four) {
        Ok(four) if big_endian => u32::from_be_bytes(four),
        Ok(four) => u32::from_le_bytes(four),
        Err(_) => 0,
    };
    bytes.chunks_exact(8).fold(start, |(one, two), eight| {
        let one = one.wrapping_add(word(&eight[..4])).wrapping_add(two);
        let two = two.wrapping_add(word(&eight[4..])).wrapping_add(one);
        (one, two)
    })
}
