// SPDX-License-Identifier: Apache-2.0
//! The section `[handoff]` of the configuration.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;

use frontage_handoff::link::tls::Files;
use frontage_http::config::{self, Bytes};
use http::Uri;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use toml::Spanned;

/// The real servers, and the balancer's certificate for them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// PEM file with the certificate chain that the balancer presents to real servers.
    certificate: Spanned<PathBuf>,
    /// PEM file with the private key of the certificate.
    private_key: Spanned<PathBuf>,
    /// PEM file with the CA certificate for the real servers' certificates.
    ca: Spanned<PathBuf>,
    /// The real servers.
    pub servers: Vec<Spanned<RealServer>>,
    /// The balancer proxies shorter responses itself. If absent, real servers respond whatever the size.
    pub min_size: Option<Bytes>,
    /// Former name of `min_size`, which is rejected.
    #[serde(default, deserialize_with = "renamed_below")]
    #[allow(dead_code)]
    below: (),
}

/// A real server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RealServer {
    /// Name in its certificate.
    pub name: String,
    /// Address and UDP port at which it accepts balancers.
    pub address: SocketAddr,
    /// HTTP/1.1 origin from which the balancer proxies the requests that it does not delegate.
    #[serde(deserialize_with = "origin")]
    pub origin: Uri,
}

impl Handoff {
    /// Return the files that must exist.
    pub(crate) fn files(&mut self) -> [&mut Spanned<PathBuf>; 3] {
        [&mut self.certificate, &mut self.private_key, &mut self.ca]
    }

    /// Return the files for the link.
    pub(crate) fn tls(&self) -> Files {
        Files {
            certificate: self.certificate.get_ref().clone(),
            private_key: self.private_key.get_ref().clone(),
            ca: self.ca.get_ref().clone(),
        }
    }

    /// Return the real servers' names.
    pub(crate) fn names(&self) -> Vec<&str> {
        let servers = self.servers.iter();
        servers
            .map(|server| server.get_ref().name.as_str())
            .collect()
    }

    /// Check the values. Returns the problem and, if known, its position.
    pub(crate) fn problem(&self) -> Option<(Option<Range<usize>>, String)> {
        if self.servers.is_empty() {
            return Some((
                None,
                "servers: empty list: list the real servers or remove [handoff]".into(),
            ));
        }
        self.servers.iter().enumerate().find_map(|(i, server)| {
            let name = &server.get_ref().name;
            let reason = if ServerName::try_from(name.as_str()).is_err() {
                format!("name: invalid host name {name:?}: use the name in its certificate, for example rs1.example")
            } else if self.names()[..i].contains(&name.as_str()) {
                format!("name: duplicate name {name:?}: list each real server once")
            } else {
                return None;
            };
            Some((Some(server.span()), reason))
        })
    }
}

fn renamed_below<'de, D: serde::Deserializer<'de>>(_: D) -> Result<(), D::Error> {
    Err(serde::de::Error::custom("below: renamed: use min_size"))
}

fn origin<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Uri, D::Error> {
    let origin = config::origin(deserializer)?;
    Ok(origin.expect("None only where the field is absent"))
}
