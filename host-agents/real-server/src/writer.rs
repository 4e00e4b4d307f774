// SPDX-License-Identifier: Apache-2.0
//! A response as HTTP/3 frames on a delegated stream.

use bytes::{Bytes, BytesMut};
use frontage_handoff::http3::{data_head, response_head, trailers};
use frontage_handoff::link::Outbox;
use frontage_handoff::message::{Resumable, ToBalancer};
use frontage_http::response::Sink;
use h3::error::Code;
use http::{HeaderMap, Response};
use noq::{SendStream, WriteError};

use crate::credit::CreditNeed;

/// Writes one response.
pub struct Writer<'a> {
    stream: SendStream,
    need: CreditNeed<'a>,
    id: u64,
    outbox: &'a Outbox<ToBalancer>,
    /// Description of the response if the balancer can resume it.
    resumable: Option<Resumable>,
    /// Missing bytes in a DATA frame whose head is written. Every part of the body gets its own frame if
    /// the response cannot be resumed.
    missing: Option<u64>,
    /// Bytes written: the stream's final size once it ends.
    pub written: u64,
}

impl<'a> Writer<'a> {
    /// Create a writer on a new `stream`. `need` requests credit. A `resumable` response is described to the balancer
    /// under the client's stream id.
    pub const fn new(
        stream: SendStream,
        need: CreditNeed<'a>,
        (id, outbox): (u64, &'a Outbox<ToBalancer>),
        resumable: Option<Resumable>,
    ) -> Self {
        Self {
            stream,
            need,
            id,
            outbox,
            resumable,
            missing: None,
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

    /// Return whether the body has the announced length.
    pub fn is_complete(&self) -> bool {
        self.missing.is_none_or(|missing| missing == 0)
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
        let head = response_head(head.status(), head.headers());
        let Some(mut response) = self.resumable.take() else {
            return self.write(head).await;
        };
        let mut both = BytesMut::from(&head[..]);
        both.extend_from_slice(&data_head(response.size as usize));
        if response.tag.len() + both.len() > Resumable::MAX_HEAD {
            return self.write(head).await;
        }
        self.missing = Some(response.size);
        response.head = both.freeze();
        let head = response.head.clone();
        self.outbox.send(&ToBalancer::Resumable {
            stream: self.id,
            response,
        });
        self.write(head).await
    }

    async fn data(&mut self, data: Bytes) -> Result<(), WriteError> {
        match &mut self.missing {
            None => self.write(data_head(data.len())).await?,
            Some(missing) => match missing.checked_sub(data.len() as u64) {
                Some(rest) => *missing = rest,
                None => return Err(WriteError::ClosedStream),
            },
        }
        self.write(data).await
    }

    async fn trailers(&mut self, fields: HeaderMap) -> Result<(), WriteError> {
        match self.missing {
            None => self.write(trailers(&fields)).await,
            // A response that can be resumed must not have trailers, because a resumed one would lack them.
            Some(_) => Ok(()),
        }
    }

    /// Do nothing: the balancer resets the stream, because only its RESET_STREAM is delivered reliably.
    fn reset(&mut self, _: Code) {}
}
