//! A flow: what a client sends to one destination, and what comes back.
//!
//! ```text
//!   association's task -> from_client() --> [waiting until the name has its address] --> server
//!        client <-- association's socket <-- answered() <-- this flow's task <------- server
//!                                                   '-- Retry: the first flight again --> server
//! ```

use std::net::SocketAddr;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use frontage_first_flight::Fault;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::association::Association;
use crate::flight::{Answer, Flights};
use crate::metrics::Gauge;
use crate::outcome::{End, FromClient, FromServer, Name};
use crate::socks::{self, Destination, Reply};
use crate::udp;

/// Most datagrams that wait for a name's address: a first flight, and its first retransmissions.
const QUEUE: usize = 8;

/// One flow.
#[derive(Debug)]
pub struct Flow {
    association: Arc<Association>,
    destination: Destination,
    state: Mutex<State>,
    server: OnceLock<UdpSocket>,
    begun: Instant,
    /// Milliseconds from then to its last datagram.
    last: AtomicU64,
    ended: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    flights: Flights,
    waiting: Vec<Vec<u8>>,
}

impl Flow {
    /// A flow that begins with `datagram`, which must be an Initial packet.
    pub fn begin(
        association: &Arc<Association>,
        destination: Destination,
        datagram: &[u8],
    ) -> Result<Arc<Self>, FromClient> {
        let mut state = State::default();
        let begun = state.flights.sent(&association.shared.reader, datagram);
        begun.map_err(|fault| match fault {
            Fault::SmallDatagram => FromClient::Short,
            Fault::UnknownVersion | Fault::VersionNegotiation => FromClient::QuicVersion,
            Fault::Undecryptable => FromClient::Forged,
            _ => FromClient::NotInitial,
        })?;
        state.waiting.push(datagram.into());
        Ok(Arc::new(Self {
            association: association.clone(),
            destination,
            state: Mutex::new(state),
            server: OnceLock::new(),
            begun: Instant::now(),
            last: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }))
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.ended.load(Acquire)
    }

    /// Ends it; its reason counts if it was not over already.
    pub fn end(&self, reason: End) {
        if !self.ended.swap(true, Release) {
            self.association.shared.metrics.ends.add(reason);
        }
    }

    /// Takes a later datagram of the client's.
    pub fn from_client(&self, datagram: &[u8]) -> FromClient {
        self.touch();
        let reader = &self.association.shared.reader;
        if Flights::may_begin(datagram) {
            // What does not open is of a handshake under way.
            let _ = self.state().flights.sent(reader, datagram);
        }
        if let Some(server) = self.server.get() {
            return self.send(server, datagram);
        }
        let mut state = self.state();
        // It may have come in between.
        if let Some(server) = self.server.get() {
            return self.send(server, datagram);
        }
        if state.waiting.len() == QUEUE {
            return FromClient::Queue;
        }
        state.waiting.push(datagram.into());
        FromClient::Waiting
    }

    fn send(&self, server: &UdpSocket, datagram: &[u8]) -> FromClient {
        let metrics = &self.association.shared.metrics;
        match udp::send(server, datagram) {
            Ok(bytes) => {
                metrics.up.fetch_add(bytes as u64, Relaxed);
                FromClient::Forwarded
            }
            Err(_) => FromClient::NotSent,
        }
    }

    /// Runs it to its end.
    pub async fn run(self: Arc<Self>) {
        let _open = Gauge::new(&self.association.shared.metrics, |metrics| &metrics.flows);
        let reason = match self.find().await {
            Ok((server, address)) => self.relay(server, address).await,
            Err(Name::NoSocket) => End::NoSocket,
            Err(_) => End::Unresolved,
        };
        self.end(reason);
    }

    /// Finds the server, tells the client, and sends what waits.
    async fn find(&self) -> Result<(&UdpSocket, SocketAddr), Name> {
        let found = self.connect().await;
        let metrics = &self.association.shared.metrics;
        if matches!(self.destination, Destination::Name(..)) {
            metrics
                .names
                .add(found.as_ref().map_or_else(|name| *name, |_| Name::Resolved));
        }
        let (socket, address) = match found {
            Ok(found) => found,
            Err(reason) => {
                let reply = match reason {
                    Name::Denied => Reply::NotAllowed,
                    Name::NoSocket => Reply::Failure,
                    _ => Reply::HostUnreachable,
                };
                self.tell(reply, self.association.unspecified());
                return Err(reason);
            }
        };
        let mut state = self.state();
        let server = self.server.get_or_init(|| socket);
        for datagram in std::mem::take(&mut state.waiting) {
            let outcome = self.send(server, &datagram);
            metrics.from_client.add(outcome);
        }
        drop(state);
        self.tell(Reply::Succeeded, address);
        Ok((server, address))
    }

    async fn connect(&self) -> Result<(UdpSocket, SocketAddr), Name> {
        let shared = &self.association.shared;
        let addresses = match &self.destination {
            Destination::Address(address) => vec![*address],
            Destination::Name(name, port) => {
                let began = Instant::now();
                let found = shared.names.addresses(name, self.association.client).await;
                let took = began.elapsed().as_nanos() as u64;
                shared.metrics.resolving.fetch_add(took, Relaxed);
                found?.iter().map(|ip| (*ip, *port).into()).collect()
            }
        };
        let mut reason = Name::Denied;
        for address in addresses {
            if shared.policy.allows(address.ip()) {
                match udp::connect(address) {
                    Ok(socket) => return Ok((socket, address)),
                    Err(error) if udp::is_exhausted(&error) => return Err(Name::NoSocket),
                    Err(_) => reason = Name::Unreachable,
                }
            }
        }
        Err(reason)
    }

    /// Tells the client of the name's address: a reply as on the control connection, in a datagram from the name. QUIC takes no datagram that begins
    /// like this (the fixed bit is 0; RFC 9000, section 17.3.1).
    fn tell(&self, reply: Reply, address: SocketAddr) {
        if matches!(self.destination, Destination::Name(..)) {
            let mut wire = socks::header(&self.destination);
            wire.extend(socks::reply(reply, address));
            // If it is lost, the client sees the address in the header of what the server sends.
            let _ = self.association.send(&wire);
        }
    }

    /// Forwards what the server sends, until there is no more to expect.
    async fn relay(&self, server: &UdpSocket, address: SocketAddr) -> End {
        let limits = &self.association.shared.limits;
        let header = socks::header(&Destination::Address(address));
        let mut wire = Vec::with_capacity(1500);
        loop {
            if self.is_over() {
                return End::Released;
            }
            let now = self.begun.elapsed();
            let Some(left) = limits.flow.checked_sub(now) else {
                return End::Expired;
            };
            let idle = Duration::from_millis(self.last.load(Relaxed)) + limits.idle;
            let Some(quiet) = idle.checked_sub(now) else {
                return End::Idle;
            };
            match timeout(left.min(quiet), server.readable()).await {
                Err(_) => {}
                Ok(Err(_)) => return End::Refused,
                Ok(Ok(())) => loop {
                    wire.clone_from(&header);
                    match udp::with_buffer(|buffer| {
                        server.try_recv(buffer).map(|n| wire.extend(&buffer[..n]))
                    }) {
                        Ok(()) => self.answered(server, &wire, header.len()),
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                        Err(_) => {
                            self.tell(Reply::Refused, address);
                            return End::Refused;
                        }
                    }
                },
            }
        }
    }

    /// Forwards `wire`, whose datagram begins at `at`.
    fn answered(&self, server: &UdpSocket, wire: &[u8], at: usize) {
        let (shared, datagram) = (&self.association.shared, &wire[at..]);
        self.touch();
        let mut outcome = FromServer::Forwarded;
        if datagram.first().is_some_and(|first| first & 0x80 != 0) {
            let answer = self.state().flights.received(&shared.reader, datagram);
            match answer {
                Answer::Nothing => {}
                Answer::Unknown => outcome = FromServer::RetryUnknown,
                Answer::TooLarge => outcome = FromServer::RetryTooLarge,
                Answer::Again(flight) => {
                    for datagram in flight {
                        let outcome = self.send(server, &datagram);
                        shared.metrics.from_client.add(outcome);
                    }
                    outcome = FromServer::RetryAnswered;
                }
            }
        }
        if !self.association.account().take(datagram.len()) {
            outcome = FromServer::Bandwidth;
        } else if self.association.send(wire) {
            let bytes = datagram.len() as u64;
            shared.metrics.down.fetch_add(bytes, Relaxed);
        } else {
            outcome = FromServer::NotSent;
        }
        shared.metrics.from_server.add(outcome);
    }

    fn touch(&self) {
        let now = self.begun.elapsed().as_millis() as u64;
        self.last.store(now, Relaxed);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }
}
