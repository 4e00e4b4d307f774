// SPDX-License-Identifier: Apache-2.0
//! Sends packets that waited for their numbers ([`super::number_pool`]).

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use noq::UdpSender;
use noq::udp::{EcnCodepoint, Transmit};

use super::sealer::Sealer;
use super::socket::Routes;

/// Maximum number of octets that the kernel splits into datagrams.
const MAX_BATCH_LEN: usize = u16::MAX as usize - 48;

/// Send the waiting packets of `sealer` to the client whose stand-in is `address`, until the grant ends or `sender` fails.
pub async fn run(
    mut sender: Pin<Box<dyn UdpSender>>,
    sealer: Arc<Sealer>,
    routes: Arc<Routes>,
    address: IpAddr,
) {
    let max_segments = sender.max_transmit_segments().get();
    let mut batch = Batch::default();
    let Some(pool) = sealer.pool() else { return };
    while pool.ready().await {
        // A batch is sealed and sent without interruption, so that a sender with cookie sources knows its connection.
        batch.fill(&sealer, max_segments);
        let Some((client, server)) = routes.addresses(address) else {
            return;
        };
        if batch.contents.is_empty() {
            continue;
        }
        let transmit = Transmit {
            destination: client,
            ecn: batch.ecn,
            contents: &batch.contents,
            segment_size: Some(batch.segment).filter(|size| *size < batch.contents.len()),
            src_ip: Some(server),
        };
        if poll_fn(|cx| sender.as_mut().poll_send(&transmit, cx))
            .await
            .is_err()
        {
            sealer.revoke();
            return;
        }
    }
}

/// Sealed packets with the same ECN codepoint. All are as long as the first, except that the last may be shorter.
#[derive(Default)]
struct Batch {
    contents: Vec<u8>,
    segment: usize,
    ecn: Option<EcnCodepoint>,
}

impl Batch {
    /// Take up to `max_segments` packets for which there are numbers.
    fn fill(&mut self, sealer: &Sealer, max_segments: usize) {
        self.contents.clear();
        self.segment = 0;
        for _ in 0..max_segments {
            let start = self.contents.len();
            let next = sealer.seal_next(&mut self.contents, |next| {
                start == 0
                    || start.is_multiple_of(self.segment)
                        && next.octets.len() <= self.segment
                        && next.ecn == self.ecn
                        && start + next.octets.len() <= MAX_BATCH_LEN
            });
            let Some(ecn) = next else { return };
            if start == 0 {
                (self.segment, self.ecn) = (self.contents.len(), ecn);
            }
        }
    }
}
