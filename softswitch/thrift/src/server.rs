// SPDX-License-Identifier: Apache-2.0
//! A server: one thread accepts connections, and each connection has its own thread.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use thrift::ApplicationErrorKind;
use thrift::protocol::TBinaryOutputProtocol;
use thrift::transport::TBufferedWriteTransport;

use crate::calls::{self, Calls, Dispatch};

/// Maximum number of connections; further ones are closed at once.
pub const MAX_CONNECTIONS: usize = 256;

/// Pause after a failed accept, such as for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A running server, which stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stopping: AtomicBool,
    /// The open connections, by number.
    connections: Mutex<HashMap<u64, TcpStream>>,
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        // No operation on the map leaves it in a wrong state.
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Serves the functions to the clients of a listener.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(listener: TcpListener, functions: Arc<dyn Dispatch>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        thread::Builder::new()
            .name("thrift".into())
            .spawn(move || accept(&listener, &accepting, &functions))?;
        Ok(Self { address, shared })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        for connection in self.shared.connections().values() {
            // The client may have closed it already.
            let _ = connection.shutdown(Shutdown::Both);
        }
        // Wakes the accepting thread. If this fails, the thread sees the flag with the next client.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    }
}

/// Accepts connections until the server stops.
fn accept(listener: &TcpListener, shared: &Arc<Shared>, functions: &Arc<dyn Dispatch>) {
    for number in 0_u64.. {
        let accepted = listener.accept();
        if shared.stopping.load(Ordering::Acquire) {
            return;
        }
        let begun = accepted.and_then(|(stream, _)| begin(number, stream, shared, functions));
        if let Err(error) = begun {
            tracing::warn!("thrift: cannot serve a client: {error}");
            thread::sleep(ACCEPT_PAUSE);
        }
    }
}

/// Starts the thread of a connection.
fn begin(
    number: u64,
    stream: TcpStream,
    shared: &Arc<Shared>,
    functions: &Arc<dyn Dispatch>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut connections = shared.connections();
    if connections.len() >= MAX_CONNECTIONS {
        tracing::warn!("thrift: refused a client: {MAX_CONNECTIONS} connections are open");
        return Ok(());
    }
    connections.insert(number, stream.try_clone()?);
    drop(connections);
    let end = End(number, Arc::clone(shared));
    let functions = Arc::clone(functions);
    thread::Builder::new()
        .name("thrift-client".into())
        .spawn(move || {
            let _end = end;
            serve(stream, &*functions);
        })?;
    Ok(())
}

/// Removes a connection at its end.
struct End(u64, Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.1.connections().remove(&self.0);
    }
}

/// Serves the calls of a connection until it ends.
fn serve(stream: TcpStream, functions: &dyn Dispatch) {
    let reading = stream.try_clone().map(BufReader::new);
    let Some(mut calls) = reading.ok().and_then(|reader| Calls::new(reader).ok()) else {
        return;
    };
    let mut output = TBinaryOutputProtocol::new(TBufferedWriteTransport::new(&stream), true);
    while let Some(message) = calls.next_message() {
        let mut call = || calls.answer(&message, functions, &mut output);
        // A fault in a function must not end the switch.
        let end = match catch_unwind(AssertUnwindSafe(&mut call)) {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error,
            Err(_) => "internal error".into(),
        };
        tracing::debug!("thrift: {}: {end}", message.name);
        // After a malformed message, the beginning of the next one is unknown.
        let _ = calls::refuse(
            &message,
            ApplicationErrorKind::ProtocolError,
            &end.to_string(),
            &mut output,
        );
        let _ = stream.shutdown(Shutdown::Both);
        return;
    }
}
