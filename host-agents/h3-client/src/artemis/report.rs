//! What came, and when.

use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;

use super::Found;

/// Of one URL.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// As it was asked for.
    pub url: String,
    /// Why it is not whole; null if it is.
    pub error: Option<String>,
    /// Of HTTP.
    pub status: Option<u16>,
    /// Of the body.
    pub bytes: u64,
    /// The QuicSocks proxy that it began at.
    pub proxy: Option<String>,
    /// How `service` was found.
    pub found: Option<Found>,
    /// The name's address; a proxy's word for it counts once the server was heard there.
    pub service: Option<SocketAddr>,
    /// What the cache knew.
    pub cached: Option<SocketAddr>,
    /// Why the connection is not at `cached`, which then was forgotten.
    pub invalidated: Option<String>,
    /// Where the handshake was.
    pub connected: Option<SocketAddr>,
    /// What the server prefers.
    pub preferred: Option<SocketAddr>,
    /// For how many seconds.
    pub service_ttl: Option<u64>,
    /// The client's.
    pub local: Option<SocketAddr>,
    /// Why it ended at the proxy; null if it went on by the direct path.
    pub stayed: Option<String>,
    /// When each step was done.
    pub seconds: Seconds,
}

/// Since the beginning.
#[derive(Debug, Default, Serialize)]
pub struct Seconds {
    /// The proxy made an association (SOCKS).
    pub association: Option<f64>,
    /// An address was there.
    pub name: Option<f64>,
    /// The handshake was complete.
    pub connect: Option<f64>,
    /// The answer's header came.
    pub first_byte: Option<f64>,
    /// Its body was whole, or failed.
    pub total: Option<f64>,
    /// The first packet came from the preferred address, or by the direct path rather than by the proxy.
    pub migrated: Option<f64>,
}

impl Report {
    /// Whether all came, with a status of success.
    pub fn is_good(&self) -> bool {
        self.error.is_none() && self.status.is_some_and(|status| status / 100 == 2)
    }
}

impl fmt::Display for Report {
    /// A table: for each step when it was done and how long it took.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |address: Option<SocketAddr>| {
            address.map_or_else(String::new, |address| address.to_string())
        };
        let name = match self.found {
            Some(Found::Artemis) => format!("{} (Service Address)", shown(self.service)),
            Some(Found::Dns) => format!("{} (DNS)", shown(self.service)),
            Some(Found::System) => format!("{} (this machine)", shown(self.service)),
            Some(Found::Literal | Found::QuicSocks) | None => shown(self.service),
        };
        let connect = match (&self.invalidated, self.cached, &self.proxy) {
            (Some(reason), Some(cached), _) => {
                format!("{} ({cached} forgotten: {reason})", shown(self.connected))
            }
            (None, Some(_), _) => format!("{} (cached)", shown(self.connected)),
            (.., Some(_)) => "by the proxy".into(),
            _ => shown(self.connected),
        };
        let migrated = match (&self.proxy, self.service_ttl) {
            (Some(_), _) => format!("{} (direct path)", shown(self.service)),
            (None, Some(ttl)) => format!("{}, for {ttl} s", shown(self.preferred)),
            (None, None) => shown(self.preferred),
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
    fn a_table_is_aligned() {
        let service: SocketAddr = "[2001:db8:a:acdc::]:443".parse().unwrap();
        let unicast: SocketAddr = "[2001:db8:c::7]:443".parse().unwrap();
        let report = Report {
            status: Some(200),
            bytes: 7,
            found: Some(Found::Artemis),
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
connect       100.000    99.988  [2001:db8:a:acdc::]:443 ([2001:db8:c::7]:443 forgotten: refused)
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
    fn a_table_tells_of_a_proxy() {
        let mut report = Report {
            proxy: Some("proxy.example:1080".into()),
            found: Some(Found::QuicSocks),
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
connect        60.000    40.000  by the proxy
migrated       90.000    30.000  [2001:db8:c::7]:443 (direct path)
";
        assert_eq!(report.to_string(), expected);
        report.stayed = Some("the server forbids migration".into());
        let stayed = "\nstayed at the proxy: the server forbids migration\n";
        assert!(report.to_string().ends_with(stayed), "{report}");
    }
}
