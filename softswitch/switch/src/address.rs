// SPDX-License-Identifier: Apache-2.0
//! Addresses and listeners of the servers.

mod nanomsg;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use tokio::net::{TcpListener, UnixListener, UnixStream};

pub use nanomsg::NanomsgAddress;

/// An address to bind to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `host:port`; port 0 takes a free one.
    Tcp(String),
    /// A path of a Unix socket.
    Unix(PathBuf),
}

/// A bound listener.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A socket in the file system.
    Unix(UnixListener),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        if let Some(path) = s.strip_prefix("unix:") {
            // gRPC's forms: unix:path and unix:///absolute/path.
            let path = path.strip_prefix("//").unwrap_or(path);
            return Ok(Self::Unix(path.into()));
        }
        if s.contains('/') {
            return Ok(Self::Unix(s.into()));
        }
        let port = s
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse::<u16>().ok());
        match port {
            Some(_) => Ok(Self::Tcp(s.into())),
            None => Err("expected HOST:PORT or unix:PATH: for example 127.0.0.1:9559".into()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// Binds, and returns the address for clients, with the actual port number.
    ///
    /// # Errors
    /// If the address is in use, does not exist, or is not permitted.
    pub async fn bind(&self) -> anyhow::Result<(Listener, Address)> {
        let what = || format!("cannot listen on {self}");
        match self {
            Self::Tcp(address) => {
                let listener = TcpListener::bind(address).await.with_context(what)?;
                let bound = Self::Tcp(listener.local_addr()?.to_string());
                Ok((Listener::Tcp(listener), bound))
            }
            Self::Unix(path) => {
                remove_stale(path).await.with_context(what)?;
                let listener = UnixListener::bind(path).with_context(what)?;
                Ok((Listener::Unix(listener), self.clone()))
            }
        }
    }

    /// Removes the file that [`bind`](Self::bind) created.
    pub fn clean_up(&self) {
        if let Self::Unix(path) = self {
            // Others may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes a socket without a listener.
///
/// # Errors
/// With kind `AddrInUse` if there is a listener, or if the file cannot be removed.
pub(crate) async fn remove_stale(path: &Path) -> io::Result<()> {
    match UnixStream::connect(path).await {
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process listens there",
        )),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        // bind will report any other error.
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_tcp_and_unix_addresses() {
        let unix = |path: &str| Ok(Address::Unix(path.into()));
        assert_eq!(
            "127.0.0.1:0".parse(),
            Ok(Address::Tcp("127.0.0.1:0".into()))
        );
        assert_eq!("[::]:9559".parse(), Ok(Address::Tcp("[::]:9559".into())));
        assert_eq!("unix:/run/s".parse(), unix("/run/s"));
        assert_eq!("unix:///run/s".parse(), unix("/run/s"));
        assert_eq!("unix:s".parse(), unix("s"));
        assert_eq!("./s".parse(), unix("./s"));
        assert!("localhost".parse::<Address>().is_err());
        assert!("localhost:99999".parse::<Address>().is_err());
    }
}
