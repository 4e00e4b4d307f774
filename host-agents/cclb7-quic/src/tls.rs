// SPDX-License-Identifier: Apache-2.0
//! TLS configuration from PEM files.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::StoresServerSessions;

/// Load the TLS configuration for HTTP/3, which always uses TLS 1.3 (RFC 9001, section 4.2).
///
/// Clients may send early data if there are `sessions`. A session is removed when its ticket is used.
pub fn load(
    certificate: &Path,
    private_key: &Path,
    sessions: Option<Arc<dyn StoresServerSessions>>,
) -> Result<rustls::ServerConfig> {
    let cannot_read = |path: &Path| format!("cannot read {}", path.display());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| cannot_read(certificate))?;
    let key =
        PrivateKeyDer::from_pem_file(private_key).with_context(|| cannot_read(private_key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .with_context(|| {
            format!(
                "{}: private key does not match the certificate in {}",
                private_key.display(),
                certificate.display()
            )
        })?;
    config.alpn_protocols = vec![b"h3".into()];
    if let Some(sessions) = sessions {
        config.session_storage = sessions;
        config.max_early_data_size = u32::MAX; // the only value besides 0 (RFC 9001, section 4.6.1)
    }
    Ok(config)
}
