// SPDX-License-Identifier: Apache-2.0
//! Contents of recently served files in memory, so that most responses neither open a file nor read it.
//!
//! A response comes from memory only if the file system has reported the same file, length, and times of modification and
//! change for the path within the last ten milliseconds. A file is not kept if it changed so recently that its next change
//! could have the same time. A program that writes through a shared memory mapping changes these times late (mmap(2)).

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::Result;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};

use crate::qpack;
use crate::response::header_value;

/// Bytes in which files are read and kept.
pub const CHUNK: u64 = 1 << 16;
/// Most bytes that are kept, by default.
pub const DEFAULT_CAPACITY: u64 = 64 << 20;
/// Part of the capacity that one file may need.
const MAX_SHARE: u64 = 4;
/// Time for which a report of the file system counts. Asking for each response takes a sixth of the time of a short one.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Estimated bytes that an entry needs in addition to the file's contents.
const ENTRY_OVERHEAD: u64 = 1 << 10;
/// Age of a change beyond which the next one has another time. Linux counts these times in ticks of at most 10 ms.
const SETTLED: Duration = Duration::from_millis(50);
/// The same for file systems that count in seconds, some of them in pairs.
const SETTLED_SECONDS: Duration = Duration::from_secs(3);

/// The contents of files that were served recently.
#[derive(Debug)]
pub struct FileCache {
    capacity: u64,
    recent: Mutex<Recent>,
}

/// Files in two generations, of which the older one is forgotten when the younger one has half of the capacity.
#[derive(Debug, Default)]
struct Recent {
    young: HashMap<OsString, Arc<Contents>>,
    old: HashMap<OsString, Arc<Contents>>,
    young_bytes: u64,
}

/// The file system's report about a file. Any change of its contents changes this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

/// One version of a file: its description, and those of its chunks that were read.
#[derive(Debug)]
pub struct Contents {
    version: Version,
    kind: FileType,
    /// Time of modification in whole seconds, the resolution of HTTP dates.
    pub modified: SystemTime,
    /// Entity tag.
    pub tag: HeaderValue,
    /// `modified` as HTTP date.
    pub last_modified: HeaderValue,
    /// Media type.
    pub media_type: HeaderValue,
    /// Encoded fields of the response with the whole file.
    pub fields: Vec<u8>,
    /// Empty if the file is not kept.
    chunks: Box<[OnceLock<Bytes>]>,
    missing: AtomicUsize,
    is_kept: bool,
    /// When the file system reported this version last.
    checked: Mutex<Instant>,
}

/// A file to serve.
#[derive(Clone, Debug)]
pub struct OpenFile {
    /// The version of the file that was opened.
    pub contents: Arc<Contents>,
    /// The file itself; `None` if all its chunks are in memory.
    pub file: Option<Arc<File>>,
}

impl FileCache {
    /// Create a cache that keeps up to `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            recent: Mutex::default(),
        }
    }

    /// Open the file or directory at `path`, or find it in memory.
    ///
    /// # Errors
    /// If it does not exist or cannot be opened.
    pub fn open(&self, path: &Path) -> Result<OpenFile> {
        let known = self.recent().get(path.as_os_str(), self.capacity);
        if let Some(contents) = known.clone().filter(|known| known.is_current(path)) {
            return Ok(OpenFile {
                contents,
                file: None,
            });
        }
        let (file, metadata) = open(path)?;
        let version = Version::of(&metadata);
        let contents = match known.filter(|known| known.version == version) {
            Some(contents) => contents,
            None => self.add(path, &metadata),
        };
        Ok(OpenFile {
            contents,
            file: Some(Arc::new(file)),
        })
    }

    /// Return the contents of the file at `path` if all of it is in memory.
    pub fn find(&self, path: &Path) -> Option<Arc<Contents>> {
        let known = self.recent().get(path.as_os_str(), self.capacity)?;
        known.is_current(path).then_some(known)
    }

    fn add(&self, path: &Path, metadata: &Metadata) -> Arc<Contents> {
        let is_kept = metadata.is_file()
            && Version::of(metadata).is_settled()
            && metadata.len() + ENTRY_OVERHEAD <= self.capacity / MAX_SHARE;
        let contents = Arc::new(Contents::new(path, metadata, is_kept));
        if is_kept {
            self.recent()
                .put(path.into(), contents.clone(), self.capacity);
        }
        contents
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock()
    }
}

impl Recent {
    fn get(&mut self, path: &OsStr, capacity: u64) -> Option<Arc<Contents>> {
        if let Some(found) = self.young.get(path) {
            return Some(found.clone());
        }
        let (path, found) = self.old.remove_entry(path)?;
        self.put(path, found.clone(), capacity);
        Some(found)
    }

    fn put(&mut self, path: OsString, contents: Arc<Contents>, capacity: u64) {
        let needed = contents.version.length + ENTRY_OVERHEAD;
        if self.young_bytes + needed > capacity / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += needed;
        self.young.insert(path, contents);
    }
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Return whether the next change will have another time.
    fn is_settled(&self) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let changed = Duration::new(
            seconds.try_into().unwrap_or_default(),
            nanoseconds.try_into().unwrap_or_default(),
        );
        let settled = if nanoseconds == 0 {
            SETTLED_SECONDS
        } else {
            SETTLED
        };
        let age = SystemTime::now().duration_since(UNIX_EPOCH + changed);
        age.is_ok_and(|age| age > settled)
    }
}

impl Contents {
    fn new(path: &Path, metadata: &Metadata, is_kept: bool) -> Self {
        let seconds = metadata.mtime().try_into().unwrap_or_default();
        let modified = UNIX_EPOCH + Duration::from_secs(seconds);
        let length = metadata.len();
        let chunks = if is_kept { length.div_ceil(CHUNK) } else { 0 };
        let media_type = mime_guess::from_path(path).first_raw();
        let media_type = media_type.unwrap_or("application/octet-stream");
        let media_type = HeaderValue::from_static(media_type);
        // The entity tag consists of date and length, because the file system stores no digest.
        let tag = header_value(format!("\"{seconds:x}-{length:x}\""));
        let last_modified = header_value(httpdate::fmt_http_date(modified));
        Self {
            fields: qpack::file_fields(length, &tag, &last_modified, &media_type),
            version: Version::of(metadata),
            kind: metadata.file_type(),
            modified,
            tag,
            last_modified,
            media_type,
            chunks: (0..chunks).map(|_| OnceLock::new()).collect(),
            missing: AtomicUsize::new(chunks as usize),
            is_kept,
            checked: Mutex::new(Instant::now()),
        }
    }

    /// Return the length in bytes.
    pub fn length(&self) -> u64 {
        self.version.length
    }

    /// Return whether this is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind.is_dir()
    }

    /// Return whether this is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind.is_file()
    }

    /// Return whether chunks of this file are kept.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Return whether the whole file at `path` is in memory, and has not changed.
    fn is_current(&self, path: &Path) -> bool {
        if !self.is_kept || self.missing.load(Relaxed) > 0 {
            return false;
        }
        let now = Instant::now();
        let mut checked = self.checked.lock();
        if now.saturating_duration_since(*checked) < CHECK_INTERVAL {
            return true;
        }
        let is_same = fs::metadata(path).is_ok_and(|file| Version::of(&file) == self.version);
        if is_same {
            *checked = now;
        }
        is_same
    }

    /// Return the chunk with the byte at offset `at`, from there on, if it is in memory.
    pub fn chunk(&self, at: u64) -> Option<Bytes> {
        let chunk = self.chunks.get((at / CHUNK) as usize)?.get()?;
        Some(chunk.slice((at % CHUNK) as usize..))
    }

    /// Keep the `chunk` at offset `at`, just read from `file`, unless the file has changed since it was opened.
    pub fn keep(&self, at: u64, chunk: &Bytes, file: &File) {
        let is_same = || {
            let now = file.metadata();
            now.is_ok_and(|now| Version::of(&now) == self.version)
        };
        let is_complete = chunk.len() as u64 == CHUNK.min(self.length().saturating_sub(at));
        if let Some(kept) = self.chunks.get((at / CHUNK) as usize)
            && is_complete
            && is_same()
            && kept.set(chunk.clone()).is_ok()
        {
            self.missing.fetch_sub(1, Relaxed);
        }
    }
}

fn open(path: &Path) -> Result<(File, Metadata)> {
    // Does not block on a pipe without a writer, and has no effect on files.
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblock)
        .open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A folder with a file that has not changed for a long time.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("cache-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn write(&self, name: &str, content: &[u8]) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, content).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Wait until the change of the file at `path` counts as settled.
    fn settle(path: &Path) {
        while !Version::of(&fs::metadata(path).unwrap()).is_settled() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Read the chunk at `at` as a response does.
    fn read(open: &OpenFile, at: u64, chunk: &'static [u8]) -> Bytes {
        if let Some(kept) = open.contents.chunk(at) {
            return kept;
        }
        let chunk = Bytes::from_static(chunk);
        let file = open.file.as_ref().expect("a missing chunk needs the file");
        open.contents.keep(at, &chunk, file);
        chunk
    }

    #[test]
    fn unchanged_file_is_served_from_memory_and_changed_file_is_not() {
        let folder = Folder::new("changes");
        let path = folder.write("a.html", b"first");
        let cache = FileCache::new(1 << 20);
        settle(&path);
        let cold = cache.open(&path).unwrap();
        assert!(cold.file.is_some() && cold.contents.is_kept());
        assert_eq!(read(&cold, 0, b"first"), "first");
        let warm = cache.open(&path).unwrap();
        assert!(warm.file.is_none());
        assert_eq!(read(&warm, 0, b""), "first");
        assert_eq!(warm.contents.chunk(3).unwrap(), "st");
        assert_eq!(warm.contents.media_type, "text/html");
        // The same length, in place.
        folder.write("a.html", b"other");
        std::thread::sleep(CHECK_INTERVAL);
        let changed = cache.open(&path).unwrap();
        assert!(changed.file.is_some() && changed.contents.chunk(0).is_none());
        fs::remove_file(&path).unwrap();
        assert!(cache.open(&path).is_err());
    }

    #[test]
    fn change_is_settled_once_the_next_one_has_another_time() {
        let changed_ago = |age: Duration, nanoseconds: Option<i64>| {
            let folder = Folder::new("settled");
            let mut version = Version::of(&fs::metadata(&folder.0).unwrap());
            let changed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - age;
            let exact = i64::from(changed.subsec_nanos()).max(1);
            version.changed = (changed.as_secs() as i64, nanoseconds.unwrap_or(exact));
            version.is_settled()
        };
        assert!(!changed_ago(Duration::ZERO, None));
        assert!(changed_ago(Duration::from_secs(1), None));
        assert!(!changed_ago(Duration::from_secs(1), Some(0)));
        assert!(changed_ago(Duration::from_secs(4), Some(0)));
    }

    #[test]
    fn chunk_of_a_file_that_changes_while_it_is_read_is_not_kept() {
        let folder = Folder::new("race");
        let path = folder.write("a", b"first");
        settle(&path);
        let cache = FileCache::new(1 << 20);
        let open = cache.open(&path).unwrap();
        folder.write("a", b"other");
        read(&open, 0, b"first");
        assert_eq!(open.contents.chunk(0), None);
        // Neither is a chunk that the file no longer has.
        let open = cache.open(&path).unwrap();
        read(&open, 0, b"fir");
        assert_eq!(open.contents.chunk(0), None);
    }

    #[test]
    fn recently_served_files_stay_within_the_capacity() {
        let folder = Folder::new("capacity");
        let names: Vec<_> = (0..20).map(|number| number.to_string()).collect();
        for name in &names {
            folder.write(name, &[b'x'; 3000]);
        }
        let large = folder.write("large", &[b'x'; 20_000]);
        settle(&large);
        let cache = FileCache::new(64 << 10);
        assert!(!cache.open(&large).unwrap().contents.is_kept());
        let path = |name: &String| folder.0.join(name);
        let favourite = cache.open(&path(&names[0])).unwrap();
        for name in &names {
            cache.open(&path(name)).unwrap();
            // Served in every round, so never forgotten.
            let again = cache.open(&path(&names[0])).unwrap();
            assert!(Arc::ptr_eq(&again.contents, &favourite.contents));
            let recent = cache.recent();
            let kept = recent.young.len() + recent.old.len();
            assert!(kept as u64 * (3000 + ENTRY_OVERHEAD) <= 64 << 10);
        }
    }
}
