// SPDX-License-Identifier: Apache-2.0
//! Report of a download: what was received, and when.

use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;

use super::AddressSource;

/// Report of one download.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// URL as given on the command line.
    pub url: String,
    /// Why the download failed; null if it is complete.
    pub error: Option<String>,
    /// HTTP status of the response.
    pub status: Option<u16>,
    /// Length of the body in bytes.
    pub bytes: u64,
    /// QuicSocks proxy at which the connection started.
    pub proxy: Option<String>,
    /// Where the address `service` came from.
    pub found: Option<AddressSource>,
    /// Address of the name. An address from a proxy appears here once the server has answered there.
    pub service: Option<SocketAddr>,
    /// Address from the cache.
    pub cached: Option<SocketAddr>,
    /// Why the connection is not at `cached`, which was then removed from the cache.
    pub invalidated: Option<String>,
    /// Server address of the handshake.
    pub connected: Option<SocketAddr>,
    /// The server's preferred address.
    pub preferred: Option<SocketAddr>,
    /// Seconds for which the preferred address is valid.
    pub service_ttl: Option<u64>,
    /// Client address.
    pub local: Option<SocketAddr>,
    /// Why the connection stayed at the proxy; null if it migrated.
    pub stayed: Option<String>,
    /// Time of each step.
    pub seconds: Seconds,
}

/// Seconds from the start to the end of each step.
#[derive(Debug, Default, Serialize)]
pub struct Seconds {
    /// SOCKS association opened.
    pub association: Option<f64>,
    /// Address known.
    pub name: Option<f64>,
    /// Handshake complete.
    pub connect: Option<f64>,
    /// Response header received.
    pub first_byte: Option<f64>,
    /// Body complete or failed.
    pub total: Option<f64>,
    /// First packet received from the preferred address, or on the direct path instead of through the proxy.
    pub migrated: Option<f64>,
}

impl Report {
    /// Returns true if the download is complete and its status is a success.
    pub fn is_success(&self) -> bool {
        self.error.is_none() && self.status.is_some_and(|status| status / 100 == 2)
    }
}

impl fmt::Display for Report {
    /// Writes a table with the end and the duration of each step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format_address = |address: Option<SocketAddr>| {
            address.map_or_else(String::new, |address| address.to_string())
        };
        let name = match self.found {
            Some(AddressSource::Artemis) => {
                format!("{} (Service Address)", format_address(self.service))
            }
            Some(AddressSource::Dns) => format!("{} (DNS)", format_address(self.service)),
            Some(AddressSource::System) => format!("{} (system)", format_address(self.service)),
            Some(AddressSource::Literal | AddressSource::QuicSocks) | None => {
                format_address(self.service)
            }
        };
        let connect = match (&self.invalidated, self.cached, &self.proxy) {
            (Some(reason), Some(cached), _) => {
                format!(
                    "{} (cached {cached} invalidated: {reason})",
                    format_address(self.connected)
                )
            }
            (None, Some(_), _) => format!("{} (cached)", format_address(self.connected)),
            (.., Some(_)) => "through the proxy".into(),
            _ => format_address(self.connected),
        };
        let migrated = match (&self.proxy, self.service_ttl) {
            (Some(_), _) => format!("{} (direct path)", format_address(self.service)),
            (None, Some(ttl)) => format!("{}, for {ttl} s", format_address(self.preferred)),
            (None, None) => format_address(self.preferred),
        };
        let status = self
            .status
            .map_or_else(String::new, |status| format!("status {status}"));
        let seconds = &self.seconds;
        let steps = [
            (
                "association",
                seconds.association,
                None,
                self.proxy.clone().unwrap_or_default(),
            ),
            ("name", seconds.name, None, name),
            (
                "connect",
                seconds.connect,
                seconds.name.or(seconds.association),
                connect,
            ),
            ("first byte", seconds.first_byte, seconds.connect, status),
            (
                "total",
                seconds.total,
                seconds.first_byte,
                format!("{} bytes", self.bytes),
            ),
            ("migrated", seconds.migrated, seconds.connect, migrated),
        ];
        writeln!(f, "{:<11}{:>10}{:>10}", "", "at ms", "took ms")?;
        for (step, at, before, detail) in steps {
            if let Some(at) = at {
                let took = at - before.unwrap_or(0.);
                writeln!(
                    f,
                    "{step:<11}{:>10.3}{:>10.3}  {detail}",
                    at * 1e3,
                    took * 1e3
                )?;
            }
        }
        if let Some(reason) = &self.stayed {
            writeln!(f, "stayed at the proxy: {reason}")?;
        }
        if let Some(error) = &self.error {
            writeln!(f, "error: {error}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_are_aligned() {
        let service: SocketAddr = "[2001:db8:a:acdc::]:443".parse().unwrap();
        let unicast: SocketAddr = "[2001:db8:c::7]:443".parse().unwrap();
        let report = Report {
            status: Some(200),
            bytes: 7,
            found: Some(AddressSource::Artemis),
            service: Some(service),
            cached: Some(unicast),
            invalidated: Some("refused".into()),
            connected: Some(service),
            seconds: Seconds {
                association: None,
                name: Some(0.000_012),
                connect: Some(0.1),
                first_byte: Some(0.15),
                total: Some(0.25),
                migrated: None,
            },
            ..Report::default()
        };
        let expected = "                at ms   took ms
name            0.012     0.012  [2001:db8:a:acdc::]:443 (Service Address)
connect       100.000    99.988  [2001:db8:a:acdc::]:443 (cached [2001:db8:c::7]:443 invalidated: refused)
first byte    150.000    50.000  status 200
total         250.000   100.000  7 bytes
";
        assert_eq!(report.to_string(), expected);
        let report = Report {
            error: Some("timeout".into()),
            ..Report::default()
        };
        assert!(report.to_string().ends_with("took ms\nerror: timeout\n"));
    }

    #[test]
    fn table_shows_the_proxy() {
        let mut report = Report {
            proxy: Some("proxy.example:1080".into()),
            found: Some(AddressSource::QuicSocks),
            service: Some("[2001:db8:c::7]:443".parse().unwrap()),
            seconds: Seconds {
                association: Some(0.02),
                connect: Some(0.06),
                migrated: Some(0.09),
                ..Seconds::default()
            },
            ..Report::default()
        };
        let expected = "                at ms   took ms
association    20.000    20.000  proxy.example:1080
connect        60.000    40.000  through the proxy
migrated       90.000    30.000  [2001:db8:c::7]:443 (direct path)
";
        assert_eq!(report.to_string(), expected);
        report.stayed = Some("the server forbids migration".into());
        let stayed = "\nstayed at the proxy: the server forbids migration\n";
        assert!(report.to_string().ends_with(stayed), "{report}");
    }
}
