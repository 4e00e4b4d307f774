// SPDX-License-Identifier: Apache-2.0
//! The real server's side: noq sends the delegated streams on a client's connection that another host keeps.
//!
//! ```text
//!                    requests, feedback                    the client's streams, nothing else
//!   balancer --> synthetic_client.rs --> noq (unmodified) --> session.rs: frame_filter.rs, sealer.rs --> socket.rs --> client
//!                      plaintext, in memory                    packet number, key, connection id
//! ```
//!
//! For each grant, noq gets a connection of its own, opened by an in-memory handshake with a synthetic client. The synthetic
//! client turns the balancer's feedback into packets for noq. Therefore noq paces, detects losses, controls congestion and
//! obeys limits as for any client, and its packets are rewritten for the client's connection.
//!
//! No nonce is used twice (RFC 9001, section 5.3). One host at a time owns the numbers of a path from a first one on. The
//! number on the wire is that first number plus noq's own, which only increases. On path 0, which all senders share, each
//! number comes from the balancer, and noq's packets wait for theirs (`number_pool`, `deferred_sender`).

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use frontage_quic::layer::{Layered, SharedSocket};
use frontage_quic::min_rtt::KeepMinRtt;
use frontage_quic::session::Observer;
use noq::congestion::ControllerFactory;
use noq::{AsyncUdpSocket, Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt};
use tokio::sync::{Mutex, mpsc};

use crate::grant::Grant;
pub use ack_monitor::NoAckReport;
pub(crate) use ack_monitor::UNREACHABLE_TIMEOUT;
pub use connection::DelegatedConnection;
pub use detour::DetourCompensation;
pub use error::Error;
#[cfg(feature = "fuzzing")]
pub use fuzz::FeedbackReader;
use number_pool::NumberPool;
pub use number_pool::NumberRequest;
use sealer::Sealer;
use socket::{Route, Routes, StandInLayer};
use synthetic_client::{Datagram, SyntheticClient};

mod ack_monitor;
mod acknowledged;
mod connection;
mod deferred_sender;
mod detour;
mod error;
mod feedback;
mod frame_filter;
#[cfg(feature = "fuzzing")]
mod fuzz;
pub mod keys;
mod number_pool;
pub(crate) mod sealer;
mod session;
mod socket;
mod stream_ids;
mod synthetic_client;

/// Counters of a [`Delegate`].
#[derive(Debug, Default)]
pub struct Counters {
    /// Packets of noq that were not sent, because they contain no frame of this server or because the grant had ended.
    pub withheld: AtomicU64,
    /// Feedback that no client can have sent.
    pub invalid_feedback: AtomicU64,
}

/// Parameters of the transport.
#[derive(Clone)]
pub struct Transport {
    /// The congestion controller.
    pub congestion: Arc<dyn ControllerFactory + Send + Sync>,
    /// UDP payload size in octets, at least 1200, that is known to reach the client. noq probes for more (RFC 8899).
    pub mtu: u16,
}

impl Transport {
    fn config(&self, grant: &Grant) -> TransportConfig {
        /// As many streams as stream ids permit: the balancer limits the number of streams.
        const MAX_STREAMS: VarInt = VarInt::from_u32(1 << 30);
        let mut config = TransportConfig::default();
        config
            .max_concurrent_bidi_streams(MAX_STREAMS)
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .max_idle_timeout(None)
            .initial_rtt(grant.rtt)
            .initial_mtu(self.mtu)
            .congestion_controller_factory(Arc::new(KeepMinRtt::new(self.congestion.clone())))
            .datagram_receive_buffer_size(None);
        config
    }
}

/// Accepts grants for the connections of one balancer.
pub struct Delegate {
    endpoint: Endpoint,
    inbox: mpsc::UnboundedSender<Datagram>,
    socket: SharedSocket,
    routes: Arc<Routes>,
    counters: Arc<Counters>,
    /// Number of connections so far. The lock is held while noq accepts one.
    opened: Mutex<u64>,
}

impl Delegate {
    /// Create a delegate that sends on `socket` and never reads from it.
    ///
    /// The socket must be allowed to send from the balancer's address (`IP_FREEBIND`, `IPV6_FREEBIND`), or choose the source
    /// addresses itself ([`frontage_quic::socket`]). Must be called within a Tokio runtime.
    pub fn new(socket: Box<dyn AsyncUdpSocket>) -> io::Result<Self> {
        let (inbox, received) = mpsc::unbounded_channel();
        let routes = Arc::<Routes>::default();
        let socket = SharedSocket::new(socket);
        let layer = StandInLayer::new(received, routes.clone());
        let endpoint = Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            Some(noq::ServerConfig::with_crypto(Arc::new(
                session::RejectAllConfig,
            ))),
            Box::new(Layered::new(Box::new(socket.clone()), layer)),
            Arc::new(TokioRuntime),
        )?;
        Ok(Self {
            endpoint,
            inbox,
            socket,
            routes,
            counters: Arc::default(),
            opened: Mutex::default(),
        })
    }

    /// Return the counters.
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    /// Start to send on the path that `grant` names. `observer` sees each sent packet as it is in the client's connection.
    pub async fn open<O: Observer>(
        &self,
        grant: &Grant,
        transport: &Transport,
        observer: Arc<O>,
    ) -> Result<DelegatedConnection, Error> {
        let mut sealer = Sealer::new(grant, self.counters.clone())?;
        if grant.path == 0 {
            sealer = sealer.with_pool(NumberPool::new(grant.first, observer.clone()));
        }
        let sealer = Arc::new(sealer);
        let source = sealer::placeholder(&grant.connection_id);
        let own_id = Arc::<OnceLock<_>>::default();
        let config = session::Config {
            own_id: own_id.clone(),
            parameters: synthetic_client::parameters(grant, &source),
            sealer: sealer.clone(),
            observer,
        };
        let mut config = noq::ServerConfig::with_crypto(Arc::new(config));
        config.transport_config(Arc::new(transport.config(grant)));

        let mut opened = self.opened.lock().await;
        *opened += 1;
        let route = Route::new(*opened, grant.client, grant.server, &sealer, &self.routes);
        let stand_in = route.stand_in();
        let client = SyntheticClient::new(stand_in, own_id, self.inbox.clone());
        client.start_handshake(&source, *opened);
        let connecting = loop {
            let incoming = self.endpoint.accept().await.ok_or(Error::Closed)?;
            if incoming.remote_address() == stand_in {
                break incoming.accept_with(Arc::new(config));
            }
            // The handshake of an earlier call that was cancelled.
            incoming.ignore();
        };
        drop(opened);
        let connection = async { connecting?.await };
        let connection = connection.await.map_err(Error::Refused)?;
        if sealer.pool().is_some() {
            let (sender, routes) = (self.socket.create_sender(), self.routes.clone());
            tokio::spawn(deferred_sender::run(
                sender,
                sealer.clone(),
                routes,
                stand_in.ip(),
            ));
        }
        Ok(DelegatedConnection {
            connection,
            route,
            client,
            sealer,
            credit: AtomicU64::new(grant.credit),
            counters: self.counters.clone(),
        })
    }
}
