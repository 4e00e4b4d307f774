// SPDX-License-Identifier: Apache-2.0
//! Addresses of nanomsg.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// An address of nanomsg to bind to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NanomsgAddress {
    /// A Unix socket: `ipc://PATH`.
    Ipc(PathBuf),
    /// `tcp://HOST:PORT`; the host `*` means all addresses, and port 0 a free port.
    Tcp(String),
}

impl NanomsgAddress {
    /// Returns BMv2's default address.
    pub fn of_device(device_id: u64) -> Self {
        Self::Ipc(format!("/tmp/bmv2-{device_id}-notifications.ipc").into())
    }
}

impl FromStr for NanomsgAddress {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let expected =
            "expected ipc://PATH or tcp://HOST:PORT: for example ipc:///tmp/notifications.ipc";
        if let Some(path) = s.strip_prefix("ipc://").filter(|path| !path.is_empty()) {
            return Ok(Self::Ipc(path.into()));
        }
        let host_port = s.strip_prefix("tcp://").ok_or(expected)?;
        let (host, port) = host_port.rsplit_once(':').ok_or(expected)?;
        port.parse::<u16>().map_err(|_| expected)?;
        let host = match host {
            "" => return Err(expected.into()),
            "*" => "0.0.0.0",
            host => host,
        };
        Ok(Self::Tcp(format!("{host}:{port}")))
    }
}

impl fmt::Display for NanomsgAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ipc(path) => write!(f, "ipc://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_addresses_of_nanomsg() {
        let parse = |text: &str| text.parse::<NanomsgAddress>();
        assert_eq!(
            parse("ipc:///tmp/x"),
            Ok(NanomsgAddress::Ipc("/tmp/x".into()))
        );
        assert_eq!(
            parse("tcp://*:80"),
            Ok(NanomsgAddress::Tcp("0.0.0.0:80".into()))
        );
        assert_eq!(parse("tcp://[::1]:0").unwrap().to_string(), "tcp://[::1]:0");
        for text in [
            "",
            "ipc://",
            "tcp://",
            "tcp://x",
            "tcp://:1",
            "tcp://a:70000",
            "inproc://x",
            "/tmp/x",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
