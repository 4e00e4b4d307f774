// SPDX-License-Identifier: Apache-2.0
//! Streams that noq takes over from a dead real server.

use std::ops::Range;

use frontage_quic::session::Outgoing;
use frontage_quic_wire::write_varint;
use tokio::sync::watch;

use super::super::resumed::{MAX_FRAME_GROWTH, ResumedStream};
use super::{Connection, Error};

/// Type of MAX_STREAM_DATA (RFC 9000, section 19.10).
const MAX_STREAM_DATA: u64 = 0x11;
/// Credit in bytes that noq needs to resume a stream. With any credit it can repeat the real server's bytes, because
/// the credit for that becomes noq's.
const MIN_CREDIT: u64 = 16 << 10;

impl Connection {
    /// See [`super::super::Delegator::resume_stream`].
    pub(in super::super) fn resume_stream(
        &mut self,
        id: u64,
        from: u64,
        final_size: u64,
    ) -> Result<watch::Receiver<u64>, Error> {
        let stream = self.streams.get(id).ok_or(Error::Stream(id))?;
        if !stream.is_remote() {
            return Err(Error::Ended(id));
        }
        let (path, limit) = (stream.path(), stream.limit());
        if from > limit.min(final_size) {
            return Err(Error::FinalSize {
                stream: id,
                size: from,
            });
        }
        let needed = MIN_CREDIT.min(final_size - from);
        if !self.flow.has_free(needed) {
            return Err(Error::Credit { missing: needed });
        }
        let account = self.paths.get(path).map(|path| path.account_mut());
        let max_sent = self.flow.charge(account, id, None, limit.min(final_size))?;
        let overlap = max_sent.saturating_sub(from);
        self.flow.resume(id, overlap);
        let resumed = ResumedStream::new(from, overlap, limit);
        let limits = resumed.limits();
        self.streams.resume(id, resumed);
        self.on_stream_end(path);
        Ok(limits)
    }

    /// See [`super::super::Delegator::forget_resumed`].
    pub(in super::super) fn forget_resumed(&mut self, id: u64) {
        self.streams.forget_resumed(id);
        self.flow.forget_resumed(id);
    }

    /// Append the limits of resumed streams that noq does not know yet. Returns whether there are any.
    pub(super) fn put_resumed_limits(&mut self, frames: &mut Vec<u8>) -> bool {
        let before = frames.len();
        for (id, limit) in self.streams.take_limits() {
            put_max_stream_data(frames, id, limit);
        }
        frames.len() > before
    }

    /// Rewrite the frames of resumed streams, which are at `spans`.
    pub(super) fn shift_resumed(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        spans: &[(Range<usize>, u64)],
    ) {
        let payload = &*outgoing.payload;
        let mut longer = Vec::with_capacity(payload.len() + MAX_FRAME_GROWTH * spans.len());
        let mut end = 0;
        for (span, id) in spans {
            longer.extend_from_slice(&payload[end..span.start]);
            end = span.end;
            let stream = self.streams.get(*id).and_then(|stream| stream.resumed());
            let written =
                stream.and_then(|stream| stream.write(&payload[span.clone()], &mut longer));
            debug_assert!(written.is_some(), "the frame was parsed");
        }
        longer.extend_from_slice(&payload[end..]);
        outgoing.longer_payload = Some(longer);
    }
}

/// Append MAX_STREAM_DATA.
pub(super) fn put_max_stream_data(frames: &mut Vec<u8>, id: u64, limit: u64) {
    for value in [MAX_STREAM_DATA, id, limit] {
        write_varint(frames, value);
    }
}
