//! What is known of one connection, under the lender's lock.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use super::confirmation::Confirmation;
use super::credit::Credit;
use super::path::{Holder, Path};
use super::paths::Paths;
use super::ratchet::Ratchet;
use super::shared::Shared;
use super::split::Scratch;
use super::streams::Streams;
use super::{End, Error};
use crate::grant::Grant;

/// Packets that are on their way to a client at most: 80 MB.
const IN_FLIGHT: u64 = 1 << 16;

#[derive(Default)]
pub(super) struct State {
    pub(super) paths: Paths,
    /// If they are lent one by one.
    pub(super) shared: Option<Shared>,
    /// The client may have several paths.
    pub(super) several: bool,
    pub(super) streams: Streams,
    pub(super) credit: Credit,
    pub(super) confirmation: Confirmation,
    /// Once the handshake is over.
    pub(super) ratchet: Option<Ratchet>,
    /// The client's transport parameters.
    pub(super) parameters: Bytes,
    /// Bytes that the client takes of a stream that it opened, unless it says otherwise.
    pub(super) limit: u64,
    /// Of noq's packets without a path, how many there are.
    pub(super) void: u64,
    /// Packets of real servers that the client has, by the newest keys.
    pub(super) elsewhere: u64,
    /// By which path noq is to ask whether the client is there; and whether it has, for some loan.
    pub(super) asking: Option<u32>,
    pub(super) is_asked: bool,
    /// Why the connection is to be closed: a code of the transport's.
    pub(super) violation: Option<u64>,
    /// Lent streams in the packet that is being sealed.
    pub(super) ended: Vec<u64>,
    pub(super) scratch: Scratch,
    closed: bool,
}

impl State {
    /// A packet is of this generation of keys.
    pub(super) fn advance(&mut self, generation: u32) {
        let ratchet = self.ratchet.as_mut();
        if let Some(keys) = ratchet.and_then(|ratchet| ratchet.advance(generation)) {
            self.elsewhere = 0;
            for loan in self.paths.iter().filter_map(Path::loan) {
                loan.feedback.keys(keys.clone());
            }
        }
    }

    /// Packets that real servers have sealed by the newest keys, and that generation of keys. Some more, for those that the client does not have.
    pub(super) fn sealed_remotely(&self) -> (u32, u32) {
        let sealed = match self.elsewhere {
            0 => 0,
            acked => u32::try_from(acked + IN_FLIGHT).unwrap_or(u32::MAX),
        };
        let generation = self
            .ratchet
            .as_ref()
            .map_or(0, |ratchet| ratchet.keys.generation);
        (generation, sealed)
    }

    /// Whether anything may be lent.
    pub(super) fn ready(&self) -> bool {
        !self.closed && self.ratchet.is_some()
    }

    /// The first path that may be lent.
    pub(super) fn free(&self) -> Option<u32> {
        self.paths.free().filter(|_| self.ready())
    }

    /// What a real server gets that is to send on `path`, but for the numbers and the credit. None if a packet of noq's did not show the path's connection id yet.
    pub(super) fn grant(
        &mut self,
        path: u32,
        [client, server]: [SocketAddr; 2],
        rtt: Duration,
    ) -> Option<Grant> {
        let connection_id = self.paths.get(path)?.ids.used?;
        let ratchet = self.ratchet.as_ref()?;
        Some(Grant {
            path,
            first: 0,
            connection_id,
            suite: ratchet.suite,
            header_secret: ratchet.header.clone(),
            keys: ratchet.keys.clone(),
            client_parameters: self.parameters.clone(),
            server,
            client,
            credit: 0,
            rtt,
        })
    }

    /// What nobody has, to those that want more, each as much; but noq first, if it is short.
    pub(super) fn share(&mut self) {
        self.credit.balance_if_short();
        let wanting = |path: &&mut Path| path.wants() > 0;
        let mut count = self.paths.iter().filter(wanting).count() as u64;
        for path in self.paths.iter().filter(wanting) {
            let bytes = path.wants().min(self.credit.left() / count);
            count -= 1;
            if bytes > 0 {
                path.raise(self.credit.lend(bytes));
            }
        }
    }

    pub(super) fn abandon(&mut self, path: u32) {
        if let Some(path) = self.paths.get(path) {
            path.abandon();
        }
    }

    /// The connection ends.
    pub(super) fn close(&mut self) {
        self.closed = true;
        for loan in self.paths.iter().filter_map(Path::loan) {
            loan.feedback.close();
        }
    }

    /// A real server is through with a stream.
    pub(super) fn take_back(&mut self, id: u64, end: End) -> Result<(), Error> {
        let stream = self.streams.get(id).ok_or(Error::Stream(id))?;
        if stream.end.is_some() {
            return Err(Error::Ended(id));
        }
        let path = self.paths.get(stream.path);
        let (limit, id_of_path) = (stream.limit, stream.path);
        let account = path.map(|path| &mut path.account);
        let size = end.final_size().unwrap_or_else(|| {
            // The client must not have more of it than this says (RFC 9000, section 4.5).
            let bound = account.as_ref().map_or(0, |account| account.bound());
            limit.min(bound)
        });
        if size > limit {
            return Err(Error::FinalSize { stream: id, size });
        }
        if let Some(account) = account {
            // Of a real server that died with several streams nobody knows what it sent of which.
            let more = size.saturating_sub(account.unused());
            if more > self.credit.left() {
                return Err(Error::Credit { more });
            }
            account.reserve(self.credit.lend(more));
            account.tell(size, end.final_size().is_some());
        }
        stream.end = Some(end.of_size(size));
        self.settle(id_of_path);
        Ok(())
    }

    /// What a real server did not use is nobody's once it cannot send any more, and its streams have ended.
    pub(super) fn settle(&mut self, path: u32) {
        if self.streams.open(path) {
            return;
        }
        if let Some(path) = self.paths.get(path)
            && !matches!(path.holder, Holder::RealServer(_))
        {
            self.credit.give_back(path.account.unused());
            path.account = Default::default();
        } else {
            return;
        }
        if self.is_name(path) {
            self.paths.remove(path);
        }
        // The client may wait for those that do before it takes more.
        self.share();
    }
}
