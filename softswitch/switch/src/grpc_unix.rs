// SPDX-License-Identifier: Apache-2.0
//! gRPC connections over Unix sockets, from all gRPC implementations.
//!
//! gRPC's C core, and with it the C++ and Python clients, sends the percent-encoded path of the socket as the authority:
//! `:authority: %2Frun%2Fsoftswitch.sock`. This is not a valid authority (RFC 3986, section 3.2), and the `h2` crate
//! rejects the request with PROTOCOL_ERROR. The server does not use the name, so this module replaces the percent signs
//! before the request is parsed.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use prost::bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tonic::transport::server::{Connected, UdsConnectInfo};

/// Size of a read in bytes.
const READ: usize = 64 << 10;

/// A connection whose requests have a valid authority.
#[derive(Debug)]
pub struct GrpcUnixStream<S = UnixStream> {
    inner: S,
    filter: Filter,
}

impl<S> GrpcUnixStream<S> {
    /// Wraps an accepted connection, after its TLS handshake if it has one.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            filter: Filter::default(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GrpcUnixStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.filter.passed == 0 {
            let mut chunk = [MaybeUninit::uninit(); READ];
            let mut chunk = ReadBuf::uninit(&mut chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            if chunk.filled().is_empty() {
                // A truncated frame is an error for every parser.
                this.filter.passed = this.filter.buffer.len();
                break;
            }
            this.filter.push(chunk.filled());
        }
        let n = this.filter.passed.min(out.remaining());
        out.put_slice(&this.filter.buffer[..n]);
        this.filter.take(n);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GrpcUnixStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl Connected for GrpcUnixStream {
    type ConnectInfo = UdsConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.inner.connect_info()
    }
}

/// Length of HTTP/2's connection preface (RFC 9113, section 3.4).
const PREFACE: usize = 24;
const FRAME_HEADER: usize = 9;
const HEADERS: u8 = 1;
const FLAG_PADDED: u8 = 0x08;
const FLAG_PRIORITY: u8 = 0x20;

/// Index of `:authority` in HPACK's static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;

/// Follows the frames of an HTTP/2 connection.
#[derive(Debug, Default)]
struct Filter {
    /// Received bytes that have not been read.
    buffer: BytesMut,
    /// Number of these bytes that have been examined.
    passed: usize,
    /// Number of bytes of the current frame to pass through unexamined.
    skip: usize,
    preface_seen: bool,
}

impl Filter {
    fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if !self.preface_seen {
            self.preface_seen = true;
            self.skip = PREFACE;
        }
        loop {
            let seen = self.skip.min(self.buffer.len() - self.passed);
            self.passed += seen;
            self.skip -= seen;
            let rest = &mut self.buffer[self.passed..];
            if self.skip > 0 || rest.len() < FRAME_HEADER {
                return;
            }
            let len = usize::from(rest[0]) << 16 | usize::from(rest[1]) << 8 | usize::from(rest[2]);
            let (kind, flags) = (rest[3], rest[4]);
            if kind == HEADERS {
                let Some(payload) = rest.get_mut(FRAME_HEADER..FRAME_HEADER + len) else {
                    return;
                };
                let begin = usize::from(flags & FLAG_PADDED != 0)
                    + if flags & FLAG_PRIORITY != 0 { 5 } else { 0 };
                if let Some(block) = payload.get_mut(begin..) {
                    // A header block that cannot be parsed passes unchanged.
                    let _ = clean_authority(block);
                }
            }
            self.skip = FRAME_HEADER + len;
        }
    }

    fn take(&mut self, n: usize) {
        self.buffer.advance(n);
        self.passed -= n;
    }
}

/// Replaces percent signs in a literal `:authority` of a header block (RFC 7541, section 6). Lengths do not
/// change, so the dynamic tables of both ends stay equal.
fn clean_authority(block: &mut [u8]) -> Option<()> {
    let mut at = 0;
    while at < block.len() {
        let first = block[at];
        let name = match first {
            // Indexed field; then table size update.
            0x80.. => {
                integer(block, &mut at, 7)?;
                continue;
            }
            0x20..0x40 => {
                integer(block, &mut at, 5)?;
                continue;
            }
            // Literal with indexing; without, and never indexed.
            0x40..0x80 => integer(block, &mut at, 6)?,
            ..0x20 => integer(block, &mut at, 4)?,
        };
        // A name is an index, or stands here itself.
        let is_authority = match name {
            0 => {
                let name = string(block, &mut at)?;
                block[name] == *b":authority"
            }
            index => index == AUTHORITY,
        };
        let value = string(block, &mut at)?;
        if is_authority {
            for byte in block[value].iter_mut().filter(|b| **b == b'%') {
                *byte = b'-';
            }
        }
    }
    Some(())
}

/// An integer with a prefix of so many bits (RFC 7541, section 5.1).
fn integer(block: &[u8], at: &mut usize, prefix: u32) -> Option<usize> {
    let mask = (1usize << prefix) - 1;
    let mut value = usize::from(*block.get(*at)?) & mask;
    *at += 1;
    if value < mask {
        return Some(value);
    }
    for shift in (0..28).step_by(7) {
        let byte = *block.get(*at)?;
        *at += 1;
        value += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Returns the range of a string's bytes (RFC 7541, section 5.2); empty if they are Huffman-coded.
fn string(block: &[u8], at: &mut usize) -> Option<std::ops::Range<usize>> {
    let huffman = block.get(*at)? & 0x80 != 0;
    let len = integer(block, at, 7)?;
    let range = *at..at.checked_add(len).filter(|end| *end <= block.len())?;
    *at = range.end;
    Some(if huffman { 0..0 } else { range })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the preface, a SETTINGS frame, HEADERS with an authority, and DATA with a percent sign.
    fn connection() -> Vec<u8> {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
        let mut block = vec![0x83, 0x86, 0x3f, 0xe1, 0x1f];
        block.extend(b"\x44\x05/a%25");
        block.extend(b"\x41\x0a%2Frun%2Fs");
        block.extend(b"\x40\x01x\x03a%b");
        block.extend(b"\x40\x0a:authority\x02%z");
        block.push(0xbe);
        bytes.extend([0, 0, block.len() as u8, HEADERS, 4, 0, 0, 0, 1]);
        bytes.extend(&block);
        bytes.extend([0, 0, 3, 0, 1, 0, 0, 0, 1]);
        bytes.extend(b"\x41\x01%");
        bytes
    }

    fn filter(chunks: &mut dyn Iterator<Item = &[u8]>) -> Vec<u8> {
        let mut filter = Filter::default();
        let mut out = Vec::new();
        for chunk in chunks {
            filter.push(chunk);
            out.extend_from_slice(&filter.buffer[..filter.passed]);
            filter.take(filter.passed);
        }
        out.extend_from_slice(&filter.buffer);
        out
    }

    #[test]
    fn only_authority_changes_for_any_segmentation() {
        let bytes = connection();
        let mut expected = bytes.clone();
        let at = bytes.windows(10).position(|w| w == b"%2Frun%2Fs").unwrap();
        expected[at..at + 10].copy_from_slice(b"-2Frun-2Fs");
        let at = bytes.windows(2).position(|w| w == b"%z").unwrap();
        expected[at] = b'-';
        for size in 1..=bytes.len() {
            assert_eq!(
                filter(&mut bytes.chunks(size)),
                expected,
                "chunks of {size}"
            );
        }
    }

    #[test]
    fn invalid_bytes_do_not_panic() {
        let mut bytes = connection();
        for i in 0..bytes.len() {
            let old = bytes[i];
            for new in [0, 0x7f, 0xff] {
                bytes[i] = new;
                filter(&mut bytes.chunks(7));
            }
            bytes[i] = old;
        }
    }
}
