//! Caches a model's encodings of passages on disk, so that each is computed once.
//!
//! There is one file per model in the folder `encoded` of the index. The cache is derived data
//! and can be deleted at any time. Format, little-endian: `TLVECTOR` and a version (u32); then
//! records, which are only ever appended: the length of the rest (u32), a key (16 bytes), rows
//! and columns (u32 each), for each row its scale (f32) and its values (i8), and the first 4
//! bytes of the blake3 digest of everything after the length. A file that is full is started
//! over.
//!
//! Invariant: a lookup returns exactly what was stored under the key. Records that are torn or
//! belong to another key count as missing.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use throughline_model::{Digest, Owner};

use crate::error::ErrorContext as _;
use crate::{RecallError, private_files};

/// The folder name within the index folder.
pub(crate) const FOLDER: &str = "encoded";

const MAGIC: &[u8; 8] = b"TLVECTOR";
const VERSION: u32 = 1;
const HEADER_BYTES: u64 = 12;
/// The maximum size of a file, in bytes, before it is started over.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The maximum size of a record, in bytes.
const MAX_RECORD_BYTES: usize = 1 << 20;
const KEY_BYTES: usize = 16;
/// The bytes of a record besides its rows: key, dimensions and checksum.
const RECORD_OVERHEAD_BYTES: usize = KEY_BYTES + 8 + 4;

type Key = [u8; KEY_BYTES];

/// Vectors quantized to one byte per value, with a scale per row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuantizedRows {
    columns: usize,
    scales: Vec<f32>,
    values: Vec<i8>,
}

impl QuantizedRows {
    /// Quantizes vectors of the same length.
    pub fn quantize<'a>(columns: usize, rows: impl IntoIterator<Item = &'a [f32]>) -> Self {
        let mut all = Self {
            columns,
            ..Self::default()
        };
        for row in rows {
            let most = row.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            let scale = most / 127.0;
            all.scales.push(scale);
            let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
            let numbers = row.iter().chain(std::iter::repeat(&0.0)).take(columns);
            #[expect(clippy::cast_possible_truncation, reason = "at most 127")]
            all.values
                .extend(numbers.map(|x| (x * inverse).round() as i8));
        }
        all
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Returns the length of each row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns all values, row by row.
    pub fn values(&self) -> impl Iterator<Item = f32> {
        let rows = self.values.chunks(self.columns.max(1)).zip(&self.scales);
        rows.flat_map(|(row, scale)| row.iter().map(move |x| f32::from(*x) * scale))
    }

    fn encode_record(&self, key: &Key) -> Option<Vec<u8>> {
        let rows = u32::try_from(self.len()).ok()?;
        let columns = u32::try_from(self.columns).ok()?;
        let mut bytes = vec![0; 4];
        bytes.extend(key);
        bytes.extend(rows.to_le_bytes());
        bytes.extend(columns.to_le_bytes());
        for (row, scale) in self.values.chunks(self.columns.max(1)).zip(&self.scales) {
            bytes.extend(scale.to_le_bytes());
            bytes.extend(row.iter().map(|x| x.cast_unsigned()));
        }
        let check = checksum(&bytes[4..]);
        bytes.extend(check);
        let length = bytes.len() - 4;
        bytes[..4].copy_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
        (length <= MAX_RECORD_BYTES).then_some(bytes)
    }

    /// Decodes a record's rows, if it is intact and has this key.
    fn decode_record(record: &[u8], key: &Key) -> Option<Self> {
        let (content, found) = record.split_last_chunk::<4>()?;
        let (own, rest) = content.split_first_chunk::<KEY_BYTES>()?;
        let (rows, rest) = rest.split_first_chunk::<4>()?;
        let (columns, rest) = rest.split_first_chunk::<4>()?;
        let rows = usize::try_from(u32::from_le_bytes(*rows)).ok()?;
        let columns = usize::try_from(u32::from_le_bytes(*columns)).ok()?;
        let size = columns.checked_add(4)?.checked_mul(rows)?;
        if own != key || rest.len() != size || checksum(content) != *found {
            return None;
        }
        let mut all = Self {
            columns,
            ..Self::default()
        };
        for row in rest.chunks(columns + 4) {
            let (scale, numbers) = row.split_first_chunk::<4>()?;
            all.scales.push(f32::from_le_bytes(*scale));
            all.values
                .extend(numbers.iter().map(|byte| byte.cast_signed()));
        }
        Some(all)
    }
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    let digest = Digest::of(bytes);
    let [a, b, c, d, ..] = *digest.as_bytes();
    [a, b, c, d]
}

/// The encoding caches of all models, in the folder of an index.
#[derive(Debug)]
pub struct EncodingCaches {
    index: PathBuf,
    open_caches: Mutex<HashMap<Digest, Arc<EncodingCache>>>,
}

impl EncodingCaches {
    /// Returns the caches in an index's folder.
    pub fn in_folder(index: &Path) -> Self {
        Self {
            index: index.to_owned(),
            open_caches: Mutex::default(),
        }
    }

    /// Returns the cache of one model.
    pub fn for_model(&self, model: &Digest) -> Arc<EncodingCache> {
        let known = self.open_caches.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(EncodingCache::new(&self.index, model));
        Arc::clone(known.entry(*model).or_insert_with(new))
    }

    /// Deletes the caches of all models, so that no encoding of a removed passage remains.
    pub fn delete_all(&self) -> Result<(), RecallError> {
        match fs::remove_dir_all(self.index.join(FOLDER)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).during("deleting cached encodings of passages")
            }
            _ => Ok(()),
        }
    }
}

/// The encoding cache of one model.
#[derive(Debug)]
pub struct EncodingCache {
    path: PathBuf,
    open_file: Mutex<Option<OpenCacheFile>>,
}

/// The open cache file and the records found in it so far.
#[derive(Debug)]
struct OpenCacheFile {
    file: File,
    /// The offset and length of each record.
    offsets: HashMap<Key, (u64, usize)>,
    end: u64,
}

impl EncodingCache {
    /// Creates the cache of a model for the passages of an index.
    pub(crate) fn new(index: &Path, model: &Digest) -> Self {
        Self {
            path: index.join(FOLDER).join(model.short()),
            open_file: Mutex::default(),
        }
    }

    /// Restricts the cache to one owner, so that cache hits reveal nothing about other owners'
    /// passages.
    pub(crate) fn for_owner<'a>(&'a self, owner: &'a Owner) -> OwnerEncodingCache<'a> {
        let mut open = self
            .open_file
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A file that cannot be read counts as empty.
        *open = OpenCacheFile::open(&self.path, open.take()).ok();
        OwnerEncodingCache { file: self, owner }
    }

    fn get(&self, key: &Key) -> Option<QuantizedRows> {
        let mut open = self
            .open_file
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let open = open.as_mut()?;
        let (at, length) = *open.offsets.get(key)?;
        let mut record = vec![0; length];
        open.file.seek(SeekFrom::Start(at)).ok()?;
        open.file.read_exact(&mut record).ok()?;
        QuantizedRows::decode_record(&record, key)
    }

    fn put(&self, new: &[Vec<u8>]) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            private_files::create_folder(folder)?;
        }
        let mut file = private_files::file_options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&self.path)?;
        if file.try_lock().is_err() {
            // Another process is writing; this encoding is computed again another time.
            return Ok(());
        }
        let size: usize = new.iter().map(Vec::len).sum();
        let mut open = self
            .open_file
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = OpenCacheFile::open(&self.path, open.take()).ok();
        if known
            .as_ref()
            .is_some_and(|known| known.end + size as u64 > MAX_FILE_BYTES)
        {
            // A new file, so that no process uses the old file's offsets with it.
            fs::remove_file(&self.path)?;
            drop(open);
            return self.put(new);
        }
        let end = known.as_ref().map_or(0, |known| known.end);
        // Anything after the end is a torn record.
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        if end == 0 {
            file.write_all(MAGIC)?;
            file.write_all(&VERSION.to_le_bytes())?;
        }
        *open = known;
        file.write_all(&new.concat())
    }
}

impl OpenCacheFile {
    /// Opens the file as it is now; scans only what was added since `known`.
    fn open(path: &Path, known: Option<Self>) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let known = known.filter(|known| length >= known.end && is_same_file(&known.file, &file));
        let (offsets, end) = match known {
            Some(known) => (known.offsets, known.end),
            None => {
                let mut header = [0; 12];
                (&file).read_exact(&mut header)?;
                if header[..8] != *MAGIC || header[8..] != VERSION.to_le_bytes() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                (HashMap::new(), HEADER_BYTES)
            }
        };
        let mut open = Self { file, offsets, end };
        open.scan_records(length)?;
        Ok(open)
    }

    /// Records the offsets of all intact records.
    fn scan_records(&mut self, length: u64) -> io::Result<()> {
        if self.end == length {
            return Ok(());
        }
        let mut reader = BufReader::new(&self.file);
        reader.seek(SeekFrom::Start(self.end))?;
        while length - self.end > 4 + RECORD_OVERHEAD_BYTES as u64 {
            let mut size = [0; 4];
            reader.read_exact(&mut size)?;
            let size = u32::from_le_bytes(size) as usize;
            if !(RECORD_OVERHEAD_BYTES..=MAX_RECORD_BYTES).contains(&size)
                || length - self.end < 4 + size as u64
            {
                break;
            }
            let mut key = [0; KEY_BYTES];
            reader.read_exact(&mut key)?;
            self.offsets.insert(key, (self.end + 4, size));
            self.end += 4 + size as u64;
            reader.seek_relative(i64::try_from(size - KEY_BYTES).unwrap_or(0))?;
        }
        Ok(())
    }
}

/// Returns whether two handles refer to the same file.
fn is_same_file(one: &File, other: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let mark = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
        mark(one) == mark(other)
    }
    #[cfg(not(unix))]
    {
        let _ = (one, other);
        false
    }
}

/// The encoding cache of one model, restricted to one owner.
#[derive(Debug)]
pub struct OwnerEncodingCache<'a> {
    file: &'a EncodingCache,
    owner: &'a Owner,
}

impl OwnerEncodingCache<'_> {
    /// Returns the cached encoding of an input, if there is one.
    pub fn get(&self, read: &[u8]) -> Option<QuantizedRows> {
        self.file.get(&self.key(read))
    }

    /// Stores the encoding of each input.
    ///
    /// Failures are ignored: the encoding is then computed again.
    pub fn put<'r>(&self, made: impl IntoIterator<Item = (&'r [u8], &'r QuantizedRows)>) {
        let made = made.into_iter();
        let records: Vec<_> = made
            .filter_map(|(read, rows)| rows.encode_record(&self.key(read)))
            .collect();
        if !records.is_empty() {
            let _ = self.file.put(&records);
        }
    }

    fn key(&self, read: &[u8]) -> Key {
        let mut bytes = self.owner.as_str().as_bytes().to_vec();
        bytes.push(0x1f);
        bytes.extend(read);
        let digest = Digest::of(&bytes);
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(&digest.as_bytes()[..KEY_BYTES]);
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(first: f32) -> QuantizedRows {
        let row = [first, -1.0, 0.25];
        QuantizedRows::quantize(3, [&row[..], &row[..]])
    }

    fn open_cache(folder: &Path) -> EncodingCache {
        EncodingCache::new(folder, &Digest::of(b"a model"))
    }

    fn owner() -> Owner {
        Owner::local()
    }

    #[test]
    fn what_is_kept_is_read_back_by_anybody_who_opens_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (one, owner) = (open_cache(folder.path()), owner());
        assert_eq!(one.for_owner(&owner).get(b"a"), None);
        one.for_owner(&owner).put([(&b"a"[..], &rows(0.5))]);
        let other = open_cache(folder.path());
        let cache = other.for_owner(&owner);
        assert_eq!(cache.get(b"a"), Some(rows(0.5)));
        cache.put([(&b"b"[..], &rows(0.7))]);
        let cache = one.for_owner(&owner);
        assert_eq!(cache.get(b"a"), Some(rows(0.5)));
        assert_eq!(cache.get(b"b"), Some(rows(0.7)));
        let ada = "ada".parse().unwrap();
        assert_eq!(one.for_owner(&ada).get(b"a"), None, "of another owner");
    }

    #[test]
    fn rounding_keeps_two_places() {
        let row = [0.9, -0.1, 0.033];
        for (near, x) in QuantizedRows::quantize(3, [&row[..]]).values().zip(row) {
            assert!((near - x).abs() < 0.005, "{near} for {x}");
        }
        let zero: Vec<f32> = QuantizedRows::quantize(2, [&[0.0, 0.0][..]])
            .values()
            .collect();
        assert_eq!(zero, [0.0, 0.0]);
    }

    #[test]
    fn a_torn_end_is_cut_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let owner = owner();
        let whole = open_cache(folder.path());
        whole.for_owner(&owner).put([(&b"a"[..], &rows(0.5))]);
        let first = fs::metadata(&whole.path).unwrap().len();
        whole.for_owner(&owner).put([(&b"b"[..], &rows(0.7))]);
        let bytes = fs::read(&whole.path).unwrap();
        for length in first..bytes.len() as u64 {
            fs::write(&whole.path, &bytes[..usize::try_from(length).unwrap()]).unwrap();
            let torn = open_cache(folder.path());
            let cache = torn.for_owner(&owner);
            assert_eq!(cache.get(b"a"), Some(rows(0.5)), "cut at {length}");
            assert_eq!(cache.get(b"b"), None, "cut at {length}");
            cache.put([(&b"c"[..], &rows(0.9))]);
            let cache = torn.for_owner(&owner);
            assert_eq!(cache.get(b"a"), Some(rows(0.5)), "cut at {length}");
            assert_eq!(cache.get(b"c"), Some(rows(0.9)), "cut at {length}");
        }
    }

    #[test]
    fn whatever_byte_is_wrong_nothing_wrong_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let owner = owner();
        let whole = open_cache(folder.path());
        whole
            .for_owner(&owner)
            .put([(&b"a"[..], &rows(0.5)), (&b"b"[..], &rows(0.7))]);
        let bytes = fs::read(&whole.path).unwrap();
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x41;
            fs::write(&whole.path, &wrong).unwrap();
            let harmed = open_cache(folder.path());
            let cache = harmed.for_owner(&owner);
            for (read, right) in [(b"a", rows(0.5)), (b"b", rows(0.7))] {
                let found = cache.get(read);
                assert!(found.is_none() || found == Some(right), "byte {at}");
            }
            cache.put([(&b"c"[..], &rows(0.9))]);
            assert_eq!(
                harmed.for_owner(&owner).get(b"c"),
                Some(rows(0.9)),
                "byte {at}"
            );
        }
    }

    #[test]
    fn a_file_that_is_full_is_started_over() {
        let folder = tempfile::tempdir().unwrap();
        let owner = owner();
        let full = open_cache(folder.path());
        full.for_owner(&owner).put([(&b"a"[..], &rows(0.5))]);
        let large = QuantizedRows::quantize(1_000, vec![&[1.0; 1_000][..]; 1_000]);
        let names: Vec<String> = (0..70).map(|at| format!("large {at}")).collect();
        for name in &names {
            full.for_owner(&owner).put([(name.as_bytes(), &large)]);
            assert!(fs::metadata(&full.path).unwrap().len() <= MAX_FILE_BYTES);
        }
        let cache = full.for_owner(&owner);
        assert_eq!(cache.get(b"a"), None);
        assert_eq!(cache.get(names[69].as_bytes()), Some(large));
    }
}
