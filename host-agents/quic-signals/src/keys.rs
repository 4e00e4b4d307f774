// SPDX-License-Identifier: Apache-2.0
//! The cookie keys in force, shared by everything that seals or opens a cookie. They rotate while the server runs.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

use frontage_cookie::ipv6::{Cookie, Key};
use parking_lot::{RwLock, RwLockReadGuard};

/// Most keys in force at a time: the newer one seals, and both open (`docs/cookie.md`, "Life of a key").
const MAX_KEYS: usize = 2;

/// The keys in force, and the server id that they seal.
pub struct Keys {
    sid: u16,
    ring: RwLock<Ring>,
    /// Number of rotations so far.
    generation: AtomicU64,
}

struct Ring {
    newest: Entry,
    previous: Option<Entry>,
}

struct Entry {
    key: Arc<Key>,
    /// The interface id of the server's static cookie.
    static_id: u64,
}

/// A cache of one connection's sealed cookies, by RPT. Most cookies of a connection repeat one of them.
#[derive(Debug, Default)]
pub struct SealedCookies {
    /// Generation of the keys, requested epoch, and epoch of the key that sealed all entries.
    sealed_by: Option<(u64, Option<u32>, u32)>,
    /// The bits before sealing, which are never 0, and after.
    entries: [(u64, u64); ENTRIES],
}

/// Position of RPT in the bits before sealing (`docs/cookie.md`, "IPv6").
const RPT_SHIFT: u32 = 36;

/// Number of entries, indexed by the lowest bits of RPT's code, in which the responses of one connection differ.
const ENTRIES: usize = 16;

impl SealedCookies {
    fn entry(&mut self, plain: u64) -> &mut (u64, u64) {
        &mut self.entries[(plain >> RPT_SHIFT) as usize % ENTRIES]
    }
}

/// Why keys cannot be in force together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is not one key or two, but this many.
    Count(usize),
    /// These two key ids are not consecutive, so their epochs could be equal.
    Gap(u32, u32),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(n) => write!(f, "{n} keys: give one, or the two newest"),
            Self::Gap(a, b) => {
                write!(f, "key ids {a} and {b}: the ids must be consecutive")
            }
        }
    }
}

impl std::error::Error for Error {}

impl Keys {
    /// Put `keys` in force for server `sid`.
    ///
    /// # Errors
    /// If `keys` cannot be in force together.
    pub fn new(sid: u16, keys: Vec<Key>) -> Result<Self, Error> {
        let ring = RwLock::new(ring(sid, keys)?);
        let generation = AtomicU64::new(0);
        Ok(Self {
            sid,
            ring,
            generation,
        })
    }

    /// Replace the keys in force.
    ///
    /// # Errors
    /// If `keys` cannot be in force together. The previous keys stay in force then.
    pub fn rotate(&self, keys: Vec<Key>) -> Result<(), Error> {
        let ring = ring(self.sid, keys)?;
        *self.ring.write() = ring;
        self.generation.fetch_add(1, Release);
        Ok(())
    }

    /// Return the number of rotations so far.
    pub fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    /// Return the server id.
    pub const fn sid(&self) -> u16 {
        self.sid
    }

    /// Return the key that seals.
    pub fn newest(&self) -> Arc<Key> {
        self.ring().newest.key.clone()
    }

    /// Return the epoch of the key that sealed `interface_id`, if it is this server's static cookie.
    pub fn epoch_of_static(&self, interface_id: u64) -> Option<u32> {
        let ring = self.ring();
        let mut entries = std::iter::once(&ring.newest).chain(&ring.previous);
        let entry = entries.find(|entry| entry.static_id == interface_id)?;
        Some(entry.key.id() & 1)
    }

    /// Seal `cookie` with the key of this `epoch`, or with the newest key if none in force has it, and return the
    /// interface id. `sealed` is the connection's cache.
    pub fn seal(&self, cookie: &Cookie, epoch: Option<u32>, sealed: &mut SealedCookies) -> u64 {
        let generation = self.generation();
        if let Some((cached_generation, requested, used)) = sealed.sealed_by
            && (cached_generation, requested) == (generation, epoch)
        {
            let plain = cookie.plain(used);
            let (cached, interface_id) = *sealed.entry(plain);
            if cached == plain {
                return interface_id;
            }
        } else {
            *sealed = SealedCookies::default();
        }
        let ring = self.ring();
        let previous = ring
            .previous
            .as_ref()
            .filter(|entry| epoch == Some(entry.key.id() & 1));
        let key = &previous.unwrap_or(&ring.newest).key;
        let interface_id = key.seal(cookie);
        // The lock is held, so these keys are of `generation` or newer. If newer, the next call sees another
        // generation and seals again.
        sealed.sealed_by = Some((generation, epoch, key.id() & 1));
        let plain = cookie.plain(key.id());
        *sealed.entry(plain) = (plain, interface_id);
        interface_id
    }

    /// Return the interface id of the server's static cookie by the key of this `epoch`, if one is in force.
    pub fn static_interface_id_of(&self, epoch: u32) -> Option<u64> {
        let ring = self.ring();
        let mut entries = std::iter::once(&ring.newest).chain(&ring.previous);
        let entry = entries.find(|entry| entry.key.id() & 1 == epoch)?;
        Some(entry.static_id)
    }

    /// Return the interface id of the server's `preferred_address`: its static cookie by the newest key.
    pub fn static_interface_id(&self) -> u64 {
        self.ring().newest.static_id
    }

    fn ring(&self) -> RwLockReadGuard<'_, Ring> {
        self.ring.read()
    }
}

/// Check `keys` and compute their static cookies.
fn ring(sid: u16, mut keys: Vec<Key>) -> Result<Ring, Error> {
    keys.sort_by_key(Key::id);
    if keys.is_empty() || keys.len() > MAX_KEYS {
        return Err(Error::Count(keys.len()));
    }
    let newest = keys.pop().expect("there is a key");
    let previous = keys.pop();
    match &previous {
        Some(key) if key.id() + 1 != newest.id() => Err(Error::Gap(key.id(), newest.id())),
        _ => Ok(Ring {
            newest: entry(sid, newest),
            previous: previous.map(|key| entry(sid, key)),
        }),
    }
}

fn entry(sid: u16, key: Key) -> Entry {
    let cookie = Cookie {
        sid,
        expects_cookie_address: false,
        signals: None,
    };
    Entry {
        static_id: key.seal(&cookie),
        key: Arc::new(key),
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys(SID {}, newest {})", self.sid, self.newest().id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frontage_cookie::Secret;
    use frontage_cookie::tcp::Signals;

    fn key(id: u32) -> Key {
        Key::new(id, &Secret::new(&[id as u8; 16]).unwrap())
    }

    #[test]
    fn newest_key_seals_and_both_open() {
        let keys = Keys::new(7, vec![key(4)]).unwrap();
        let old = keys.static_interface_id();
        let opened = key(4).open(old).unwrap();
        assert_eq!((opened.sid, opened.signals), (7, None));
        keys.rotate(vec![key(5), key(4)]).unwrap();
        let new = keys.static_interface_id();
        assert_eq!(
            (keys.epoch_of_static(old), keys.epoch_of_static(new)),
            (Some(0), Some(1))
        );
        keys.rotate(vec![key(5), key(6)]).unwrap();
        assert_eq!(keys.epoch_of_static(old), None);
    }

    #[test]
    fn cached_cookie_equals_a_newly_sealed_one() {
        let keys = Keys::new(7, vec![key(4), key(5)]).unwrap();
        let (mut sealed, mut cookies) = (SealedCookies::default(), Vec::new());
        let other = Key::new(5, &Secret::new(&[9; 16]).unwrap());
        for rotated in [false, true] {
            if rotated {
                // The key ids stay the same.
                keys.rotate(vec![key(4), other.clone()]).unwrap();
            }
            let newest = if rotated { &other } else { &key(5) };
            for (epoch, key) in [(Some(0), &key(4)), (Some(1), newest), (None, newest)] {
                for rpt_us in [80, 80, 768, 80] {
                    let signals = Signals {
                        rpt_us,
                        n_af: 1,
                        n_ff: 1,
                    };
                    let cookie = Cookie {
                        sid: 7,
                        expects_cookie_address: epoch.is_some(),
                        signals: Some(signals),
                    };
                    let interface_id = keys.seal(&cookie, epoch, &mut sealed);
                    assert_eq!(key.open(interface_id), Some(cookie));
                    cookies.push(interface_id);
                }
            }
        }
        assert!(cookies.chunks(4).all(|c| c[0] == c[1] && c[0] == c[3]));
    }

    #[test]
    fn static_cookie_of_another_server_is_not_recognised() {
        let theirs = Keys::new(8, vec![key(4)]).unwrap().static_interface_id();
        assert_eq!(
            Keys::new(7, vec![key(4)]).unwrap().epoch_of_static(theirs),
            None
        );
    }

    #[test]
    fn keys_must_be_one_or_two_with_consecutive_ids() {
        assert_eq!(Keys::new(7, vec![]).unwrap_err(), Error::Count(0));
        let keys = Keys::new(7, vec![key(4)]).unwrap();
        assert_eq!(keys.rotate(vec![key(4), key(6)]), Err(Error::Gap(4, 6)));
        assert_eq!(
            keys.rotate(vec![key(4), key(5), key(6)]),
            Err(Error::Count(3))
        );
        assert_eq!(keys.newest().id(), 4);
    }
}
