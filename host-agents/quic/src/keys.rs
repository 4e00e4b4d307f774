//! The keys of the cookie that are in force, shared by everything that seals or opens one; they rotate while the server runs.

use std::sync::{Arc, RwLock};

use frontage_cookie::ipv6::{Cookie, Key};

/// Most keys in force at a time: the newer seals, both open (`docs/cookie.md`, "Life of a key").
const MAX: usize = 2;

/// The keys in force and the server whom they seal.
pub struct Keys {
    sid: u16,
    ring: Arc<RwLock<Ring>>,
}

#[derive(Clone)]
struct Ring {
    newest: Arc<Key>,
    previous: Option<Arc<Key>>,
}

/// Keys that cannot be in force together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// There are this many, not one or two.
    Count(usize),
    /// These two ids do not follow each other, so that their epochs could be alike.
    Gap(u32, u32),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(n) => write!(f, "{n} keys; give one, or the two newest"),
            Self::Gap(a, b) => write!(f, "key ids {a} and {b}; the second must follow the first"),
        }
    }
}

impl std::error::Error for Error {}

impl Keys {
    /// Puts `keys` in force for server `sid`.
    pub fn new(sid: u16, keys: Vec<Key>) -> Result<Self, Error> {
        Ok(Self {
            sid,
            ring: Arc::new(RwLock::new(ring(keys)?)),
        })
    }

    /// Puts other keys in force; those that were are forgotten. Unchanged if there is an error.
    pub fn rotate(&self, keys: Vec<Key>) -> Result<(), Error> {
        let ring = ring(keys)?;
        *self.ring.write().expect("nobody panics with it") = ring;
        Ok(())
    }

    /// The same keys, now and later, for what is server `sid` to another service.
    pub fn with_sid(&self, sid: u16) -> Self {
        Self {
            sid,
            ring: self.ring.clone(),
        }
    }

    /// The server's id.
    pub const fn sid(&self) -> u16 {
        self.sid
    }

    /// The key that seals.
    pub fn newest(&self) -> Arc<Key> {
        self.ring
            .read()
            .expect("nobody panics with it")
            .newest
            .clone()
    }

    /// What `open` makes of each key in force, the newest first, until it makes something.
    pub fn find<T>(&self, open: impl Fn(&Key) -> Option<T>) -> Option<T> {
        let ring = self.ring.read().expect("nobody panics with it");
        open(&ring.newest).or_else(|| ring.previous.as_deref().and_then(open))
    }

    /// The epoch of the key that sealed `interface_id`, if it is this server's static cookie.
    pub fn epoch_of_static(&self, interface_id: u64) -> Option<u32> {
        self.find(|key| {
            let cookie = key.open(interface_id)?;
            (cookie.signals.is_none() && cookie.sid == self.sid).then_some(key.id() & 1)
        })
    }

    /// `cookie` sealed by the key in force of this `epoch`, or by the newest if none is.
    pub fn seal(&self, cookie: &Cookie, epoch: Option<u32>) -> u64 {
        let ring = self.ring.read().expect("nobody panics with it");
        let previous = ring
            .previous
            .as_deref()
            .filter(|key| epoch == Some(key.id() & 1));
        previous.unwrap_or(&ring.newest).seal(cookie)
    }

    /// The interface id of the server's `preferred_address`: its static cookie by the newest key.
    pub fn static_interface_id(&self) -> u64 {
        self.newest().seal(&Cookie {
            sid: self.sid,
            expects_cookie_address: false,
            signals: None,
        })
    }
}

fn ring(mut keys: Vec<Key>) -> Result<Ring, Error> {
    keys.sort_by_key(Key::id);
    if keys.is_empty() || keys.len() > MAX {
        return Err(Error::Count(keys.len()));
    }
    let newest = keys.pop().expect("not empty");
    let previous = keys.pop();
    match &previous {
        Some(key) if key.id() + 1 != newest.id() => Err(Error::Gap(key.id(), newest.id())),
        _ => Ok(Ring {
            newest: Arc::new(newest),
            previous: previous.map(Arc::new),
        }),
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

    fn key(id: u32) -> Key {
        Key::new(id, &Secret::new(&[id as u8; 16]).unwrap())
    }

    #[test]
    fn the_newest_seals_and_both_open() {
        let keys = Keys::new(7, vec![key(4)]).unwrap();
        let old = keys.static_interface_id();
        let other = keys.with_sid(8);
        keys.rotate(vec![key(5), key(4)]).unwrap();
        assert_eq!((other.sid(), other.newest().id()), (8, 5));
        let new = keys.static_interface_id();
        assert_eq!(
            (keys.epoch_of_static(old), keys.epoch_of_static(new)),
            (Some(0), Some(1))
        );
        let cookie = Cookie {
            sid: 7,
            expects_cookie_address: false,
            signals: None,
        };
        assert_eq!(
            (keys.seal(&cookie, Some(0)), keys.seal(&cookie, None)),
            (old, new)
        );
        keys.rotate(vec![key(5), key(6)]).unwrap();
        assert_eq!(keys.epoch_of_static(old), None);
    }

    #[test]
    fn the_address_of_another_server_is_not_ours() {
        let theirs = Keys::new(8, vec![key(4)]).unwrap().static_interface_id();
        assert_eq!(
            Keys::new(7, vec![key(4)]).unwrap().epoch_of_static(theirs),
            None
        );
    }

    #[test]
    fn epochs_must_differ() {
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
