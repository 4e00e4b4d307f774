// SPDX-License-Identifier: Apache-2.0
//! Mutual authentication of the two ends by certificates of one CA, which the operator uses for nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use webpki::EndEntityCert;

use super::transport;
use crate::message::ALPN;

/// PEM files of one end.
#[derive(Clone, Debug)]
pub struct Files {
    /// Certificate chain.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub private_key: PathBuf,
    /// CA certificate.
    pub ca: PathBuf,
}

impl Files {
    /// Return the balancer's configuration.
    ///
    /// # Errors
    /// If a file cannot be read or has invalid contents.
    pub fn client(&self) -> Result<noq::ClientConfig> {
        let (chain, key) = self.own()?;
        let mut tls = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(self.roots()?)
            .with_client_auth_cert(chain, key)
            .with_context(|| self.mismatch())?;
        tls.alpn_protocols = vec![ALPN.into()];
        let mut config = noq::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        config.transport_config(Arc::new(transport()));
        Ok(config)
    }

    /// Return the real server's configuration.
    ///
    /// # Errors
    /// If a file cannot be read or has invalid contents.
    pub fn server(&self) -> Result<noq::ServerConfig> {
        let (chain, key) = self.own()?;
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots()?), provider());
        let mut tls = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(verifier.build().with_context(|| cannot_read(&self.ca))?)
            .with_single_cert(chain, key)
            .with_context(|| self.mismatch())?;
        tls.alpn_protocols = vec![ALPN.into()];
        let crypto = Arc::new(QuicServerConfig::try_from(tls)?);
        let mut config = noq::ServerConfig::with_crypto(crypto);
        config.transport_config(Arc::new(transport()));
        Ok(config)
    }

    fn own(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let chain = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .with_context(|| cannot_read(&self.certificate))?;
        let key = PrivateKeyDer::from_pem_file(&self.private_key)
            .with_context(|| cannot_read(&self.private_key))?;
        Ok((chain, key))
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        let certificates =
            CertificateDer::pem_file_iter(&self.ca).with_context(|| cannot_read(&self.ca))?;
        for certificate in certificates {
            let certificate = certificate.with_context(|| cannot_read(&self.ca))?;
            roots
                .add(certificate)
                .with_context(|| cannot_read(&self.ca))?;
        }
        Ok(roots)
    }

    fn mismatch(&self) -> String {
        let (certificate, key) = (self.certificate.display(), self.private_key.display());
        format!("{key}: private key does not match the certificate in {certificate}")
    }
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Return the first of `names` for which the peer's certificate is valid.
pub(super) fn name_of<'a>(connection: &noq::Connection, names: &'a [String]) -> Option<&'a str> {
    let identity = connection.peer_identity()?;
    let chain = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    let certificate = EndEntityCert::try_from(chain.first()?).ok()?;
    let is_for = |name: &&String| {
        ServerName::try_from(name.as_str()).is_ok_and(|name| {
            let verified = certificate.verify_is_valid_for_subject_name(&name);
            verified.is_ok()
        })
    };
    names.iter().find(is_for).map(String::as_str)
}
