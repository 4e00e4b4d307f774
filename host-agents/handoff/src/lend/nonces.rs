//! No nonce is used twice, whatever becomes of paths, keys and those who have them (RFC 9001, section 5.3).

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use frontage_quic::session::{Nonce, Observer, Outgoing, Packet};
use noq::ConnectionId;
use proptest::prelude::*;

use super::ratchet::Ratchet;
use super::state::State;
use crate::borrow::seal::Sealer;
use crate::grant::{Grant, Keys};

const SUITE: u16 = 0x1301;
/// Of the paths, path 0 among them, which is never lent.
const PATHS: usize = 3;

/// Generations of keys, and nonces.
#[derive(Default)]
struct Used(Mutex<HashSet<(u32, u32, u64)>>);

impl Used {
    fn insert(&self, generation: u32, nonce: Nonce) {
        let nonce = (generation, nonce.path, nonce.number);
        assert!(self.0.lock().unwrap().insert(nonce), "{nonce:?} again");
    }
}

impl Observer for Used {
    fn on_sent(&self, packet: &Packet<'_>) {
        let (path, number) = (packet.path, packet.number);
        self.insert(packet.generation, Nonce { path, number });
    }

    fn on_received(&self, _: &Packet<'_>) {}
}

/// A real server, which goes on whether or not the balancer knows it for alive.
struct RealServer {
    sealer: Sealer,
    path: usize,
    /// noq's next number there.
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

    /// noq makes a packet of a PING.
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
    /// noq sends on a path.
    Send(usize),
    Lend(usize),
    /// A real server, of all that ever were, sends.
    Seal(usize),
    /// The one that has the path gives it back.
    Return(usize),
    /// The client acknowledges all of a path.
    Acknowledge(usize),
    /// The balancer takes the one that has the path for dead.
    Forsake(usize),
    /// noq seals by the next keys from now on.
    Update,
    /// Real servers learn the newest keys.
    Rekey,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..PATHS).prop_map(Step::Send),
        3 => (1..PATHS).prop_map(Step::Lend),
        12 => (0..64usize).prop_map(Step::Seal),
        2 => (1..PATHS).prop_map(Step::Return),
        4 => (1..PATHS).prop_map(Step::Acknowledge),
        1 => (1..PATHS).prop_map(Step::Forsake),
        1 => Just(Step::Update),
        2 => Just(Step::Rekey),
    ]
}

proptest! {
    #[test]
    fn no_nonce_is_used_twice(steps in prop::collection::vec(step(), 1..300)) {
        let used = Used::default();
        let mut state = State::default();
        state.ratchet = Ratchet::new(SUITE, vec![9; 32]);
        let mut keys = state.ratchet.as_ref().unwrap().keys.clone();
        let mut servers: Vec<RealServer> = Vec::new();
        let (mut numbers, mut generation) = ([0; PATHS], 0);
        for step in steps {
            match step {
                Step::Send(path) => {
                    let number = numbers[path];
                    numbers[path] += 1;
                    let nonce = state.seal(&mut Outgoing {
                        path: path as u32,
                        number,
                        generation,
                        header: &mut [0x43, 0, 0, 0, number as u8],
                        payload: &mut [0x01],
                        needs_long_number: false,
                    });
                    used.insert(generation, nonce);
                    keys = state.ratchet.as_ref().unwrap().keys.clone();
                }
                Step::Lend(path) => {
                    let known = state.paths.get_or_new(path as u32).unwrap();
                    if let Some((first, _)) = known.lend(0) {
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
                    let known = state.paths.get(path as u32);
                    if let (Some(server), Some(known)) = (last, known)
                        && known.loan().is_some()
                    {
                        server.returned = true;
                        known.give_back(server.sealer.revoke());
                    }
                }
                Step::Acknowledge(path) => {
                    let largest = servers.iter().filter(|server| server.path == path);
                    let largest = largest.map(|server| server.sealer.next()).max();
                    if let (Some(largest), Some(known)) = (largest, state.paths.get(path as u32))
                        && largest > 0
                    {
                        known.acked(largest - 1, None);
                    }
                }
                Step::Forsake(path) => if let Some(known) = state.paths.get(path as u32)
                    && known.loan().is_some()
                {
                    known.spend();
                },
                Step::Update => generation += 1,
                Step::Rekey => for server in &servers {
                    server.sealer.rekey(&keys).unwrap();
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
