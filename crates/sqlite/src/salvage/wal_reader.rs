//! Reads the write-ahead log beside a damaged file and decides which of its frames are valid.
//!
//! A frame is valid if it and all before it are of the current generation with correct
//! checksums, and a commit follows: exactly the frames that SQLite would recover.
//!
//! If the main file is lost there may be more to recover. A restarted log is overwritten from
//! its beginning, so its end still has frames of earlier generations, whose pages were in the
//! main file. They are used for pages that exist nowhere else.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use super::page_format::read_u32_be;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const VERSION: u32 = 3_007_000;
/// The last bit gives the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// The valid pages of a write-ahead log.
#[derive(Debug)]
pub(super) struct WalReader {
    file: File,
    /// The page size in bytes.
    pub(super) page_size: usize,
    /// The file offset of the newest version of each page.
    frames: HashMap<u32, u64>,
    /// Whether anything follows the last valid frame.
    pub(super) has_discarded_frames: bool,
    /// The number of pages in the database after the last commit.
    database_pages: u32,
    /// The offset of the first invalid frame.
    valid_end: u64,
}

/// A frame of an earlier generation.
struct OldFrame {
    page: u32,
    is_commit: bool,
    salt: [u8; 8],
    /// The running checksum up to and including this frame, as stored in it.
    checksum: (u32, u32),
}

impl WalReader {
    /// Reads a log; `None` if its header cannot be trusted.
    pub(super) fn open(file: File) -> std::io::Result<Option<Self>> {
        let mut reader = BufReader::with_capacity(1 << 16, &file);
        let mut header = [0; HEADER];
        if read_up_to(&mut reader, &mut header)? < HEADER {
            return Ok(None);
        }
        let word = |at| read_u32_be(&header, at).unwrap_or(0);
        let page_size = word(8) as usize;
        let big_endian = word(0) & 1 == 1;
        let mut sum = checksum(big_endian, (0, 0), &header[..24]);
        if word(0) & !1 != MAGIC
            || word(4) != VERSION
            || !super::page_reader::PAGE_SIZES.contains(&page_size)
            || sum != (word(24), word(28))
        {
            return Ok(None);
        }
        let salt = &header[16..24];

        let mut frames = HashMap::new();
        let mut database_pages = 0;
        let mut pending = Vec::new();
        let mut frame = vec![0; FRAME_HEADER + page_size];
        let mut at = HEADER as u64;
        let mut cut = false;
        loop {
            let got = read_up_to(&mut reader, &mut frame)?;
            if got < frame.len() {
                cut |= got > 0 && frame[8..16] == *salt;
                break;
            }
            let word = |at| read_u32_be(&frame, at).unwrap_or(0);
            let (page, commit) = (word(0), word(4));
            if frame[8..16] != *salt {
                // Left over from before the log was last restarted.
                break;
            }
            sum = self::checksum(big_endian, sum, &frame[..8]);
            sum = self::checksum(big_endian, sum, &frame[FRAME_HEADER..]);
            if page == 0 || sum != (word(16), word(20)) {
                cut = true;
                break;
            }
            pending.push((page, at + FRAME_HEADER as u64));
            if commit > 0 {
                frames.extend(pending.drain(..));
                database_pages = commit;
            }
            at += frame.len() as u64;
        }
        Ok(Some(Self {
            page_size,
            frames,
            has_discarded_frames: cut || !pending.is_empty(),
            database_pages,
            valid_end: at,
            file,
        }))
    }

    /// Whether the log has every page of the database.
    pub(super) fn is_complete(&self) -> bool {
        self.database_pages > 0 && (1..=self.database_pages).all(|page| self.has_page(page))
    }

    /// Adds the pages that only frames of earlier generations have.
    ///
    /// The newest generation comes first in the file. Each frame's checksum builds on the one
    /// before it, so all but the first frame of a generation can be verified.
    pub(super) fn add_earlier_generations(&mut self) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(self.valid_end))?;
        let mut reader = BufReader::with_capacity(1 << 16, &self.file);
        let mut frame = vec![0; FRAME_HEADER + self.page_size];
        let mut at = self.valid_end;
        let mut before: Option<OldFrame> = None;
        let mut generation = HashMap::new();
        let mut pending = Vec::new();
        while read_up_to(&mut reader, &mut frame)? == frame.len() {
            let found = OldFrame::parse(&frame);
            let follows = before.as_ref().is_some_and(|one| one.salt == found.salt);
            if !follows {
                pending.clear();
                for (page, offset) in generation.drain() {
                    self.frames.entry(page).or_insert(offset);
                }
            }
            if found.page == 0 || (follows && !found.has_valid_checksum(before.as_ref(), &frame)) {
                break;
            }
            pending.push((found.page, at + FRAME_HEADER as u64));
            if found.is_commit {
                generation.extend(pending.drain(..));
            }
            before = Some(found);
            at += frame.len() as u64;
        }
        for (page, offset) in generation {
            self.frames.entry(page).or_insert(offset);
        }
        Ok(())
    }

    /// Returns the numbers of the pages it has, unordered.
    pub(super) fn page_numbers(&self) -> impl Iterator<Item = u32> {
        self.frames.keys().copied()
    }

    pub(super) fn has_page(&self, number: u32) -> bool {
        self.frames.contains_key(&number)
    }

    /// Reads a page; returns whether it is in the log.
    pub(super) fn read_page(&mut self, number: u32, into: &mut [u8]) -> std::io::Result<bool> {
        let Some(at) = self.frames.get(&number) else {
            return Ok(false);
        };
        self.file.seek(SeekFrom::Start(*at))?;
        self.file.read_exact(into)?;
        Ok(true)
    }
}

impl OldFrame {
    fn parse(frame: &[u8]) -> Self {
        let word = |at| read_u32_be(frame, at).unwrap_or(0);
        let salt = frame.get(8..16).and_then(|salt| salt.try_into().ok());
        Self {
            page: word(0),
            is_commit: word(4) > 0,
            salt: salt.unwrap_or_default(),
            checksum: (word(16), word(20)),
        }
    }

    /// Whether its checksum is right, in either byte order.
    fn has_valid_checksum(&self, before: Option<&Self>, frame: &[u8]) -> bool {
        before.is_some_and(|before| {
            [false, true].into_iter().any(|big_endian| {
                let start = checksum(big_endian, before.checksum, &frame[..8]);
                checksum(big_endian, start, &frame[FRAME_HEADER..]) == self.checksum
            })
        })
    }
}

/// Reads until the buffer is full or the input ends; returns how much was read.
pub(super) fn read_up_to(from: &mut impl Read, into: &mut [u8]) -> std::io::Result<usize> {
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

/// Computes the log's running checksum, which covers everything before.
fn checksum(big_endian: bool, start: (u32, u32), bytes: &[u8]) -> (u32, u32) {
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
