//! Packets that waited for their numbers ([`super::pool`]) leave here, once these come.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use noq::UdpSender;
use noq::udp::{EcnCodepoint, Transmit};

use super::seal::Sealer;
use super::socket::Routes;

/// Most octets that the kernel splits into datagrams.
const OCTETS: usize = u16::MAX as usize - 48;

/// Sends what `sealer` has to, to the client whose stand-in is at `address`, until the grant is over or `sender` fails.
pub async fn leave(
    mut sender: Pin<Box<dyn UdpSender>>,
    sealer: Arc<Sealer>,
    routes: Arc<Routes>,
    address: IpAddr,
) {
    let most = sender.max_transmit_segments().get();
    let mut batch = Batch::default();
    let Some(pool) = sealer.pool() else { return };
    while pool.ready().await {
        // A batch is sealed and sent in one turn: by that, a sender that makes sources of cookies knows whose it is.
        batch.fill(&sealer, most);
        let Some((client, server)) = routes.of(address) else {
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

/// Sealed packets of one mark, all as long as the first, but that the last may be shorter.
#[derive(Default)]
struct Batch {
    contents: Vec<u8>,
    segment: usize,
    ecn: Option<EcnCodepoint>,
}

impl Batch {
    /// Up to `most` packets for which there are numbers.
    fn fill(&mut self, sealer: &Sealer, most: usize) {
        self.contents.clear();
        self.segment = 0;
        for _ in 0..most {
            let start = self.contents.len();
            let next = sealer.seal_next(&mut self.contents, |next| {
                start == 0
                    || start.is_multiple_of(self.segment)
                        && next.octets.len() <= self.segment
                        && next.ecn == self.ecn
                        && start + next.octets.len() <= OCTETS
            });
            let Some(ecn) = next else { return };
            if start == 0 {
                (self.segment, self.ecn) = (self.contents.len(), ecn);
            }
        }
    }
}
