// SPDX-License-Identifier: Apache-2.0
//! Response body from a file or a part of a file.

use std::fs::File;
use std::io::{Error, ErrorKind, IoSliceMut, Result};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tokio::task::JoinHandle;

/// Maximum number of bytes per read.
const MAX_CHUNK: u64 = 1 << 16;

/// Bytes of a file. Data in the page cache is read at once; other data is read by a blocking thread.
pub struct FileBody {
    file: Arc<File>,
    left: Range<u64>,
    waiting: Option<JoinHandle<Result<Bytes>>>,
}

impl FileBody {
    /// Create a body of the bytes `range` of `file`.
    pub fn new(file: File, range: Range<u64>) -> Self {
        Self {
            file: Arc::new(file),
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
            let (at, length) = (
                self.left.start,
                MAX_CHUNK.min(self.left.end - self.left.start),
            );
            match read(&self.file, at, length, ReadWriteFlags::NOWAIT) {
                Err(Errno::AGAIN | Errno::OPNOTSUPP) => {
                    let file = self.file.clone();
                    let wait = move || Ok(read(&file, at, length, ReadWriteFlags::empty())?);
                    self.waiting = Some(tokio::task::spawn_blocking(wait));
                    return self.poll_frame(cx);
                }
                result => result.map_err(Into::into),
            }
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
    use std::io::Write as _;

    use http_body_util::BodyExt as _;

    use super::*;

    async fn body(content: &[u8], range: Range<u64>) -> std::result::Result<Bytes, ErrorKind> {
        let path = std::env::temp_dir().join(format!("body-{}-{range:?}", std::process::id()));
        File::create(&path).unwrap().write_all(content).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let collected = FileBody::new(file, range).collect().await;
        collected
            .map(|whole| whole.to_bytes())
            .map_err(|error| error.kind())
    }

    #[tokio::test]
    async fn body_yields_exactly_the_range() {
        let content: Vec<u8> = (0..200_000).map(|i| (i % 251) as u8).collect();
        assert_eq!(body(&content, 0..200_000).await.unwrap(), content);
        assert_eq!(
            body(&content, 70_000..70_001).await.unwrap(),
            content[70_000..70_001]
        );
        assert_eq!(body(&content, 5..5).await.unwrap(), content[..0]);
        assert_eq!(
            body(&content, 0..200_001).await,
            Err(ErrorKind::UnexpectedEof)
        );
    }
}
