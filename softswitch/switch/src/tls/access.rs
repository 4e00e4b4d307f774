// SPDX-License-Identifier: Apache-2.0
//! The access of clients, by the names in their certificates.
//!
//! A file grants access, one name per line; all other names are denied:
//!
//! ```text
//! # name in the certificate   access
//! controller.example          write
//! monitor.example             read
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use tonic::{Extensions, Status};

use super::Tls;
use super::certificate::Certificate;

/// An access right. Each includes the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Read everything, and follow the arbitration as a backup.
    Read,
    /// Also write, set the program and become primary.
    Write,
}

/// The content of an access file.
#[derive(Debug, PartialEq, Eq)]
pub enum Grants {
    /// Without a file, clients have full access.
    Everything,
    /// By name in the certificate.
    Named(BTreeMap<String, Access>),
}

impl Grants {
    /// Parses a file.
    ///
    /// # Errors
    /// The line, the fault and the fix.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut named = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, access) = match words[..] {
                [] => continue,
                [name, "read"] => (name, Access::Read),
                [name, "write"] => (name, Access::Write),
                _ => {
                    return Err(format!(
                        "{number}: invalid line: write a name and `read` or `write`"
                    ));
                }
            };
            if named.insert(name.to_owned(), access).is_some() {
                return Err(format!(
                    "{number}: duplicate name '{name}': remove one line"
                ));
            }
        }
        Ok(Self::Named(named))
    }

    /// Returns the access of a client with these names.
    fn of(&self, names: &[String]) -> Option<Access> {
        match self {
            Self::Everything => Some(Access::Write),
            Self::Named(named) => names
                .iter()
                .filter_map(|name| named.get(name))
                .max()
                .copied(),
        }
    }
}

/// A client that is connected over TLS.
#[derive(Debug, Clone)]
pub struct Client {
    tls: Arc<Tls>,
    /// The certificate, unless the server does not ask for one.
    certificate: Option<Arc<Certificate>>,
}

impl Client {
    pub(super) fn new(tls: Arc<Tls>, certificate: Option<Certificate>) -> Self {
        Self {
            tls,
            certificate: certificate.map(Arc::new),
        }
    }

    /// Checks that the client still has this access: grants may have changed, and its certificate may have expired.
    ///
    /// # Errors
    /// PERMISSION_DENIED or UNAUTHENTICATED, with the names and the fix.
    pub fn check(&self, wanted: Access) -> Result<(), Status> {
        let names: &[String] = match &self.certificate {
            Some(certificate) => {
                let valid = certificate.check_validity();
                valid.map_err(|fault| {
                    Status::unauthenticated(format!("your certificate: {fault}"))
                })?;
                &certificate.names
            }
            None => &[],
        };
        let who = names.join(", ");
        match self.tls.grants().of(names) {
            Some(access) if access >= wanted => Ok(()),
            Some(_) => Err(Status::permission_denied(format!(
                "the certificate of '{who}' permits reading only: grant it `write` in --grpc-client-access"
            ))),
            None => Err(Status::permission_denied(format!(
                "the certificate of '{who}' has no access: add the name to --grpc-client-access"
            ))),
        }
    }
}

/// Checks that the sender of a request has this access. Clients without TLS are not restricted.
///
/// # Errors
/// As [`Client::check`].
pub fn require(extensions: &Extensions, wanted: Access) -> Result<(), Status> {
    let client = extensions.get::<Client>();
    client.map_or(Ok(()), |client| client.check(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_name_clients() {
        let grants =
            Grants::parse("# comment\n\na.example write # the controller\nb.example read\n");
        let grants = grants.unwrap();
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).into()).collect();
            grants.of(&names)
        };
        assert_eq!(of(&["a.example"]), Some(Access::Write));
        assert_eq!(of(&["b.example", "x"]), Some(Access::Read));
        assert_eq!(of(&["x"]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn rejects_invalid_grants_with_their_line() {
        let cases = [
            ("a read\nb admin\n", "2: invalid line"),
            ("a\n", "1: invalid line"),
            ("a read\n\na write\n", "3: duplicate name 'a'"),
        ];
        for (text, expected) in cases {
            let fault = Grants::parse(text).unwrap_err();
            assert!(fault.starts_with(expected), "{fault}");
        }
    }
}
