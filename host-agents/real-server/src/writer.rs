//! An answer as HTTP/3 frames on a borrowed stream.

use bytes::Bytes;
use frontage_cclb7_quic::exchange::answer::Sink;
use frontage_handoff::http3::{data_head, response_head, trailers};
use h3::error::Code;
use http::{HeaderMap, Response};
use noq::{SendStream, WriteError};

use crate::credit::Need;

/// Writes one answer.
pub struct Writer<'a> {
    stream: SendStream,
    need: Need<'a>,
    /// Bytes of the stream that were written: its final size once it ends.
    pub written: u64,
}

impl<'a> Writer<'a> {
    /// Writes to `stream`, on which nothing was written yet, by what `need` sees to.
    pub const fn new(stream: SendStream, need: Need<'a>) -> Self {
        Self {
            stream,
            need,
            written: 0,
        }
    }

    /// Ends the stream, and waits until the client has all of it.
    ///
    /// # Errors
    /// With the client's code if it wants no more, or if the connection is lost.
    pub async fn acknowledged(&mut self) -> Result<(), WriteError> {
        match self.stream.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(WriteError::Stopped(code)),
            Err(error) => Err(error.into()),
        }
    }

    /// Nothing more is written.
    pub fn finish(&mut self) {
        // A stream that was stopped needs no end; waiting for the acknowledgement tells.
        let _ = self.stream.finish();
    }

    async fn write(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        let length = bytes.len() as u64;
        self.need.write(self.written + length);
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

    /// The balancer tells the client: it alone may be sure to be heard.
    fn reset(&mut self, _: Code) {}
}
