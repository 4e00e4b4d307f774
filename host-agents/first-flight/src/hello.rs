// SPDX-License-Identifier: Apache-2.0
//! The ClientHello (RFC 8446, 4.1.2), which may be incomplete: server name (RFC 6066, 3) and ALPN (RFC 7301, 3.1).
//!
//! Only the lengths of all other fields are checked.

use crate::{Crypto, Fault};

/// The fields of a ClientHello that select a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Server name as sent. With an encrypted ClientHello it is the outer, public name.
    pub name: Option<&'a [u8]>,
    /// Application protocols, if the client offers any.
    pub alpn: Option<Alpn<'a>>,
    /// True if there is an encrypted ClientHello, or a GREASE extension that looks like one.
    pub ech: bool,
}

/// Application protocols, preferred one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alpn<'a>(&'a [u8]);

impl<'a> Alpn<'a> {
    /// Return the protocol names.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (length, more) = rest.split_first()?;
            let (name, more) = more.split_at_checked((*length).into())?;
            rest = more;
            Some(name)
        })
    }
}

const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
const HOST_NAME: u8 = 0;

/// Why parsing stopped.
enum Stop {
    /// More data is needed.
    Short,
    Wrong,
}

/// The rest of a message that may be incomplete.
struct Part<'a> {
    /// The bytes that have arrived.
    bytes: &'a [u8],
    /// Length of the rest of the message.
    left: usize,
}

impl<'a> Part<'a> {
    #[inline]
    fn take(&mut self, n: usize) -> Result<&'a [u8], Stop> {
        self.left = self.left.checked_sub(n).ok_or(Stop::Wrong)?;
        let (taken, rest) = self.bytes.split_at_checked(n).ok_or(Stop::Short)?;
        self.bytes = rest;
        Ok(taken)
    }

    #[inline]
    fn number(&mut self, bytes: usize) -> Result<usize, Stop> {
        Ok(self
            .take(bytes)?
            .iter()
            .fold(0, |n, byte| n << 8 | usize::from(*byte)))
    }

    /// Read a vector after its length, which takes `bytes` bytes.
    #[inline]
    fn vector(&mut self, bytes: usize) -> Result<&'a [u8], Stop> {
        let n = self.number(bytes)?;
        self.take(n)
    }

    /// Wrap bytes that are complete.
    const fn whole(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            left: bytes.len(),
        }
    }
}

/// Parse the first bytes of the CRYPTO stream. Return `None` if more are needed. Name and ALPN suffice, so the first
/// packet of a long ClientHello need not wait for the second.
///
/// # Errors
/// [`Fault::BadHello`], [`Fault::CryptoTooLong`].
#[inline]
pub fn read(prefix: &[u8]) -> Result<Option<Hello<'_>>, Fault> {
    let Some((head, bytes)) = prefix.split_first_chunk::<4>() else {
        return match prefix.first() {
            Some(kind) if *kind != CLIENT_HELLO => Err(Fault::BadHello),
            _ => Ok(None),
        };
    };
    if head[0] != CLIENT_HELLO {
        return Err(Fault::BadHello);
    }
    let left = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
    if head.len() + left > Crypto::BOUND {
        return Err(Fault::CryptoTooLong);
    }
    let bytes = &bytes[..left.min(bytes.len())];
    let mut hello = Hello::default();
    match extensions(Part { bytes, left }, &mut hello) {
        Ok(()) => Ok(Some(hello)),
        Err(Stop::Short) if hello.name.is_some() && hello.alpn.is_some() => Ok(Some(hello)),
        Err(Stop::Short) => Ok(None),
        Err(Stop::Wrong) => Err(Fault::BadHello),
    }
}

#[inline]
fn extensions<'a>(mut rest: Part<'a>, hello: &mut Hello<'a>) -> Result<(), Stop> {
    rest.take(2 + 32)?; // legacy version, random
    rest.vector(1)?; // legacy session id
    rest.vector(2)?; // cipher suites
    rest.vector(1)?; // compression methods
    if rest.number(2)? != rest.left {
        return Err(Stop::Wrong);
    }
    while rest.left > 0 {
        let kind = rest.number(2)? as u16;
        let content = rest.vector(2)?;
        match kind {
            SERVER_NAME => set(&mut hello.name, server_name(content))?,
            ALPN => set(&mut hello.alpn, alpn(content))?,
            ENCRYPTED_CLIENT_HELLO => hello.ech = true,
            _ => {}
        }
    }
    Ok(())
}

/// Set `value`. An extension must not occur twice (RFC 8446, 4.2).
fn set<T>(value: &mut Option<T>, read: Result<T, Stop>) -> Result<(), Stop> {
    match value.replace(read?) {
        None => Ok(()),
        Some(_) => Err(Stop::Wrong),
    }
}

/// Parse the host name. There must be exactly one (RFC 6066, 3).
fn server_name(content: &[u8]) -> Result<&[u8], Stop> {
    let mut list = list(content)?;
    let kind = list.number(1)?;
    let name = list.vector(2)?;
    if kind != usize::from(HOST_NAME) || name.is_empty() || list.left > 0 {
        return Err(Stop::Wrong);
    }
    Ok(name)
}

fn alpn(content: &[u8]) -> Result<Alpn<'_>, Stop> {
    let mut list = list(content)?;
    let names = Alpn(list.bytes);
    if list.left == 0 {
        return Err(Stop::Wrong);
    }
    while list.left > 0 {
        if list.vector(1)?.is_empty() {
            return Err(Stop::Wrong);
        }
    }
    Ok(names)
}

/// Parse a list that fills an extension.
fn list(content: &[u8]) -> Result<Part<'_>, Stop> {
    let mut content = Part::whole(content);
    let list = content.vector(2)?;
    if content.left > 0 {
        return Err(Stop::Wrong);
    }
    Ok(Part::whole(list))
}
