//! Whom to believe.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Options that say it.
#[derive(Debug, clap::Args)]
pub struct Trust {
    /// PEM file of the certificates that servers' certificates must lead to
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/ssl/certs/ca-certificates.crt"
    )]
    ca: PathBuf,
    /// Take any certificate
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
}

impl Trust {
    /// In anyone.
    pub fn none() -> Self {
        Self {
            ca: PathBuf::new(),
            insecure: true,
        }
    }

    /// What rustls needs.
    pub fn config(&self) -> Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        let mut config = if self.insecure {
            let anyone = Arc::new(Anyone(provider));
            builder
                .dangerous()
                .with_custom_certificate_verifier(anyone)
                .with_no_client_auth()
        } else {
            builder
                .with_root_certificates(self.roots()?)
                .with_no_client_auth()
        };
        config.alpn_protocols = vec![b"h3".into()];
        Ok(config)
    }

    fn roots(&self) -> Result<RootCertStore> {
        let problem = || {
            let file = self.ca.display();
            format!(
                "cannot take certificates from {file}; --ca names another file, --insecure needs none"
            )
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(&self.ca).with_context(problem)? {
            roots
                .add(certificate.with_context(problem)?)
                .with_context(problem)?;
        }
        Ok(roots)
    }
}

/// Believes that anyone is who they say they are, as long as they have the key for it.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC has TLS 1.3 only".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
