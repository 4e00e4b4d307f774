// SPDX-License-Identifier: Apache-2.0
//! A flow: the datagrams between a client and one destination.
//!
//! ```text
//!   client -> association's task -> on_client_datagram() -> [queue until the name is resolved] -> server
//!   client <- association's socket <- on_server_datagram() <- this flow's task <----------------- server
//!                                            '-- Retry: resend the first flight ----------------> server
//! ```

use std::net::SocketAddr;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use frontage_first_flight::Fault;
use frontage_quicsocks_client::socks::{self, Destination, Reply};
use frontage_quicsocks_client::udp;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::client_port::ClientPort;
use crate::metrics::GaugeGuard;
use crate::outcome::{ClientDatagram, FlowEnd, Lookup, ServerDatagram};
use crate::retry::{Action, RetryResponder};

/// Maximum number of datagrams that wait for name resolution: a first flight and its first retransmissions. With 0-RTT data,
/// a first flight has up to 10 datagrams, the initial congestion window (RFC 9002, section 7.2).
const MAX_QUEUED: usize = 16;

/// A flow.
#[derive(Debug)]
pub struct Flow {
    client: Arc<ClientPort>,
    destination: Destination,
    state: Mutex<State>,
    server: OnceLock<UdpSocket>,
    started: Instant,
    /// Milliseconds from `started` to the last datagram.
    last_active: AtomicU64,
    ended: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    retry: RetryResponder,
    queue: Vec<Vec<u8>>,
}

impl Flow {
    /// Creates a flow for the client's first `datagram`.
    ///
    /// # Errors
    /// Returns the outcome of the datagram if it is not a readable Initial.
    pub fn new(
        client: &Arc<ClientPort>,
        destination: Destination,
        datagram: &[u8],
    ) -> Result<Arc<Self>, ClientDatagram> {
        let mut state = State::default();
        let opened = state
            .retry
            .on_client_datagram(&client.shared.reader, datagram);
        opened.map_err(|fault| match fault {
            Fault::SmallDatagram => ClientDatagram::TooShort,
            Fault::UnknownVersion | Fault::VersionNegotiation => ClientDatagram::QuicVersion,
            Fault::Undecryptable => ClientDatagram::Undecryptable,
            _ => ClientDatagram::NotInitial,
        })?;
        state.queue.push(datagram.into());
        Ok(Arc::new(Self {
            client: client.clone(),
            destination,
            state: Mutex::new(state),
            server: OnceLock::new(),
            started: Instant::now(),
            last_active: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }))
    }

    /// Returns true if the flow has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Acquire)
    }

    /// Ends the flow, and counts `reason` if it had not ended before.
    pub fn end(&self, reason: FlowEnd) {
        if !self.ended.swap(true, Release) {
            self.client.shared.metrics.flow_ends.add(reason);
        }
    }

    /// Forwards a further datagram of the client, or queues it until the name is resolved.
    pub fn on_client_datagram(&self, datagram: &[u8]) -> ClientDatagram {
        self.touch();
        let reader = &self.client.shared.reader;
        if RetryResponder::may_be_initial(datagram) {
            // An unreadable datagram belongs to a handshake in progress.
            let _ = self.state().retry.on_client_datagram(reader, datagram);
        }
        if let Some(server) = self.server.get() {
            return self.send_to_server(server, datagram);
        }
        let mut state = self.state();
        // The name may have been resolved before the lock was taken.
        if let Some(server) = self.server.get() {
            return self.send_to_server(server, datagram);
        }
        if state.queue.len() == MAX_QUEUED {
            return ClientDatagram::QueueFull;
        }
        state.queue.push(datagram.into());
        ClientDatagram::Queued
    }

    fn send_to_server(&self, server: &UdpSocket, datagram: &[u8]) -> ClientDatagram {
        let metrics = &self.client.shared.metrics;
        match udp::send(server, datagram) {
            Ok(bytes) => {
                metrics.bytes_up.fetch_add(bytes as u64, Relaxed);
                ClientDatagram::Forwarded
            }
            Err(_) => ClientDatagram::SendFailed,
        }
    }

    /// Runs the flow until it ends.
    pub async fn run(self: Arc<Self>) {
        let _gauge = GaugeGuard::new(&self.client.shared.metrics, |metrics| &metrics.flows);
        let reason = match self.open_server().await {
            Ok((server, address)) => self.relay(server, address).await,
            Err(Lookup::NoSocket) => FlowEnd::NoSocket,
            Err(_) => FlowEnd::Unresolved,
        };
        self.end(reason);
    }

    /// Resolves the destination, reports the result to the client, and sends the queued datagrams.
    async fn open_server(&self) -> Result<(&UdpSocket, SocketAddr), Lookup> {
        let connected = self.connect().await;
        let metrics = &self.client.shared.metrics;
        if matches!(self.destination, Destination::Name(..)) {
            let outcome = connected
                .as_ref()
                .map_or_else(|failure| *failure, |_| Lookup::Resolved);
            metrics.lookups.add(outcome);
        }
        let (socket, address) = match connected {
            Ok(connected) => connected,
            Err(failure) => {
                let reply = match failure {
                    Lookup::Denied => Reply::NotAllowed,
                    Lookup::NoSocket => Reply::Failure,
                    _ => Reply::HostUnreachable,
                };
                self.report(reply, self.client.unspecified());
                return Err(failure);
            }
        };
        let mut state = self.state();
        let server = self.server.get_or_init(|| socket);
        for datagram in std::mem::take(&mut state.queue) {
            let outcome = self.send_to_server(server, &datagram);
            metrics.client_datagrams.add(outcome);
        }
        drop(state);
        self.report(Reply::Succeeded, address);
        Ok((server, address))
    }

    async fn connect(&self) -> Result<(UdpSocket, SocketAddr), Lookup> {
        let shared = &self.client.shared;
        let addresses = match &self.destination {
            Destination::Address(address) => vec![*address],
            Destination::Name(name, port) => {
                let started = Instant::now();
                let resolved = shared.resolver.resolve(name, self.client.address).await;
                let nanos = started.elapsed().as_nanos() as u64;
                shared.metrics.resolving_nanos.fetch_add(nanos, Relaxed);
                resolved?.iter().map(|ip| (*ip, *port).into()).collect()
            }
        };
        let mut failure = Lookup::Denied;
        for address in addresses {
            if shared.policy.allows(address.ip()) {
                match udp::connect(address) {
                    Ok(socket) => return Ok((socket, address)),
                    Err(error) if udp::is_exhausted(&error) => return Err(Lookup::NoSocket),
                    Err(_) => failure = Lookup::Unreachable,
                }
            }
        }
        Err(failure)
    }

    /// Reports the result of name resolution to the client: a reply as on the control connection, in a datagram from the name.
    ///
    /// QUIC endpoints discard it, because the fixed bit of its first byte is 0 (RFC 9000, section 17.3.1).
    fn report(&self, reply: Reply, address: SocketAddr) {
        if matches!(self.destination, Destination::Name(..)) {
            let mut wire = socks::encode_header(&self.destination);
            wire.extend(socks::encode_reply(reply, address));
            // If the report is lost, the client learns the address from the headers of the server's datagrams.
            let _ = self.client.send(&wire);
        }
    }

    /// Forwards the server's datagrams until the flow ends; returns why it ended.
    async fn relay(&self, server: &UdpSocket, address: SocketAddr) -> FlowEnd {
        let limits = &self.client.shared.limits;
        let header = socks::encode_header(&Destination::Address(address));
        let mut wire = Vec::with_capacity(1500);
        loop {
            if self.has_ended() {
                return FlowEnd::Released;
            }
            let now = self.started.elapsed();
            let Some(until_expired) = limits.flow_lifetime.checked_sub(now) else {
                return FlowEnd::Expired;
            };
            let idle_at =
                Duration::from_millis(self.last_active.load(Relaxed)) + limits.idle_timeout;
            let Some(until_idle) = idle_at.checked_sub(now) else {
                return FlowEnd::Idle;
            };
            // An ICMP error alone does not make a socket readable.
            let ready = server.ready(Interest::READABLE | Interest::ERROR);
            match timeout(until_expired.min(until_idle), ready).await {
                Err(_) => {}
                Ok(Ok(ready)) if !ready.is_error() => loop {
                    wire.clone_from(&header);
                    match udp::with_buffer(|buffer| {
                        server.try_recv(buffer).map(|n| wire.extend(&buffer[..n]))
                    }) {
                        Ok(()) => self.on_server_datagram(server, &wire, header.len()),
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                        Err(_) => return self.refuse(address),
                    }
                },
                Ok(_) => return self.refuse(address),
            }
        }
    }

    /// Reports to the client that no server listens at `address`.
    fn refuse(&self, address: SocketAddr) -> FlowEnd {
        self.report(Reply::Refused, address);
        FlowEnd::Refused
    }

    /// Forwards a datagram of the server to the client. `wire` is the SOCKS header of `header_len` bytes and the datagram.
    fn on_server_datagram(&self, server: &UdpSocket, wire: &[u8], header_len: usize) {
        let (shared, datagram) = (&self.client.shared, &wire[header_len..]);
        self.touch();
        let mut outcome = ServerDatagram::Forwarded;
        if datagram.first().is_some_and(|first| first & 0x80 != 0) {
            let action = self
                .state()
                .retry
                .on_server_datagram(&shared.reader, datagram);
            match action {
                Action::None => {}
                Action::Unknown => outcome = ServerDatagram::RetryUnknown,
                Action::TooLarge => outcome = ServerDatagram::RetryTooLarge,
                Action::Resend(flight) => {
                    for datagram in flight {
                        let outcome = self.send_to_server(server, &datagram);
                        shared.metrics.client_datagrams.add(outcome);
                    }
                    outcome = ServerDatagram::RetryAnswered;
                }
            }
        }
        if !self.client.bandwidth().try_take(datagram.len()) {
            outcome = ServerDatagram::BandwidthLimit;
        } else if self.client.send(wire) {
            let bytes = datagram.len() as u64;
            shared.metrics.bytes_down.fetch_add(bytes, Relaxed);
        } else {
            outcome = ServerDatagram::SendFailed;
        }
        shared.metrics.server_datagrams.add(outcome);
    }

    fn touch(&self) {
        let now = self.started.elapsed().as_millis() as u64;
        self.last_active.store(now, Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
