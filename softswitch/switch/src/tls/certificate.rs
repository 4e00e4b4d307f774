// SPDX-License-Identifier: Apache-2.0
//! The names and the validity period of a certificate.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The names and the validity of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The DNS names, URIs and e-mail addresses (subjectAltName), or else the common name.
    pub names: Vec<String>,
    /// Beginning of the validity in seconds since 1970.
    not_before: i64,
    /// End of the validity in seconds since 1970.
    not_after: i64,
}

impl Certificate {
    /// Parses a certificate.
    ///
    /// # Errors
    /// If it is not an X.509 certificate.
    pub fn parse(der: &[u8]) -> anyhow::Result<Self> {
        let (_, found) = X509Certificate::from_der(der).context("invalid certificate")?;
        let alternatives = found.subject_alternative_name().ok().flatten();
        let mut names: Vec<String> = alternatives
            .iter()
            .flat_map(|extension| &extension.value.general_names)
            .filter_map(|name| match name {
                GeneralName::DNSName(name)
                | GeneralName::URI(name)
                | GeneralName::RFC822Name(name) => Some((*name).to_owned()),
                _ => None,
            })
            .collect();
        if names.is_empty() {
            let common = found.subject().iter_common_name();
            names.extend(common.filter_map(|name| name.as_str().ok().map(str::to_owned)));
        }
        Ok(Self {
            names,
            not_before: found.validity().not_before.timestamp(),
            not_after: found.validity().not_after.timestamp(),
        })
    }

    /// Checks that the certificate is valid now.
    ///
    /// # Errors
    /// If it has expired, or is not valid yet.
    pub fn check_validity(&self) -> anyhow::Result<()> {
        let days = self.days_left();
        if days < 0.0 {
            bail!(
                "the certificate expired {:.1} days ago: renew it, or correct the clock",
                -days
            );
        }
        let wait = self.not_before - now();
        if wait > 0 {
            bail!(
                "the certificate is not valid for another {:.1} days: correct the clock, or reissue it",
                wait as f64 / SECONDS_PER_DAY
            );
        }
        Ok(())
    }

    /// Returns the days until the end of the validity; negative afterwards.
    pub fn days_left(&self) -> f64 {
        (self.not_after - now()) as f64 / SECONDS_PER_DAY
    }
}

/// Returns the seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}
