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
//! numbers, which only grow, is that much higher on the wire.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_quic::h3::{self, Both};
use frontage_quic::session::Observer;
use noq::congestion::ControllerFactory;
use noq::{
    AsyncUdpSocket, ConnectionError, ConnectionId, Endpoint, EndpointConfig, TokioRuntime,
    TransportConfig, VarInt,
};
use noq_proto::{ConnectionIdGenerator, InvalidCid};
use tokio::sync::{Mutex, mpsc};

use crate::grant::{Grant, Keys};
use numbering::Numbering;
use puppet::{Datagram, Puppet};
use seal::Sealer;
use socket::{Between, Routed, Routes};

mod feedback;
mod gate;
pub mod keys;
mod numbering;
mod puppet;
mod seal;
mod session;
mod socket;

/// Why something cannot be borrowed, or what was told of it cannot be so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No TLS 1.3 cipher suite that QUIC uses has this number.
    Suite(u16),
    /// A traffic secret of the suite is not so many octets long.
    Secret(usize),
    /// A connection id of so many octets does not fit where the first one was.
    ConnectionId(usize),
    /// Not a stream that can be granted: not bidirectional or not the client's, granted already, or 2^30 or more.
    Stream(u64),
    /// Not what a client can have said.
    Feedback(&'static str),
    /// noq does not accept the grant, as if its transport parameters are malformed.
    Refused(ConnectionError),
    /// The borrower is gone.
    Closed,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Suite(number) => write!(f, "QUIC has no TLS cipher suite 0x{number:04x}"),
            Self::Secret(octets) => {
                write!(
                    f,
                    "a traffic secret of {octets} octets is not the cipher suite's"
                )
            }
            Self::ConnectionId(octets) => {
                write!(f, "a connection id of {octets} octets has no room")
            }
            Self::Stream(id) => write!(
                f,
                "stream {id} is not the client's, not bidirectional, too high or granted already"
            ),
            Self::Feedback(why) => write!(f, "feedback has {why}"),
            Self::Refused(error) => write!(f, "the grant cannot be used: {error}"),
            Self::Closed => f.write_str("the borrower is gone"),
        }
    }
}

impl std::error::Error for Error {}

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
    routes: Arc<Routes>,
    counts: Arc<Counts>,
    /// How many there were; held while noq accepts one.
    opened: Mutex<u64>,
}

/// Ids of noq's own that nobody ever sees: its connections are known by their stand-in addresses.
struct NoIds;

impl ConnectionIdGenerator for NoIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&[])
    }

    fn validate(&self, _: ConnectionId) -> Result<(), InvalidCid> {
        Ok(())
    }

    fn cid_len(&self) -> usize {
        0
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

impl Borrower {
    /// One whose packets leave by `socket`, from which nothing is read. It must be allowed to send from the balancer's address
    /// (`IP_FREEBIND`, `IPV6_FREEBIND`), or choose the sources itself ([`frontage_quic::socket`]). Must be called within a Tokio runtime.
    pub fn new(socket: Box<dyn AsyncUdpSocket>) -> io::Result<Self> {
        let (inbox, received) = mpsc::unbounded_channel();
        let routes = Arc::<Routes>::default();
        let mut ids = EndpointConfig::default();
        ids.cid_generator(Arc::new(|| Box::new(NoIds)));
        let endpoint = Endpoint::new_with_abstract_socket(
            ids,
            Some(noq::ServerConfig::with_crypto(Arc::new(session::Nobody))),
            Box::new(Between::new(socket, received, routes.clone())),
            Arc::new(TokioRuntime),
        )?;
        Ok(Self {
            endpoint,
            inbox,
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
        let sealer = Arc::new(Sealer::new(grant, self.counts.clone())?);
        let source = seal::placeholder(&grant.connection_id);
        let config = session::Config {
            parameters: puppet::parameters(grant, &source),
            sealer: sealer.clone(),
            observer,
        };
        let mut config = noq::ServerConfig::with_crypto(Arc::new(config));
        config.transport_config(Arc::new(transport.config(grant)));

        let mut opened = self.opened.lock().await;
        *opened += 1;
        let route = Routed::new(*opened, grant.client, grant.server, &self.routes);
        let puppet = Puppet::new(route.stand_in, self.inbox.clone());
        puppet.greet(&source, *opened);
        let connecting = loop {
            let incoming = self.endpoint.accept().await.ok_or(Error::Closed)?;
            if incoming.remote_address() == route.stand_in {
                break incoming.accept_with(Arc::new(config));
            }
            // Of one who asked before, and did not wait.
            incoming.ignore();
        };
        drop(opened);
        let connection = async { connecting?.await };
        Ok(Borrowed {
            connection: connection.await.map_err(Error::Refused)?,
            route,
            puppet,
            sealer,
            counts: self.counts.clone(),
        })
    }
}

/// A path of a client's connection, until it is dropped.
pub struct Borrowed {
    /// noq's, of the granted streams alone, which it calls otherwise ([`Borrowed::accept`]). It is lost if the client said what cannot be:
    /// the balancer closes the client's with the same code.
    pub connection: noq::Connection,
    route: Routed,
    puppet: Puppet,
    sealer: Arc<Sealer>,
    counts: Arc<Counts>,
}

impl Borrowed {
    /// The client's stream `stream` is granted, on which it sent `http3` and no more. `max_stream_data` is its MAX_STREAM_DATA, if one came.
    pub fn request(
        &self,
        stream: u64,
        max_stream_data: Option<u64>,
        http3: &[u8],
    ) -> Result<(), Error> {
        let own = self.sealer.streams(|streams| streams.grant(stream))?;
        self.puppet
            .request(own, max_stream_data, http3, self.sealer.phase())
    }

    /// What the client said, in frames: ACK of this path's packets, MAX_DATA (the credit), MAX_STREAM_DATA and STOP_SENDING of granted streams.
    /// Nothing of it counts if it is malformed or cannot be.
    pub fn feedback(&self, frames: &[u8]) -> Result<(), Error> {
        let sealer = &self.sealer;
        let translated = sealer.streams(|streams| {
            feedback::translate(frames, sealer.first(), |stream| streams.own(stream))
        });
        let packets = translated.inspect_err(|_| {
            self.counts.bad_feedback.fetch_add(1, Relaxed);
        })?;
        packets
            .iter()
            .try_for_each(|packet| self.puppet.send(packet, sealer.phase()))
    }

    /// The next granted stream, by the client's id.
    pub async fn accept(&self) -> Result<(u64, Both), ConnectionError> {
        accept(self.connection.clone(), self.sealer.clone()).await
    }

    /// The same for crate `h3`.
    pub fn h3(&self) -> h3::Connection {
        let (connection, sealer) = (self.connection.clone(), self.sealer.clone());
        h3::Connection::of_streams(self.connection.clone(), move || {
            accept(connection.clone(), sealer.clone())
        })
    }

    /// Bytes of `stream` that were sent, its size should it end here.
    pub fn sent(&self, stream: u64) -> Option<u64> {
        self.sealer.streams(|streams| streams.sent_of(stream))
    }

    /// Bytes of all streams that were sent: so much of the credit is used.
    pub fn used(&self) -> u64 {
        self.sealer.streams(|streams| streams.sent())
    }

    /// Nothing is sent on `stream` any more. What the client still says about it is ignored.
    pub fn release(&self, stream: u64) {
        self.sealer.streams(|streams| streams.release(stream));
    }

    /// After a key update (RFC 9001, section 6).
    pub fn rekey(&self, keys: &Keys) -> Result<(), Error> {
        self.sealer.rekey(keys)
    }

    /// The client is to be sent to by this id.
    pub fn connection_id(&self, id: ConnectionId) -> Result<(), Error> {
        self.sealer.connection_id(id)
    }

    /// The client is at `client`, and knows the balancer as `server`.
    pub fn moved(&self, client: SocketAddr, server: SocketAddr) {
        self.route.set(client, server);
    }

    /// Ends the grant: nothing is sealed after this. The first number that was not used.
    pub fn revoke(&self) -> u64 {
        self.sealer.revoke()
    }

    /// The first number that was not used yet.
    pub fn next_number(&self) -> u64 {
        self.sealer.next()
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.revoke();
        self.connection.close(VarInt::from_u32(0), &[]);
    }
}

/// noq opens those streams, too, that it counts past as it goes to an id of more octets ([`Numbering`]); nobody wants them.
async fn accept(
    connection: noq::Connection,
    sealer: Arc<Sealer>,
) -> Result<(u64, Both), ConnectionError> {
    loop {
        let both = connection.accept_bi().await?;
        let own = both.0.id().into();
        if let Some(stream) = sealer.streams(|streams: &mut Numbering| streams.granted(own)) {
            return Ok((stream, both));
        }
    }
}
