//! Reads the pages of a damaged file, with the pages in its write-ahead log applied.

use std::collections::HashSet;
use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom};
use std::path::Path;

use super::page_format::{Cell, PageKind, read_u16_be, read_u32_be};
use super::record_format::{RawRow, RecordHeader};
use super::scan;
use super::wal_reader::{WalReader, read_up_to};
use crate::open::side_file;

/// The valid page sizes.
pub(super) const PAGE_SIZES: [usize; 8] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

/// The magic bytes every SQLite file begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// How many bytes are sampled to determine the page size.
const SAMPLE_BYTES: u64 = 64 * 1024 * 1024;

/// A damaged file, read page by page.
#[derive(Debug)]
pub(super) struct PageReader {
    /// `None` if only the log is left.
    file: Option<File>,
    wal: Option<WalReader>,
    /// The page size in bytes.
    pub(super) page_size: usize,
    /// Number of pages in the main file.
    page_count: u32,
    /// The page read last.
    page: Vec<u8>,
    page_number: u32,
    /// Number of pages that failed to read.
    pub(super) failed_reads: u64,
}

impl PageReader {
    /// Opens a file and the log beside it, noting anything unusual about them.
    pub(super) fn open(path: &Path, notes: &mut Vec<String>) -> std::io::Result<Self> {
        let wal_path = side_file(path, "-wal");
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && wal_path.is_file() => None,
            opened => Some(opened?),
        };
        let length = match &file {
            Some(file) => file.metadata()?.len(),
            None => 0,
        };
        let mut wal = match File::open(wal_path) {
            Ok(wal) if wal.metadata()?.len() > 0 => {
                WalReader::open(wal).unwrap_or_default().or_else(|| {
                    notes.push(
                        "the write-ahead log is damaged from its beginning and was ignored: \
                     data stored only there is lost"
                            .to_owned(),
                    );
                    None
                })
            }
            _ => None,
        };
        if length == 0
            && let Some(wal) = wal.as_mut().filter(|wal| !wal.is_complete())
        {
            notes.push(
                "the main file is missing or empty, and the write-ahead log does not have all of it: \
                 data stored only in the main file is lost"
                    .to_owned(),
            );
            wal.add_earlier_generations()?;
        }
        if wal.as_ref().is_some_and(|wal| wal.has_discarded_frames) {
            notes.push(
                "the write-ahead log ends in frames that are damaged or were never committed; \
                 they were ignored"
                    .to_owned(),
            );
        }
        let mut pages = Self {
            file,
            wal: None,
            page_size: 0,
            page_count: 0,
            page: Vec::new(),
            page_number: 0,
            failed_reads: 0,
        };
        let from_wal = wal.as_ref().map(|wal| wal.page_size);
        let size = pages.page_size_in_header();
        let size = match size
            .or(from_wal)
            .filter(|size| pages.count_rows_at(*size, length) > 0)
        {
            Some(size) => size,
            None => pages.guess_page_size(length, size.or(from_wal), notes),
        };
        pages.set_page_size(size, length);
        match wal {
            Some(wal) if wal.page_size != size => notes.push(format!(
                "the write-ahead log has pages of {} bytes and was ignored: the file's have {size}",
                wal.page_size
            )),
            wal => pages.wal = wal,
        }
        pages.failed_reads = 0;
        pages.note_truncation(notes);
        Ok(pages)
    }

    fn set_page_size(&mut self, size: usize, length: u64) {
        self.page_size = size;
        self.page_count = u32::try_from(length.div_ceil(size as u64)).unwrap_or(u32::MAX);
        self.page = vec![0; size];
        self.page_number = 0;
    }

    /// Notes if the file has fewer pages than its header claims.
    fn note_truncation(&mut self, notes: &mut Vec<String>) {
        let header = self.read_page(1);
        let claimed = read_u32_be(header, 28).unwrap_or(0);
        // The header's page count is valid only if these two counters agree.
        let current = header.get(24..28) == header.get(92..96);
        let (count, logged) = (self.page_count, self.wal.is_some());
        if self.read_page(1).starts_with(MAGIC) && current && !logged && count < claimed {
            notes.push(format!(
                "the file is truncated: it has {count} of its {claimed} pages"
            ));
        }
    }

    /// Returns the page size from the header, if the header can be trusted.
    fn page_size_in_header(&mut self) -> Option<usize> {
        let mut header = [0; 100];
        let file = self.file.as_mut()?;
        file.rewind().ok()?;
        read_up_to(file, &mut header).ok()?;
        let size = match read_u16_be(&header, 16)? {
            1 => 65536,
            size => usize::from(size),
        };
        (header.starts_with(MAGIC) && PAGE_SIZES.contains(&size)).then_some(size)
    }

    /// Counts the rows found with this page size.
    fn count_rows_at(&mut self, size: usize, length: u64) -> usize {
        self.set_page_size(size, length.min(SAMPLE_BYTES));
        (1..=self.page_count)
            .map(|number| scan::count_rows(self.read_page(number), number))
            .sum()
    }

    /// Returns the page size with which the most rows are found.
    fn guess_page_size(
        &mut self,
        length: u64,
        claimed: Option<usize>,
        notes: &mut Vec<String>,
    ) -> usize {
        let best = PAGE_SIZES
            .into_iter()
            .map(|size| (self.count_rows_at(size, length), size))
            .max()
            .filter(|(rows, _)| *rows > 0);
        match (best, claimed) {
            (Some((_, size)), _) => {
                notes.push(format!(
                    "the file's page size is unknown; assuming {size} bytes, which fits best"
                ));
                size
            }
            (None, Some(size)) => size,
            (None, None) => {
                notes.push("the file does not look like a store".to_owned());
                4096
            }
        }
    }

    /// Returns the numbers of all pages.
    pub(super) fn page_numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = (1..=self.page_count).collect();
        if let Some(wal) = &self.wal {
            numbers.extend(
                wal.page_numbers()
                    .filter(|number| *number > self.page_count),
            );
        }
        numbers.sort_unstable();
        numbers
    }

    fn has_page(&self, number: u32) -> bool {
        (1..=self.page_count).contains(&number)
            || self.wal.as_ref().is_some_and(|wal| wal.has_page(number))
    }

    /// Returns the approximate size of the data in bytes.
    pub(super) fn total_bytes(&self) -> u64 {
        u64::from(self.page_count) * self.page_size as u64
    }

    /// Reads a page; missing parts are zero.
    pub(super) fn read_page(&mut self, number: u32) -> &[u8] {
        if self.page_number != number {
            self.page_number = number;
            let read = match &mut self.wal {
                Some(wal) => wal.read_page(number, &mut self.page),
                None => Ok(false),
            };
            let read = match read {
                Ok(true) => Ok(self.page_size),
                Ok(false) => self.read_main_page(number),
                Err(error) => Err(error),
            };
            let got = read.unwrap_or_else(|_| {
                self.failed_reads += 1;
                0
            });
            self.page[got..].fill(0);
        }
        &self.page
    }

    fn read_main_page(&mut self, number: u32) -> std::io::Result<usize> {
        let (Some(index), Some(file)) = (number.checked_sub(1), self.file.as_mut()) else {
            return Ok(0);
        };
        let at = u64::from(index) * self.page_size as u64;
        file.seek(SeekFrom::Start(at))?;
        read_up_to(file, &mut self.page)
    }

    /// Parses the part of a row that is in its own page, if a row starts there.
    pub(super) fn parse_row_header(
        page: &[u8],
        kind: PageKind,
        at: u16,
    ) -> Option<(Cell, RecordHeader)> {
        let cell = Cell::parse(page, kind, at.into())?;
        let header = RecordHeader::parse(page.get(cell.local.clone())?, cell.length)?;
        Some((cell, header))
    }

    /// Reads a table row, as far as it is readable.
    pub(super) fn read_row(&mut self, number: u32, at: u16) -> Option<RawRow> {
        let (cell, header) = Self::parse_row_header(self.read_page(number), PageKind::Table, at)?;
        Some(self.read_full_row(number, &cell, header))
    }

    /// Reads the part of a table row that is in its own page.
    pub(super) fn read_local_row(&mut self, number: u32, at: u16) -> Option<RawRow> {
        let page = self.read_page(number);
        let (cell, header) = Self::parse_row_header(page, PageKind::Table, at)?;
        Some(RawRow {
            key: cell.key,
            header,
            bytes: page.get(cell.local)?.to_vec(),
        })
    }

    /// Reads the rest of a row from its overflow pages.
    pub(super) fn read_full_row(
        &mut self,
        number: u32,
        cell: &Cell,
        header: RecordHeader,
    ) -> RawRow {
        let mut bytes = self
            .read_page(number)
            .get(cell.local.clone())
            .unwrap_or_default()
            .to_vec();
        let mut next = cell.overflow;
        let mut seen = HashSet::new();
        while bytes.len() < cell.length && self.has_page(next) && seen.insert(next) {
            let missing = cell.length - bytes.len();
            let page = self.read_page(next);
            let (link, content) = page.split_at(4);
            bytes.extend_from_slice(&content[..missing.min(content.len())]);
            next = u32::from_be_bytes([link[0], link[1], link[2], link[3]]);
        }
        RawRow {
            key: cell.key,
            header,
            bytes,
        }
    }
}
