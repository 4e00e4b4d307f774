//! Stands in for the edge switch between a client's namespace and the server's: VIP and cookie addresses to the server's own on the way up, and
//! back again on the way down as the dynamic cookie in each source says. It remembers what it saw.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex};
use std::thread;

use frontage_cookie::ipv6::{Cookie, Key};
use frontage_cookie::tcp::Signals;
use frontage_quic::socket::address;

/// The service's address.
pub const VIP: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1);
/// The upper halves of cookie addresses and of the server's own.
pub const COOKIE_PREFIX: u64 = 0x2001_0db8_000c_0000;
pub const SERVER_PREFIX: u64 = 0x2001_0db8_0005_0000;
/// The server's address for what came to the VIP.
pub const DIP: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 1);
pub const CLIENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 2);

const SOURCE: usize = 8;
const DESTINATION: usize = 24;
const PAYLOAD: usize = 40;
const UDP: u8 = 17;

/// A packet with a dynamic cookie, on the server's wire.
#[derive(Clone, Copy, Debug)]
pub struct Down {
    pub at_cookie: bool,
    pub signals: Signals,
    /// The client's.
    pub port: u16,
}

/// What passed.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub down: Vec<Down>,
    /// Packets of the server without a dynamic cookie that opens.
    pub without_cookie: usize,
    /// Packets to a client from a cookie address that it has never sent to.
    pub unasked: usize,
    pub to_vip: usize,
    pub to_cookie: usize,
}

#[derive(Clone)]
pub struct Hop {
    keys: Arc<Mutex<Vec<Key>>>,
    sid: u16,
    seen: Arc<Mutex<Seen>>,
}

impl Hop {
    pub fn new(key: Key, sid: u16) -> Self {
        Self {
            keys: Arc::new(Mutex::new(vec![key])),
            sid,
            seen: Arc::default(),
        }
    }

    /// Puts one more key in force.
    pub fn add(&self, key: Key) {
        self.keys.lock().unwrap().push(key);
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// Carries packets between the two until the process ends.
    pub fn start(&self, client: &File, server: &File) {
        let pairs = [(client, server, true), (server, client, false)];
        for (from, to, up) in pairs {
            let (mut from, mut to, hop) = (
                from.try_clone().unwrap(),
                to.try_clone().unwrap(),
                self.clone(),
            );
            thread::spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                // Ends with the interface.
                while let Ok(n) = from.read(&mut buffer) {
                    let packet = &mut buffer[..n];
                    let passes = if up { hop.up(packet) } else { hop.down(packet) };
                    if passes && to.write_all(packet).is_err() {
                        return;
                    }
                }
            });
        }
    }

    /// The cookie and its key, if it is one of this server's.
    fn open(&self, id: u64) -> Option<(Cookie, Key)> {
        let keys = self.keys.lock().unwrap();
        let opened = keys
            .iter()
            .find_map(|key| Some((key.open(id)?, key.clone())));
        opened.filter(|(cookie, _)| cookie.sid == self.sid)
    }

    fn up(&self, packet: &mut [u8]) -> bool {
        if !is_ipv6(packet) {
            return true;
        }
        let mut seen = self.seen.lock().unwrap();
        if packet[6] != UDP {
            return false;
        }
        let destination = read(packet, DESTINATION);
        if destination == VIP {
            seen.to_vip += 1;
            write(packet, DESTINATION, DIP);
            return true;
        }
        // As the switch does: nothing but this server's static cookie gets through.
        let id = destination.to_bits() as u64;
        let ours = self
            .open(id)
            .is_some_and(|(cookie, _)| cookie.signals.is_none());
        if ours && destination == address(COOKIE_PREFIX, id) {
            seen.to_cookie += 1;
            write(packet, DESTINATION, address(SERVER_PREFIX, id));
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
        let mut seen = self.seen.lock().unwrap();
        let Some((cookie, key)) = opened.filter(|(cookie, _)| cookie.signals.is_some()) else {
            seen.without_cookie += 1;
            return false;
        };
        let at_cookie = cookie.expects_cookie_address;
        let port = u16::from_be_bytes([packet[PAYLOAD + 2], packet[PAYLOAD + 3]]);
        seen.unasked += usize::from(at_cookie && seen.to_cookie == 0);
        seen.down.extend(cookie.signals.map(|signals| Down {
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
            address(COOKIE_PREFIX, key.seal(&masked))
        } else {
            VIP
        };
        write(packet, SOURCE, source);
        true
    }
}

fn is_ipv6(packet: &[u8]) -> bool {
    packet[0] >> 4 == 6 && packet.len() > PAYLOAD
}

fn read(packet: &[u8], at: usize) -> Ipv6Addr {
    let octets: [u8; 16] = packet[at..at + 16].try_into().unwrap();
    octets.into()
}

/// Changes an address, and the UDP checksum by the difference (RFC 1624).
fn write(packet: &mut [u8], at: usize, new: Ipv6Addr) {
    let old = read(packet, at);
    packet[at..at + 16].copy_from_slice(&new.octets());
    let checksum = PAYLOAD + 6;
    let was = u16::from_be_bytes([packet[checksum], packet[checksum + 1]]);
    let words = |address: Ipv6Addr| address.segments().into_iter().map(u32::from);
    let mut sum: u32 = u32::from(!was)
        + words(new).sum::<u32>()
        + words(old)
            .map(|word| u32::from(!(word as u16)))
            .sum::<u32>();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let sum = match !(sum as u16) {
        0 => 0xffff,
        sum => sum,
    };
    packet[checksum..checksum + 2].copy_from_slice(&sum.to_be_bytes());
}
