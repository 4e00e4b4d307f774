// SPDX-License-Identifier: Apache-2.0
//! A simulated edge switch between client and server.
//!
//! Towards the server it translates VIP and cookie addresses to the server's own addresses. Towards the client it translates
//! them back, according to the dynamic cookie in each source. It logs all packets.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use frontage_cookie::ipv6::{Cookie, Key};
use frontage_cookie::tcp::Signals;
use frontage_quic::socket::join_address;

use super::gateway;

/// Address of the service (VIP).
pub const VIP: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1);
/// Upper halves of cookie addresses and of the server's own addresses.
pub const COOKIE_PREFIX: u64 = 0x2001_0db8_000c_0000;
pub const SERVER_PREFIX: u64 = 0x2001_0db8_0005_0000;
/// Address of the server for packets to the VIP.
pub const DIP: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 1);
pub const CLIENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 2);

pub const SOURCE: usize = 8;
pub const DESTINATION: usize = 24;
pub const PAYLOAD: usize = 40;
pub const UDP: u8 = 17;

/// A packet of the server with a dynamic cookie, before translation.
#[derive(Clone, Copy, Debug)]
pub struct DownstreamPacket {
    /// True if its source is translated to the cookie address.
    pub at_cookie: bool,
    pub signals: Signals,
    /// The client's port.
    pub port: u16,
}

/// Log of all packets.
#[derive(Clone, Debug, Default)]
pub struct PacketLog {
    pub down: Vec<DownstreamPacket>,
    /// Packets of the server without a valid dynamic cookie.
    pub without_cookie: usize,
    /// Packets from the cookie address to a client that has not sent to it.
    pub unsolicited: usize,
    pub to_vip: usize,
    /// The client's own port.
    client_port: u16,
    pub to_cookie: usize,
    /// Packets to and from the Service Address.
    pub tunnelled: [usize; 2],
}

/// The switch. Clones share keys and log.
#[derive(Clone)]
pub struct EdgeSwitch {
    keys: Arc<Mutex<Vec<Key>>>,
    sid: u16,
    translation: Arc<AtomicU16>,
    log: Arc<Mutex<PacketLog>>,
}

impl EdgeSwitch {
    pub fn new(key: Key, sid: u16) -> Self {
        Self {
            keys: Arc::new(Mutex::new(vec![key])),
            sid,
            translation: Arc::default(),
            log: Arc::default(),
        }
    }

    /// Add a key.
    pub fn add(&self, key: Key) {
        self.keys.lock().unwrap().push(key);
    }

    /// Translate the client's ports from now on, as a restarted NAT does.
    pub fn rebind(&self) {
        self.translation.store(0x1111, Relaxed);
    }

    pub fn log(&self) -> PacketLog {
        self.log.lock().unwrap().clone()
    }

    /// Forward packets between both interfaces until the process ends.
    pub fn start(&self, client: &File, server: &File) {
        let pairs = [(client, server, true), (server, client, false)];
        for (from, to, up) in pairs {
            let (mut from, mut to, edge_switch) = (
                from.try_clone().unwrap(),
                to.try_clone().unwrap(),
                self.clone(),
            );
            thread::spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                // The loop ends when the interface is deleted.
                while let Ok(n) = from.read(&mut buffer) {
                    let packet = &mut buffer[..n];
                    let translated = if up {
                        gateway::encapsulate(packet)
                    } else {
                        gateway::decapsulate(packet)
                    };
                    if let Some(packet) = translated {
                        edge_switch.log.lock().unwrap().tunnelled[usize::from(!up)] += 1;
                        if to.write_all(&packet).is_err() {
                            return;
                        }
                        continue;
                    }
                    let passes = if up {
                        edge_switch.up(packet)
                    } else {
                        edge_switch.down(packet)
                    };
                    if passes && to.write_all(packet).is_err() {
                        return;
                    }
                }
            });
        }
    }

    /// Return the cookie and its key, if it is valid for this server.
    fn open(&self, id: u64) -> Option<(Cookie, Key)> {
        let keys = self.keys.lock().unwrap();
        let opened = keys
            .iter()
            .find_map(|key| Some((key.open(id)?, key.clone())));
        opened.filter(|(cookie, _)| cookie.sid == self.sid)
    }

    /// Translate the client's port in a packet towards the server.
    fn bind(&self, packet: &mut [u8], log: &mut PacketLog) {
        log.client_port = word(packet, PAYLOAD);
        let port = log.client_port ^ self.translation.load(Relaxed);
        write(packet, PAYLOAD, &port.to_be_bytes());
    }

    /// Translate the port in a packet towards the client. The old binding remains, so a client that only receives stays
    /// reachable. Returns the port as the server knows it.
    fn unbind(&self, packet: &mut [u8], log: &PacketLog) -> u16 {
        let port = word(packet, PAYLOAD + 2);
        if port == log.client_port ^ self.translation.load(Relaxed) {
            write(packet, PAYLOAD + 2, &log.client_port.to_be_bytes());
        }
        port
    }

    fn up(&self, packet: &mut [u8]) -> bool {
        if !is_ipv6(packet) {
            return true;
        }
        let mut log = self.log.lock().unwrap();
        if packet[6] != UDP {
            return false;
        }
        self.bind(packet, &mut log);
        let destination = read(packet, DESTINATION);
        if destination == VIP {
            log.to_vip += 1;
            write(packet, DESTINATION, &DIP.octets());
            return true;
        }
        // Like the switch, pass only this server's static cookie.
        let id = destination.to_bits() as u64;
        let is_own = self
            .open(id)
            .is_some_and(|(cookie, _)| cookie.signals.is_none());
        if is_own && destination == join_address(COOKIE_PREFIX, id) {
            log.to_cookie += 1;
            write(
                packet,
                DESTINATION,
                &join_address(SERVER_PREFIX, id).octets(),
            );
            return true;
        }
        false
    }

    fn down(&self, packet: &mut [u8]) -> bool {
        if !is_ipv6(packet) {
            return true;
        }
        if packet[6] != UDP {
            return false;
        }
        let opened = self.open(read(packet, SOURCE).to_bits() as u64);
        let mut log = self.log.lock().unwrap();
        let Some((cookie, key)) = opened.filter(|(cookie, _)| cookie.signals.is_some()) else {
            log.without_cookie += 1;
            return false;
        };
        let at_cookie = cookie.expects_cookie_address;
        let port = self.unbind(packet, &log);
        log.unsolicited += usize::from(at_cookie && log.to_cookie == 0);
        log.down
            .extend(cookie.signals.map(|signals| DownstreamPacket {
                at_cookie,
                signals,
                port,
            }));
        let masked = Cookie {
            expects_cookie_address: false,
            signals: None,
            ..cookie
        };
        let source = if at_cookie {
            join_address(COOKIE_PREFIX, key.seal(&masked))
        } else {
            VIP
        };
        write(packet, SOURCE, &source.octets());
        true
    }
}

pub fn is_ipv6(packet: &[u8]) -> bool {
    packet[0] >> 4 == 6 && packet.len() > PAYLOAD
}

pub fn read(packet: &[u8], at: usize) -> Ipv6Addr {
    let octets: [u8; 16] = packet[at..at + 16].try_into().unwrap();
    octets.into()
}

/// Overwrite the bytes at `at`, and update the UDP checksum by the difference (RFC 1624).
fn write(packet: &mut [u8], at: usize, new: &[u8]) {
    let checksum = PAYLOAD + 6;
    let old_checksum = word(packet, checksum);
    let old = &packet[at..at + new.len()];
    let pairs = old.chunks(2).zip(new.chunks(2));
    let difference: u32 = pairs
        .map(|(old, new)| u32::from(!word(old, 0)) + u32::from(word(new, 0)))
        .sum();
    let mut sum = u32::from(!old_checksum) + difference;
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let sum = match !(sum as u16) {
        0 => 0xffff,
        sum => sum,
    };
    packet[at..at + new.len()].copy_from_slice(new);
    packet[checksum..checksum + 2].copy_from_slice(&sum.to_be_bytes());
}

pub fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
