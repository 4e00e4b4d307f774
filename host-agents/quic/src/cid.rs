// SPDX-License-Identifier: Apache-2.0
//! Connection ids that name their server (RFC 9000, section 5.1; `docs/cookie.md`, "Connection id"). Clients put them
//! into every packet, so that a switch finds the server of a client that stays at the VIP.

use std::sync::Arc;
use std::time::Duration;

use frontage_cookie::cid;
use frontage_quic_signals::ids::SealedIds;
use noq::{ConnectionId, ConnectionIdGenerator, EndpointConfig, InvalidCid};

use crate::keys::Keys;
use crate::quic_lb;

/// Time after which connection ids are replaced. As long as keys rotate no more often, every id in use is sealed by a
/// key in force.
const LIFETIME: Duration = Duration::from_secs(3600);

/// The form of a server's connection ids.
#[derive(Clone)]
pub enum Form {
    /// Sealed by the newest cookie key.
    Sealed(Arc<SealedIds>),
    /// QUIC-LB with this configuration and server id. The id is encoded big-endian in as many bytes as the
    /// configuration has for it.
    QuicLb(Arc<quic_lb::Config>, u16),
}

impl Form {
    /// Create the sealed form: the newest of `keys` seals ids that name server `sid`. This may differ from the `sid`
    /// of `keys`, under which another service knows the server.
    pub fn sealed(keys: Arc<Keys>, sid: u16) -> Self {
        Self::Sealed(Arc::new(SealedIds::new(keys, sid)))
    }

    /// Return an endpoint configuration with these connection ids and QUIC version 1 only.
    pub fn endpoint_config(self) -> EndpointConfig {
        let mut config = EndpointConfig::default();
        config.cid_generator(Arc::new(move || Box::new(Generator(self.clone()))));
        config.supported_versions(vec![crate::session::VERSION]);
        config
    }
}

struct Generator(Form);

impl ConnectionIdGenerator for Generator {
    fn generate_cid(&mut self) -> ConnectionId {
        match &self.0 {
            Form::Sealed(ids) => ConnectionId::new(&ids.generate()),
            Form::QuicLb(config, sid) => {
                let mut server = vec![0; config.sid_len()];
                let bytes = sid.to_be_bytes();
                let n = bytes.len().min(server.len());
                let at = server.len() - n;
                server[at..].copy_from_slice(&bytes[bytes.len() - n..]);
                let nonce: Vec<u8> = (0..config.nonce_len()).map(|_| rand::random()).collect();
                ConnectionId::new(&config.encode(&server, &nonce))
            }
        }
    }

    fn validate(&self, id: ConnectionId) -> Result<(), InvalidCid> {
        let is_ours = match &self.0 {
            // An id may outlive the key that sealed it, and its connection continues, so only the length is checked.
            Form::Sealed(_) => id.len() == cid::LEN,
            Form::QuicLb(config, _) => config.decode(&id).is_some(),
        };
        if is_ours { Ok(()) } else { Err(InvalidCid) }
    }

    fn cid_len(&self) -> usize {
        match &self.0 {
            Form::Sealed(_) => cid::LEN,
            Form::QuicLb(config, _) => config.cid_len(),
        }
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        Some(LIFETIME)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use frontage_cookie::{Secret, ipv6};

    fn ids(form: Form) -> Vec<ConnectionId> {
        let mut generator = Generator(form);
        let ids: Vec<_> = (0..100).map(|_| generator.generate_cid()).collect();
        assert!(
            ids.iter()
                .all(|id| id.len() == generator.cid_len() && generator.validate(*id).is_ok())
        );
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        ids
    }

    #[test]
    fn sealed_ids_name_the_server() {
        let key = ipv6::Key::new(3, &Secret::new(&[5; 16]).unwrap());
        let keys = Keys::new(7, vec![key.clone()]).unwrap();
        for id in ids(Form::sealed(Arc::new(keys), 0xabcd)) {
            assert_eq!(cid::open([&key], &id), Some(0xabcd));
        }
    }

    #[test]
    fn quic_lb_ids_name_the_server() {
        for (sid_len, expected) in [
            (1, vec![0xcd]),
            (2, vec![0xab, 0xcd]),
            (3, vec![0, 0xab, 0xcd]),
        ] {
            let config = Arc::new(quic_lb::Config::new(2, sid_len, 9, Some(&[7; 16])).unwrap());
            for id in ids(Form::QuicLb(config.clone(), 0xabcd)) {
                assert_eq!(config.decode(&id).unwrap().0, expected);
            }
        }
    }
}
