// SPDX-License-Identifier: Apache-2.0
//! Response body from a file or a part of a file.

use std::fs::File;
use std::io::{Error, ErrorKind, IoSliceMut, Result};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tokio::task::JoinHandle;

use crate::file_cache::{CHUNK, OpenFile};

/// Bytes of a file. Data in memory or in the page cache is read at once; other data is read by a blocking thread.
pub struct FileBody {
    file: OpenFile,
    left: Range<u64>,
    waiting: Option<JoinHandle<Result<Bytes>>>,
}

impl FileBody {
    /// Create a body of the bytes `range` of `file`.
    pub fn new(file: OpenFile, range: Range<u64>) -> Self {
        Self {
            file,
            left: range,
            waiting: None,
        }
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        let result = if let Some(waiting) = &mut self.waiting {
            let result = ready!(Pin::new(waiting).poll(cx));
            self.waiting = None;
            result?
        } else if self.left.is_empty() {
            return Poll::Ready(None);
        } else {
            let read = next(&self.file, &self.left, ReadWriteFlags::NOWAIT);
            let must_wait = match &read {
                // The page cache may have only bytes of the chunk that were sent before.
                Ok(bytes) => bytes.is_empty(),
                Err(error) => matches!(*error, Errno::AGAIN | Errno::OPNOTSUPP),
            };
            if must_wait {
                let (file, left) = (self.file.clone(), self.left.clone());
                let wait = move || Ok(next(&file, &left, ReadWriteFlags::empty())?);
                self.waiting = Some(tokio::task::spawn_blocking(wait));
                return self.poll_frame(cx);
            }
            read.map_err(Into::into)
        };
        let chunk = result.and_then(|chunk| {
            if chunk.is_empty() {
                return Err(Error::new(
                    ErrorKind::UnexpectedEof,
                    "the file was truncated",
                ));
            }
            Ok(chunk)
        });
        if let Ok(chunk) = &chunk {
            self.left.start += chunk.len() as u64;
        }
        Poll::Ready(Some(chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.end - self.left.start)
    }
}

/// Return the next bytes of the range `left`: the rest of their chunk if chunks of the file are kept.
fn next(
    open: &OpenFile,
    left: &Range<u64>,
    flags: ReadWriteFlags,
) -> std::result::Result<Bytes, Errno> {
    let length = left.end - left.start;
    let contents = &open.contents;
    let mut chunk = match (contents.chunk(left.start), &open.file) {
        (Some(chunk), _) => chunk,
        // Only a file whose chunks are all in memory is not open.
        (None, None) => return Err(Errno::BADF),
        (None, Some(file)) if contents.is_kept() => {
            let skipped = left.start % CHUNK;
            let at = left.start - skipped;
            let chunk = read(
                file,
                at,
                CHUNK.min(contents.length().saturating_sub(at)),
                flags,
            )?;
            contents.keep(at, &chunk, file);
            chunk.slice(chunk.len().min(skipped as usize)..)
        }
        (None, Some(file)) => read(file, left.start, CHUNK.min(length), flags)?,
    };
    chunk.truncate(length.try_into().unwrap_or(usize::MAX));
    Ok(chunk)
}

fn read(
    file: &File,
    at: u64,
    length: u64,
    flags: ReadWriteFlags,
) -> std::result::Result<Bytes, Errno> {
    let mut chunk = vec![0; length as usize];
    let read = preadv2(file, &mut [IoSliceMut::new(&mut chunk)], at, flags)?;
    chunk.truncate(read);
    Ok(chunk.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::num::NonZeroU64;
    use std::os::unix::fs::FileExt as _;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use http_body_util::BodyExt as _;
    use rustix::fs::{Advice, fadvise};

    use super::*;
    use crate::file_cache::FileCache;

    async fn body(file: &OpenFile, range: Range<u64>) -> std::result::Result<Bytes, ErrorKind> {
        let collected = FileBody::new(file.clone(), range).collect().await;
        collected
            .map(|whole| whole.to_bytes())
            .map_err(|error| error.kind())
    }

    async fn check(file: &OpenFile, content: &[u8]) {
        for range in [0..200_000, 70_000..70_001, 5..5, 65_535..131_073] {
            let expected = &content[range.start as usize..range.end as usize];
            assert_eq!(body(file, range).await.unwrap(), expected);
        }
    }

    /// Open a file once its chunks are kept, which requires that its last change is old enough.
    async fn open_kept(cache: &FileCache, path: &Path) -> OpenFile {
        let begun = Instant::now();
        loop {
            let file = cache.open(path).unwrap();
            if file.contents.is_kept() {
                return file;
            }
            assert!(begun.elapsed() < Duration::from_secs(60));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    #[tokio::test]
    async fn body_yields_exactly_the_range() {
        let content: Vec<u8> = (0..200_000).map(|i| (i % 251) as u8).collect();
        let path = std::env::temp_dir().join(format!("body-{}", std::process::id()));
        fs::write(&path, &content).unwrap();
        let cache = FileCache::new(1 << 20);
        let recent = cache.open(&path).unwrap();
        check(&recent, &content).await;
        assert_eq!(
            body(&recent, 0..200_001).await,
            Err(ErrorKind::UnexpectedEof)
        );
        let read = open_kept(&cache, &path).await;
        assert!(read.file.is_some());
        check(&read, &content).await;
        let kept = cache.open(&path).unwrap();
        assert!(kept.file.is_none());
        check(&kept, &content).await;
        fs::remove_file(path).unwrap();
    }

    /// Remove a file of `length` bytes from the page cache, except for its first page, where the file system allows it.
    fn forget_all_but_the_first_page(path: &Path, length: u64) {
        let file = File::open(path).unwrap();
        file.sync_all().unwrap();
        let advise = |advice| fadvise(&file, 0, NonZeroU64::new(length), advice).unwrap();
        advise(Advice::DontNeed);
        // No other page is read ahead.
        advise(Advice::Random);
        file.read_exact_at(&mut [0], 0).unwrap();
    }

    #[tokio::test]
    async fn body_is_complete_if_only_the_beginning_of_a_chunk_is_in_the_page_cache() {
        let content: Vec<u8> = (0..CHUNK).map(|i| (i % 251) as u8).collect();
        let path = std::env::temp_dir().join(format!("partial-{}", std::process::id()));
        fs::write(&path, &content).unwrap();
        let cache = FileCache::new(1 << 20);
        let file = open_kept(&cache, &path).await;
        forget_all_but_the_first_page(&path, CHUNK);
        assert_eq!(body(&file, 0..CHUNK).await.unwrap(), content);
        fs::remove_file(path).unwrap();
    }
}
