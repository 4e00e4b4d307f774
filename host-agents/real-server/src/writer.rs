// SPDX-License-Identifier: Apache-2.0
//! A response as HTTP/3 frames on a delegated stream.

use bytes::Bytes;
use frontage_handoff::http3::{data_head, response_head, trailers};
use frontage_http::response::Sink;
use h3::error::Code;
use http::{HeaderMap, Response};
use noq::{SendStream, WriteError};

use crate::credit::CreditNeed;

/// Writes one response.
pub struct Writer<'a> {
    stream: SendStream,
    need: CreditNeed<'a>,
    /// Bytes written: the stream's final size once it ends.
    pub written: u64,
}

impl<'a> Writer<'a> {
    /// Create a writer on a new `stream`. `need` requests credit.
    pub const fn new(stream: SendStream, need: CreditNeed<'a>) -> Self {
        Self {
            stream,
            need,
            written: 0,
        }
    }

    /// Wait until the client has acknowledged the whole stream.
    ///
    /// # Errors
    /// If the client stops the stream or the connection is lost.
    pub async fn acknowledged(&mut self) -> Result<(), WriteError> {
        match self.stream.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(WriteError::Stopped(code)),
            Err(error) => Err(error.into()),
        }
    }

    /// Finish the stream, and release the credit that it did not need.
    pub fn finish(&mut self) {
        self.need.release_unused();
        // Fails if the client has stopped the stream, which `acknowledged` reports.
        let _ = self.stream.finish();
    }

    async fn write(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        let length = bytes.len() as u64;
        self.need.on_write(self.written + length);
        self.stream.write_chunk(bytes).await?;
        self.written += length;
        Ok(())
    }
}

impl Sink for Writer<'_> {
    type Error = WriteError;

    async fn head(&mut self, head: Response<()>) -> Result<(), WriteError> {
        self.write(response_head(head.status(), head.headers()))
            .await
    }

    async fn data(&mut self, data: Bytes) -> Result<(), WriteError> {
        self.write(data_head(data.len())).await?;
        self.write(data).await
    }

    async fn trailers(&mut self, fields: HeaderMap) -> Result<(), WriteError> {
        self.write(trailers(&fields)).await
    }

    /// Do nothing: the balancer resets the stream, because only its RESET_STREAM is delivered reliably.
    fn reset(&mut self, _: Code) {}
}
