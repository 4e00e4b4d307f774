// SPDX-License-Identifier: Apache-2.0
//! No nonce is used twice in any order of delegations, returns, deaths and key updates (RFC 9001, section 5.3).

use std::collections::HashSet;

use frontage_quic::session::{Nonce, Observer, Outgoing, Packet};
use noq::ConnectionId;
use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;
use crate::delegate::sealer::Sealer;

const SUITE: u16 = 0x1301;
/// Number of paths, including path 0, which is never delegated.
const PATHS: usize = 3;

/// Key generations, paths and packet numbers that were used.
#[derive(Default)]
struct Used(Mutex<HashSet<(u32, u32, u64)>>);

impl Used {
    fn insert(&self, generation: u32, nonce: Nonce) {
        let nonce = (generation, nonce.path, nonce.number);
        assert!(self.0.lock().insert(nonce), "{nonce:?} used twice");
    }
}

impl Observer for Used {
    fn on_sent(&self, packet: &Packet<'_>) {
        let (path, number) = (packet.path, packet.number);
        self.insert(packet.generation, Nonce { path, number });
    }

    fn on_received(&self, _: &Packet<'_>) {}
}

/// A real server, which keeps sending whether or not the balancer considers it alive.
struct RealServer {
    sealer: Sealer,
    path: usize,
    /// The next number of its own noq.
    next: u64,
    returned: bool,
}

impl RealServer {
    fn new(path: usize, first: u64, keys: &Keys) -> Self {
        let address = "192.0.2.1:443".parse().unwrap();
        let grant = Grant {
            path: path as u32,
            first,
            connection_id: ConnectionId::new(&[path as u8; 8]),
            suite: SUITE,
            header_secret: Bytes::from_static(&[9; 32]),
            keys: keys.clone(),
            client_parameters: Bytes::new(),
            server: address,
            client: address,
            credit: 0,
            rtt: Duration::ZERO,
        };
        Self {
            sealer: Sealer::new(&grant, Arc::default()).unwrap(),
            path,
            next: 0,
            returned: false,
        }
    }

    /// Send a PING.
    fn send(&mut self, used: &Used) {
        let mut packet = vec![0; 1 + 11 + 1 + 20 + 16];
        packet[0] = 0x40;
        let header_len = 13;
        packet[header_len] = 0x01;
        self.sealer.seal(self.next, &mut packet, header_len, used);
        self.next += 1;
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The balancer's noq sends on a path.
    Send(usize),
    Delegate(usize),
    /// A past or present real server sends.
    Seal(usize),
    /// The real server of a path returns it.
    Return(usize),
    /// The client acknowledges all packets of a path.
    Acknowledge(usize),
    /// The balancer considers the real server of a path dead.
    Abandon(usize),
    /// The balancer's noq updates its keys.
    Update,
    /// All real servers get the newest keys.
    Rekey,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..PATHS).prop_map(Step::Send),
        3 => (1..PATHS).prop_map(Step::Delegate),
        12 => (0..64usize).prop_map(Step::Seal),
        2 => (1..PATHS).prop_map(Step::Return),
        4 => (1..PATHS).prop_map(Step::Acknowledge),
        1 => (1..PATHS).prop_map(Step::Abandon),
        1 => Just(Step::Update),
        2 => Just(Step::Rekey),
    ]
}

proptest! {
    #[test]
    fn no_nonce_is_used_twice(steps in prop::collection::vec(step(), 1..300)) {
        let used = Used::default();
        let mut connection = Connection::default();
        connection.keys.install(SUITE, vec![9; 32]);
        let mut keys = connection.keys.ratchet().unwrap().keys().clone();
        let mut servers: Vec<RealServer> = Vec::new();
        let (mut numbers, mut generation) = ([0; PATHS], 0);
        for step in steps {
            match step {
                Step::Send(path) => {
                    let number = numbers[path];
                    numbers[path] += 1;
                    let nonce = connection.seal(&mut Outgoing {
                        path: path as u32,
                        number,
                        generation,
                        header: &mut [0x43, 0, 0, 0, number as u8],
                        payload: &mut [0x01],
                        needs_long_number: false,
                        longer_payload: None,
                    });
                    used.insert(generation, nonce);
                    keys = connection.keys.ratchet().unwrap().keys().clone();
                }
                Step::Delegate(path) => {
                    let known = connection.paths.get_or_new(path as u32).unwrap();
                    if let Some((first, _)) = known.delegate(0) {
                        servers.push(RealServer::new(path, first, &keys));
                    }
                }
                Step::Seal(i) if !servers.is_empty() => {
                    let i = i % servers.len();
                    servers[i].send(&used);
                }
                Step::Seal(_) => {}
                Step::Return(path) => {
                    let last = servers.iter_mut().rev().find(|server| server.path == path);
                    let known = connection.paths.get(path as u32);
                    if let (Some(server), Some(known)) = (last, known)
                        && known.is_delegated()
                    {
                        server.returned = true;
                        known.return_from(server.sealer.revoke()).unwrap();
                    }
                }
                Step::Acknowledge(path) => {
                    let largest = servers.iter().filter(|server| server.path == path);
                    let largest = largest.map(|server| server.sealer.next()).max();
                    if let (Some(largest), Some(known)) = (largest, connection.paths.get(path as u32))
                        && largest > 0
                    {
                        known.on_ack(largest - 1, None);
                    }
                }
                Step::Abandon(path) => if let Some(known) = connection.paths.get(path as u32)
                    && known.is_delegated()
                {
                    known.retire();
                },
                Step::Update => generation += 1,
                Step::Rekey => for server in &servers {
                    server.sealer.set_keys(&keys).unwrap();
                },
            }
        }
        for server in servers.iter_mut().filter(|server| server.returned) {
            let before = server.sealer.next();
            server.send(&used);
            prop_assert_eq!(server.sealer.next(), before);
        }
    }
}
