// SPDX-License-Identifier: Apache-2.0
//! The sockets whose datagrams start through the proxy, by file descriptor.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{mem, ptr};

use frontage_quicsocks_client::flow::Flow;
use frontage_quicsocks_client::socks::Destination;
use frontage_quicsocks_client::{Error, associate_blocking};
use libc::{c_int, c_void, msghdr, sockaddr, sockaddr_storage, socklen_t, ssize_t};

use crate::next::next;
use crate::path::{Path, Way};
use crate::{address, names, settings};

static SOCKETS: Mutex<Option<HashMap<c_int, Arc<Socket>>>> = Mutex::new(None);
/// True once a socket has had a flow, so that other programs are not slowed down.
static ANY: AtomicBool = AtomicBool::new(false);
/// The largest datagram of UDP.
pub const MAX_DATAGRAM: usize = 65_535;

/// A socket with a flow.
pub struct Socket {
    /// The address that the program uses.
    pub placeholder: SocketAddr,
    /// True for a socket of IPv6.
    pub v6: bool,
    fd: c_int,
    path: Mutex<Path>,
    /// The association lives as long as this connection.
    _control: TcpStream,
}

fn table() -> MutexGuard<'static, Option<HashMap<c_int, Arc<Socket>>>> {
    SOCKETS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Return the socket of a file descriptor, if it has a flow.
pub fn find(fd: c_int) -> Option<Arc<Socket>> {
    if !ANY.load(Ordering::Acquire) {
        return None;
    }
    table().as_ref()?.get(&fd).cloned()
}

/// Forget a file descriptor that is about to be closed.
pub fn close(fd: c_int) {
    if !ANY.load(Ordering::Acquire) {
        return;
    }
    let socket = table().as_mut().and_then(|table| table.remove(&fd));
    if let Some(socket) = socket {
        socket.release();
    }
}

/// Return whether an address is a placeholder.
pub fn is_placeholder(address: SocketAddr) -> bool {
    names::name(address.ip()).is_some()
}

/// Begin a flow to a placeholder. Does nothing if the file descriptor has one to this placeholder.
///
/// # Errors
/// The error is that of the proxy, or of a second placeholder.
pub fn open(fd: c_int, placeholder: SocketAddr) -> io::Result<Arc<Socket>> {
    if let Some(socket) = find(fd) {
        let is_same = address::canonical(socket.placeholder) == address::canonical(placeholder);
        return if is_same {
            Ok(socket)
        } else {
            Err(io::Error::from_raw_os_error(libc::EISCONN))
        };
    }
    let unreachable = || io::Error::from_raw_os_error(libc::ENETUNREACH);
    let name = names::name(placeholder.ip()).ok_or_else(unreachable)?;
    let settings = settings::settings().ok_or_else(unreachable)?;
    let destination =
        Destination::name(name.as_bytes(), placeholder.port()).map_err(|_| unreachable())?;
    let local = prepare(fd)?;
    let v6 = local.is_ipv6();
    let bound = Some(local.ip().to_canonical()).filter(|ip| !ip.is_unspecified());
    let associated = associate_blocking(&settings.proxy, settings.credentials.as_ref(), bound);
    let (control, relay) = associated.map_err(|error| match error {
        Error::Io(error) => error,
        _ => io::Error::from_raw_os_error(libc::ECONNREFUSED),
    })?;
    let socket = Arc::new(Socket {
        placeholder,
        v6,
        fd,
        path: Mutex::new(Path::new(Flow::new(
            destination,
            address::canonical(relay),
            rand::random(),
        ))),
        _control: control,
    });
    table()
        .get_or_insert_with(HashMap::new)
        .insert(fd, socket.clone());
    ANY.store(true, Ordering::Release);
    Ok(socket)
}

/// Bind a socket to a port, as `connect` would, and disable GRO. Return the address of the socket, unspecified unless the
/// program has bound it. Its port may be 0.
fn prepare(fd: c_int) -> io::Result<SocketAddr> {
    // SAFETY: the storage has this length, and all zeros is a valid value.
    unsafe {
        let mut storage: sockaddr_storage = mem::zeroed();
        let mut length = mem::size_of::<sockaddr_storage>() as socklen_t;
        let place: *mut sockaddr = ptr::from_mut(&mut storage).cast();
        if libc::getsockname(fd, place, &raw mut length) < 0 {
            return Err(io::Error::last_os_error());
        }
        let local = address::read(place, length)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))?;
        if local.port() == 0 {
            let (storage, length) = address::encode(local, local.is_ipv6());
            if libc::bind(fd, ptr::from_ref(&storage).cast(), length) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let off: c_int = 0;
        // Fails where the kernel does not coalesce.
        next!("setsockopt": fn(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int)(
            fd,
            libc::SOL_UDP,
            libc::UDP_GRO,
            ptr::from_ref(&off).cast(),
            mem::size_of::<c_int>() as socklen_t,
        );
        Ok(local)
    }
}

impl Socket {
    fn path(&self) -> MutexGuard<'_, Path> {
        self.path.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Send a datagram of the program. Returns its length.
    ///
    /// # Errors
    /// The error is that of the system, or says that the proxy cannot reach the server.
    pub fn send(&self, packet: &[u8], flags: c_int) -> io::Result<usize> {
        let mut path = self.path();
        if path.flow.rejected().is_some() {
            return Err(io::Error::from_raw_os_error(libc::ECONNREFUSED));
        }
        let now = Instant::now();
        match path.send(packet, now) {
            Way::Proxy => {
                let wire = [path.flow.header(), packet].concat();
                self.send_to(&wire, path.flow.relay(), flags)?;
            }
            Way::Server(server) => self.send_to(packet, server, flags)?,
        }
        self.follow_up(&mut path, now);
        Ok(packet.len())
    }

    /// Receive a datagram from the network. Returns the part for the program.
    pub fn receive<'a>(&self, from: SocketAddr, datagram: &'a [u8]) -> Option<&'a [u8]> {
        let mut path = self.path();
        let payload = path.receive(address::canonical(from), datagram);
        self.follow_up(&mut path, Instant::now());
        payload
    }

    /// Send datagrams that are due, besides those of the program. Errors count as losses.
    fn follow_up(&self, path: &mut Path, now: Instant) {
        if let Some((server, probe)) = path.flow.probe(now) {
            let _ = self.send_to(&probe, server, 0);
        }
        if path.releases() {
            let _ = self.send_to(path.flow.header(), path.flow.relay(), 0);
        }
    }

    /// Release the proxy's flow, unless that has happened already.
    fn release(&self) {
        let path = self.path();
        if !path.is_direct() {
            let _ = self.send_to(path.flow.header(), path.flow.relay(), 0);
        }
    }

    fn send_to(&self, wire: &[u8], to: SocketAddr, flags: c_int) -> io::Result<()> {
        let (storage, length) = address::encode(to, self.v6);
        let sendto = next!("sendto": fn(c_int, *const c_void, usize, c_int, *const sockaddr, socklen_t) -> ssize_t);
        let place = ptr::from_ref(&storage).cast();
        // SAFETY: buffer and address live during the call.
        let sent = unsafe {
            sendto(
                self.fd,
                wire.as_ptr().cast(),
                wire.len(),
                flags,
                place,
                length,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Receive the next datagram for the program into `buffer`. `message` has the program's control data, and gets it and flags.
    ///
    /// # Errors
    /// The error is that of the system.
    ///
    /// # Safety
    /// The control data of `message` is that of a valid call of `recvmsg`.
    pub unsafe fn next_payload<'a>(
        &self,
        buffer: &'a mut [u8],
        message: &mut msghdr,
        flags: c_int,
    ) -> io::Result<&'a [u8]> {
        let room = message.msg_controllen;
        loop {
            // SAFETY: all zeros is a valid value.
            let mut from: sockaddr_storage = unsafe { mem::zeroed() };
            let mut part = libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            };
            message.msg_name = ptr::from_mut(&mut from).cast();
            message.msg_namelen = mem::size_of::<sockaddr_storage>() as socklen_t;
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_controllen = room;
            let recvmsg = next!("recvmsg": fn(c_int, *mut msghdr, c_int) -> ssize_t);
            // SAFETY: the caller's promise; the other fields point to the variables above.
            let received = unsafe { recvmsg(self.fd, message, flags & !libc::MSG_TRUNC) };
            let Ok(length) = usize::try_from(received) else {
                return Err(io::Error::last_os_error());
            };
            // SAFETY: the kernel has written this address.
            let peer = unsafe { address::read(message.msg_name.cast(), message.msg_namelen) };
            let datagram = &buffer[..length.min(MAX_DATAGRAM)];
            let found = peer
                .and_then(|peer| self.receive(peer, datagram))
                .map(|payload| payload.as_ptr() as usize - datagram.as_ptr() as usize);
            if let Some(start) = found {
                return Ok(&buffer[start..length]);
            }
            if flags & libc::MSG_PEEK != 0 {
                // Nothing else takes this datagram from the queue.
                // SAFETY: as above.
                unsafe { recvmsg(self.fd, message, libc::MSG_DONTWAIT) };
            }
        }
    }
}

/// Return the placeholder of a name that the proxy has to resolve; None for addresses and for this host.
pub fn placeholder(name: &str, ipv4: bool) -> Option<IpAddr> {
    settings::settings()?;
    let is_local = name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok();
    let is_valid = Destination::name(name.as_bytes(), 1).is_ok();
    if is_local || !is_valid || name.contains('%') {
        return None;
    }
    names::placeholder(&name.to_ascii_lowercase(), ipv4)
}
