// SPDX-License-Identifier: Apache-2.0
//! The CloudCookie codec, for servers, switches' tests and tools. A server writes cookies into its packets. From
//! them, the switches of the data centre learn the flow's remaining processing time and the server's load, and they
//! find the server again from the cookies that the client echoes.
//!
//! `docs/cookie.md` is the specification, and the names here are those of the specification. The crate has no I/O
//! and, without its default feature `vectors`, needs no `std`.
//!
//! ```
//! use frontage_cookie::{Secret, tcp};
//! use core::net::Ipv4Addr;
//!
//! let key = tcp::Key::new(7, &Secret::new(b"sixteen or more bytes")?);
//! let tuple = tcp::Tuple::v4(Ipv4Addr::new(198, 51, 100, 9), Ipv4Addr::new(10, 9, 0, 1), 40_000, 80);
//! let code = key.seal(&tuple, tcp::Sid::new(42)?);
//! assert_eq!(key.open(&tuple, code), Some(tcp::Sid::new(42)?));
//! # Ok::<(), frontage_cookie::Error>(())
//! ```

#![cfg_attr(not(any(feature = "vectors", test)), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "load")]
extern crate alloc;

pub mod cid;
pub mod ipv6;
#[cfg(feature = "load")]
pub mod load;
pub mod quant;
mod stream;
pub mod syn;
pub mod tcp;
#[cfg(feature = "vectors")]
#[allow(missing_docs)] // The fields are those of docs/cookie-vectors.json.
pub mod vectors;

/// Key material of 16 to 32 bytes.
#[derive(Clone)]
pub struct Secret {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Secret {
    /// Least length of a secret in bytes.
    pub const MIN: usize = 16;
    /// Greatest length of a secret in bytes, which is that of BLAKE2s keys.
    pub const MAX: usize = 32;

    /// Copy `bytes`.
    ///
    /// # Errors
    /// Unless there are 16 to 32 bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, Error> {
        if !(Self::MIN..=Self::MAX).contains(&bytes.len()) {
            return Err(Error::SecretLength(bytes.len()));
        }
        let mut secret = Self {
            bytes: [0; Self::MAX],
            len: bytes.len(),
        };
        secret.bytes[..bytes.len()].copy_from_slice(bytes);
        Ok(secret)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Secret({} bytes)", self.len)
    }
}

/// Why a value does not fit into a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The secret has this many bytes, not 16 to 32.
    SecretLength(usize),
    /// The server id does not fit the 12 bits of the TCP form.
    SidTooLarge(u16),
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::SecretLength(n) => {
                write!(
                    f,
                    "secret of {n} bytes: use {} to {} bytes",
                    Secret::MIN,
                    Secret::MAX
                )
            }
            Self::SidTooLarge(sid) => {
                write!(
                    f,
                    "server id {sid} does not fit the TCP cookie: use 0 to {}",
                    tcp::Sid::MAX
                )
            }
        }
    }
}

impl core::error::Error for Error {}
