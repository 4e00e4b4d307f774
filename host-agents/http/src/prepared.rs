// SPDX-License-Identifier: Apache-2.0
//! Responses with a whole file from memory, most of whose HTTP/3 frames exist before the request. Such a response is written
//! at once, together with the beginning of its body.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use frontage_quic_wire::write_varint;
use noq::{SendStream, WriteError};

use crate::file_cache::Contents;
use crate::qpack;
use crate::response::date;

/// Frame types (RFC 9114, section 7.2).
const DATA: u64 = 0x00;
const HEADERS: u64 = 0x01;
/// Most bytes of type and length of both frames.
const MAX_FRAME_HEADS: usize = 18;
/// Most bytes of an encoded field `Date`.
const MAX_DATE: usize = 32;

/// A response with status 200 and a whole file.
#[derive(Debug)]
pub struct PreparedResponse(Arc<Contents>);

impl PreparedResponse {
    /// Prepare the response with a file that is completely in memory.
    pub(crate) fn new(contents: Arc<Contents>) -> Self {
        Self(contents)
    }

    /// Return the length of the body in bytes.
    pub fn length(&self) -> u64 {
        self.0.length()
    }

    /// Write the response to `stream`, and call `on_sent` with the length of each part of the body.
    ///
    /// # Errors
    /// If the client stops the stream or the connection is lost.
    pub async fn send(
        &self,
        stream: &mut SendStream,
        mut on_sent: impl FnMut(u64),
    ) -> Result<(), WriteError> {
        let mut head = Some(self.head());
        let mut sent = 0;
        while let Some(chunk) = self.0.chunk(sent).filter(|chunk| !chunk.is_empty()) {
            let length = chunk.len() as u64;
            match head.take() {
                Some(head) => stream.write_all_chunks(&mut [head, chunk]).await?,
                None => stream.write_chunk(chunk).await?,
            }
            sent += length;
            on_sent(length);
        }
        Ok(())
    }

    /// Return the HEADERS frame, and type and length of the DATA frame.
    fn head(&self) -> Bytes {
        let mut dated = Vec::with_capacity(MAX_DATE);
        qpack::put(&mut dated, qpack::DATE, date().as_bytes());
        let length = self.0.fields.len() + dated.len();
        let mut head = BytesMut::with_capacity(length + MAX_FRAME_HEADS);
        write_varint(&mut head, HEADERS);
        write_varint(&mut head, length as u64);
        head.put_slice(&self.0.fields);
        head.put_slice(&dated);
        write_varint(&mut head, DATA);
        write_varint(&mut head, self.length());
        head.freeze()
    }
}
