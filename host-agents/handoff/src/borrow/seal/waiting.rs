//! Packets that wait for their numbers, in the clear; noq's socket knows them by their first octet.

use std::sync::atomic::Ordering::Relaxed;

use noq::udp::EcnCodepoint;

use super::header::SPIN;
use super::{Sealer, TAG};
use crate::borrow::pool::Unnumbered;

/// With [`SPIN`] or not, that of a packet which waits for its number, in the clear.
const WAITING: u8 = 0x10;

/// Octets of noq's own number, behind a packet that waits, where its tag will be; the header's length follows.
const OWN: usize = 8;

/// Marks noq's packet `own` as one that waits.
pub(super) fn wait(own: u64, packet: &mut [u8], header_len: usize) {
    let end = packet.len() - TAG;
    packet[end..end + OWN].copy_from_slice(&own.to_be_bytes());
    packet[end + OWN] = header_len as u8;
    packet[0] = WAITING | packet[0] & SPIN;
}

/// Whether a packet of noq's is one that waits for its number.
pub fn waits(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first & !SPIN == WAITING)
}

impl Sealer {
    /// Seals the next packet that waits, if there is a number for it and `fits`: behind what is in `batch`, unless it is not to leave any more. Its mark, if there was
    /// one. No key may come between the number and the seal.
    pub fn seal_next(
        &self,
        batch: &mut Vec<u8>,
        fits: impl FnOnce(&Unnumbered) -> bool,
    ) -> Option<Option<EcnCodepoint>> {
        let state = &mut *self.state();
        let pool = self.pool.as_ref()?;
        let next = pool.pop(fits)?;
        let start = batch.len();
        batch.extend(&next.octets);
        let packet = &mut batch[start..];
        let end = packet.len() - TAG;
        let (own, rest) = packet[end..].split_at(OWN);
        let own = u64::from_be_bytes(own.try_into().expect("of its length"));
        let header_len = usize::from(rest[0]);
        let number = pool.take(own)?;
        if !self.sealed(state, number, packet, header_len, &*pool.observer) {
            self.counts.withheld.fetch_add(1, Relaxed);
            batch.truncate(start);
        }
        Some(next.ecn)
    }
}
