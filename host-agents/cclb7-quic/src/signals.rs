//! What the packets to each client say: the bridge from meters, one a connection, to sources, one a batch of packets.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, RwLock};

use frontage_cookie::tcp::Signals as Values;
use frontage_quic::meter::{Loads, Meter};
use frontage_quic::socket::Signals;
use noq::PathId;

/// The meters of the connections that there are, by client.
#[derive(Debug)]
pub struct Clients {
    bandwidth: u64,
    loads: Arc<Loads>,
    meters: RwLock<HashMap<Client, Arc<Meter>>>,
}

type Client = (IpAddr, u16);

impl Clients {
    /// No connection yet; `bandwidth` in bit/s.
    pub fn new(bandwidth: u64, loads: Arc<Loads>) -> Arc<Self> {
        Arc::new(Self {
            bandwidth,
            loads,
            meters: RwLock::default(),
        })
    }

    /// The server's loads.
    pub fn loads(&self) -> &Arc<Loads> {
        &self.loads
    }

    /// How many connections there are.
    pub fn count(&self) -> usize {
        self.meters.read().expect("nobody panics with it").len()
    }

    /// Lets packets to `client` speak of `meter`.
    pub fn insert(&self, client: SocketAddr, meter: Arc<Meter>) {
        let mut meters = self.meters.write().expect("nobody panics with it");
        meters.insert((client.ip(), client.port()), meter);
    }

    /// Lets packets to the client of `connection` speak of `meter`, until the result is dropped.
    pub fn register(
        self: &Arc<Self>,
        connection: noq::Connection,
        meter: Arc<Meter>,
    ) -> Registration {
        let registration = Registration {
            clients: self.clone(),
            connection,
            meter,
            at: Mutex::new(None),
        };
        registration.follow();
        registration
    }

    /// Microseconds that `bytes` take at the assumed bandwidth, rounded down.
    fn microseconds(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 8_000_000 / u128::from(self.bandwidth)) as u64
    }
}

impl Signals for Clients {
    fn of(&self, client: SocketAddr) -> Values {
        let meters = self.meters.read().expect("nobody panics with it");
        let remaining = meters
            .get(&(client.ip(), client.port()))
            .map_or(0, |meter| meter.remaining());
        Values {
            rpt_us: self.microseconds(remaining),
            n_af: self.loads.n_af(),
            n_ff: self.loads.n_ff(),
        }
    }
}

/// A connection whose packets carry its RPT.
pub struct Registration {
    clients: Arc<Clients>,
    connection: noq::Connection,
    meter: Arc<Meter>,
    at: Mutex<Option<Client>>,
}

impl Registration {
    /// Goes after a client whose address changed (RFC 9000, section 9); to be called now and then.
    pub fn follow(&self) {
        let path = self.connection.path(PathId::ZERO);
        let Some(address) = path.and_then(|path| path.remote_address().ok()) else {
            return;
        };
        let now = (address.ip(), address.port());
        let mut at = self.at.lock().expect("nobody panics with it");
        if *at != Some(now) {
            self.clients.insert(address, self.meter.clone());
            let mut meters = self.clients.meters.write().expect("nobody panics with it");
            self.leave(&mut meters, at.replace(now));
        }
    }

    fn leave(&self, meters: &mut HashMap<Client, Arc<Meter>>, at: Option<Client>) {
        // Another connection may have come from there since.
        if let Some(at) = at
            && meters
                .get(&at)
                .is_some_and(|meter| Arc::ptr_eq(meter, &self.meter))
        {
            meters.remove(&at);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let at = self.at.get_mut().expect("nobody panics with it").take();
        let mut meters = self.clients.meters.write().expect("nobody panics with it");
        self.leave(&mut meters, at);
    }
}
