//! The section `[handoff]` of the configuration.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;

use frontage_handoff::link::tls::Files;
use http::Uri;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use toml::Spanned;

use crate::config::Bytes;

/// The real servers, and how this balancer is known to them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// PEM file with the certificate that real servers are shown, and those that lead to the CA's.
    certificate: Spanned<PathBuf>,
    /// PEM file with the certificate's key.
    private_key: Spanned<PathBuf>,
    /// PEM file with the certificate of the CA that real servers' lead to.
    ca: Spanned<PathBuf>,
    /// The real servers.
    pub servers: Vec<Spanned<RealServer>>,
    /// Answers of fewer bytes are fetched and sent by the balancer itself; none if absent.
    pub below: Option<Bytes>,
}

/// A real server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RealServer {
    /// For which its certificate is.
    pub name: String,
    /// Where it waits for balancers: UDP.
    pub address: SocketAddr,
    /// Where it answers over HTTP/1.1 what is not handed to it.
    #[serde(deserialize_with = "origin")]
    pub origin: Uri,
}

impl Handoff {
    /// Files that must be there.
    pub(crate) fn files(&mut self) -> [&mut Spanned<PathBuf>; 3] {
        [&mut self.certificate, &mut self.private_key, &mut self.ca]
    }

    /// The same for the link.
    pub(crate) fn tls(&self) -> Files {
        Files {
            certificate: self.certificate.get_ref().clone(),
            private_key: self.private_key.get_ref().clone(),
            ca: self.ca.get_ref().clone(),
        }
    }

    /// The real servers' names.
    pub(crate) fn names(&self) -> Vec<&str> {
        let servers = self.servers.iter();
        servers
            .map(|server| server.get_ref().name.as_str())
            .collect()
    }

    /// What is wrong with it beside its form, and where if that is known.
    pub(crate) fn problem(&self) -> Option<(Option<Range<usize>>, String)> {
        if self.servers.is_empty() {
            return Some((
                None,
                "servers: lists none; without real servers leave [handoff] out".into(),
            ));
        }
        self.servers.iter().enumerate().find_map(|(i, server)| {
            let name = &server.get_ref().name;
            let reason = if ServerName::try_from(name.as_str()).is_err() {
                format!("name: {name:?} is no host's; write rs1.example, as in its certificate")
            } else if self.names()[..i].contains(&name.as_str()) {
                format!("name: {name:?} is there twice")
            } else {
                return None;
            };
            Some((Some(server.span()), reason))
        })
    }
}

fn origin<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Uri, D::Error> {
    let origin = crate::config::origin(deserializer)?;
    Ok(origin.expect("none only where the field is absent"))
}
