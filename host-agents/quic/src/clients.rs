//! Which of a server's addresses each client used last, but for what came late.

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

use crate::recent::Recent;
use crate::stragglers::{Shape, Stragglers};

/// Clients whose last address is remembered, at least. One that was forgotten is answered from the VIP until it sends again.
const CLIENTS: usize = 1 << 16;

/// An address of ours, as a client used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    Vip,
    /// With the epoch of the key that sealed it.
    Cookie(u32),
    Plain(IpAddr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Client {
    used: Used,
    /// Both addresses are in use while a path is validated (RFC 9000, section 9.6.2), but a client moves once.
    moved: bool,
    /// To the VIP, once it is at the cookie's address.
    stragglers: Stragglers,
}

/// What a datagram says of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// It is where that came.
    Here,
    /// It went from the VIP to the cookie's address, the first time.
    Moved,
    /// Nothing: it was sent before the client moved.
    Nothing,
}

/// What is known of the clients that came lately.
#[derive(Debug)]
pub struct Clients {
    /// By address and port.
    recent: Mutex<Recent<(u128, u16), Client>>,
    /// How often one was new here, or used another address than before.
    changes: AtomicU64,
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            recent: Mutex::new(Recent::new(CLIENTS)),
            changes: AtomicU64::new(0),
        }
    }
}

impl Clients {
    /// A datagram of `client` came to this address.
    pub fn used(&self, client: SocketAddr, used: Used, shape: Shape) -> Says {
        let mut says = Says::Here;
        let mut recent = self.recent.lock().expect("nobody panics with it");
        recent.change(key(client), |before| {
            let mut client = before.unwrap_or(Client {
                used,
                moved: false,
                stragglers: Stragglers::default(),
            });
            match (client.used, used) {
                (Used::Cookie(_), Used::Vip) if client.stragglers.is_late(shape) => {
                    says = Says::Nothing;
                    return client;
                }
                (Used::Vip, Used::Cookie(_)) if !client.moved => {
                    says = Says::Moved;
                    client.moved = true;
                }
                _ => {}
            }
            if matches!(used, Used::Cookie(_)) {
                client.stragglers.moved(shape);
            }
            if before.is_none_or(|before| before.used != used) {
                self.changes.fetch_add(1, Release);
            }
            Client { used, ..client }
        });
        says
    }

    /// The address that `client` used last.
    pub fn get(&self, client: SocketAddr) -> Used {
        let recent = self.recent.lock().expect("nobody panics with it");
        recent
            .get(&key(client))
            .map_or(Used::Vip, |client| client.used)
    }
}

fn key(client: SocketAddr) -> (u128, u16) {
    let ip = match client.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    (ip.to_bits(), client.port())
}

/// What a connection knows of its client, as long as no client changes.
#[derive(Debug, Default)]
pub struct Known(Option<(u64, SocketAddr, Used)>);

impl Known {
    /// The address that `client` used last.
    pub fn used(&mut self, clients: &Clients, client: SocketAddr) -> Used {
        // Before the look-up: what changes in between is looked up again.
        let changes = clients.changes.load(Acquire);
        match self.0 {
            Some((at, same, used)) if (at, same) == (changes, client) => used,
            _ => {
                let used = clients.get(client);
                self.0 = Some((changes, client, used));
                used
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_connection_knows_is_what_its_client_did_last() {
        let clients = Clients::default();
        let [one, other] = ["[2001:db8::1]:1", "[2001:db8::1]:2"].map(|at| at.parse().unwrap());
        let mut known = Known::default();
        let at = |client, used| clients.used(client, used, Shape::Large);
        assert_eq!(known.used(&clients, one), Used::Vip);
        assert_eq!(at(other, Used::Cookie(1)), Says::Here);
        assert_eq!(known.used(&clients, one), Used::Vip);
        assert_eq!(known.used(&clients, other), Used::Cookie(1));
        assert_eq!(at(one, Used::Vip), Says::Here);
        assert_eq!(at(one, Used::Cookie(0)), Says::Moved);
        assert_eq!(known.used(&clients, one), Used::Cookie(0));
        // It goes back for a probe, and comes again: it moved once.
        assert_eq!(at(one, Used::Vip), Says::Here);
        assert_eq!(known.used(&clients, one), Used::Vip);
        assert_eq!(at(one, Used::Cookie(0)), Says::Here);
        assert_eq!(known.used(&clients, one), Used::Cookie(0));
    }

    #[test]
    fn what_was_on_its_way_to_the_vip_says_nothing() {
        let clients = Clients::default();
        let client = "[2001:db8::1]:1".parse().unwrap();
        clients.used(client, Used::Vip, Shape::Long);
        clients.used(client, Used::Cookie(0), Shape::Small);
        assert_eq!(clients.used(client, Used::Vip, Shape::Small), Says::Nothing);
        assert_eq!(clients.get(client), Used::Cookie(0));
        assert_eq!(clients.used(client, Used::Vip, Shape::Long), Says::Here);
        assert_eq!(clients.get(client), Used::Vip);
    }
}
