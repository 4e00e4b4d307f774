//! The real server's part of QDSR: noq sends the granted streams on a client's connection that another host keeps.
//!
//! ```text
//!                requests, feedback               the client's streams, nothing else
//!   balancer --> puppet.rs --> noq (unmodified) --> session.rs: gate.rs, seal.rs --> socket.rs --> client
//!                    in the clear, by memory         number, key, id of its connection
//! ```
//!
//! For each grant noq gets a connection of its own, by a handshake in memory with a puppet that says what the balancer heard from the client. So
//! noq paces, detects losses, avoids congestion and heeds limits as for any client; and what it sends is rewritten, not made anew.
//!
//! No nonce is used twice (RFC 9001, section 5.3): of each path one host at a time owns the numbers from a first one on, and each of noq's
//! numbers, which only grow, is that much higher on the wire. Of path 0, which all senders share, each number is asked for, and noq's packets wait for
//! theirs (`pool`, `leaving`).

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex as Locked, OnceLock};

use frontage_quic::session::Observer;
use noq::congestion::ControllerFactory;
use noq::{AsyncUdpSocket, Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt};
use tokio::sync::{Mutex, mpsc};

use crate::grant::Grant;
pub use borrowed::Borrowed;
pub use error::Error;
#[cfg(feature = "fuzzing")]
pub use hearer::Hearer;
use pool::Pool;
use puppet::{Datagram, Puppet};
use seal::Sealer;
pub(crate) use silence::PATIENCE;
pub use silence::Silent;
use socket::{Between, Outer, Routed, Routes};

mod borrowed;
mod error;
mod feedback;
mod gate;
#[cfg(feature = "fuzzing")]
mod hearer;
pub mod keys;
mod leaving;
mod numbering;
mod pool;
mod puppet;
pub(crate) mod seal;
mod session;
mod silence;
mod socket;

/// What a borrower counts.
#[derive(Debug, Default)]
pub struct Counts {
    /// Packets of noq's that did not leave, since nothing in them is this server's to send, or since they came after the end of a grant.
    pub withheld: AtomicU64,
    /// Feedback that no client can have said.
    pub bad_feedback: AtomicU64,
}

/// How packets are sent.
#[derive(Clone)]
pub struct Transport {
    /// The congestion control.
    pub congestion: Arc<dyn ControllerFactory + Send + Sync>,
    /// Octets of UDP payload that are known to reach the client, 1200 at least. noq looks for more (RFC 8899).
    pub mtu: u16,
}

impl Transport {
    fn config(&self, grant: &Grant) -> TransportConfig {
        /// Any number that QUIC can name: the balancer limits streams.
        const STREAMS: VarInt = VarInt::from_u32(1 << 30);
        let mut config = TransportConfig::default();
        config
            .max_concurrent_bidi_streams(STREAMS)
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .max_idle_timeout(None)
            .initial_rtt(grant.rtt)
            .initial_mtu(self.mtu)
            .congestion_controller_factory(self.congestion.clone())
            .datagram_receive_buffer_size(None);
        config
    }
}

/// Accepts grants of one balancer's connections.
pub struct Borrower {
    endpoint: Endpoint,
    inbox: mpsc::UnboundedSender<Datagram>,
    socket: Outer,
    routes: Arc<Routes>,
    counts: Arc<Counts>,
    /// How many there were; held while noq accepts one.
    opened: Mutex<u64>,
}

impl Borrower {
    /// One whose packets leave by `socket`, from which nothing is read. It must be allowed to send from the balancer's address
    /// (`IP_FREEBIND`, `IPV6_FREEBIND`), or choose the sources itself ([`frontage_quic::socket`]). Must be called within a Tokio runtime.
    pub fn new(socket: Box<dyn AsyncUdpSocket>) -> io::Result<Self> {
        let (inbox, received) = mpsc::unbounded_channel();
        let routes = Arc::<Routes>::default();
        let socket: Outer = Arc::new(Locked::new(socket));
        let endpoint = Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            Some(noq::ServerConfig::with_crypto(Arc::new(session::Nobody))),
            Box::new(Between::new(socket.clone(), received, routes.clone())),
            Arc::new(TokioRuntime),
        )?;
        Ok(Self {
            endpoint,
            inbox,
            socket,
            routes,
            counts: Arc::default(),
            opened: Mutex::default(),
        })
    }

    /// What this borrower counts.
    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// Borrows the path that `grant` names. `observer` sees each packet that leaves, as it is in the client's connection.
    pub async fn open<O: Observer>(
        &self,
        grant: &Grant,
        transport: &Transport,
        observer: Arc<O>,
    ) -> Result<Borrowed, Error> {
        let mut sealer = Sealer::new(grant, self.counts.clone())?;
        if grant.path == 0 {
            sealer = sealer.waiting(Pool::new(grant.first, observer.clone()));
        }
        let sealer = Arc::new(sealer);
        let source = seal::placeholder(&grant.connection_id);
        let own_id = Arc::<OnceLock<_>>::default();
        let config = session::Config {
            own_id: own_id.clone(),
            parameters: puppet::parameters(grant, &source),
            sealer: sealer.clone(),
            observer,
        };
        let mut config = noq::ServerConfig::with_crypto(Arc::new(config));
        config.transport_config(Arc::new(transport.config(grant)));

        let mut opened = self.opened.lock().await;
        *opened += 1;
        let route = Routed::new(*opened, grant.client, grant.server, &sealer, &self.routes);
        let stand_in = route.stand_in();
        let puppet = Puppet::new(stand_in, own_id, self.inbox.clone());
        puppet.greet(&source, *opened);
        let connecting = loop {
            let incoming = self.endpoint.accept().await.ok_or(Error::Closed)?;
            if incoming.remote_address() == stand_in {
                break incoming.accept_with(Arc::new(config));
            }
            // Of one who asked before, and did not wait.
            incoming.ignore();
        };
        drop(opened);
        let connection = async { connecting?.await };
        let connection = connection.await.map_err(Error::Refused)?;
        if sealer.pool().is_some() {
            let (sender, routes) = (socket::sender(&self.socket), self.routes.clone());
            tokio::spawn(leaving::leave(
                sender,
                sealer.clone(),
                routes,
                stand_in.ip(),
            ));
        }
        Ok(Borrowed {
            connection,
            route,
            puppet,
            sealer,
            credit: AtomicU64::new(grant.credit),
            counts: self.counts.clone(),
        })
    }
}
