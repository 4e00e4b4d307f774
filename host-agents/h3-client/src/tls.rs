// SPDX-License-Identifier: Apache-2.0
//! Verification of server certificates.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Options for the verification of server certificates.
#[derive(Debug, clap::Args)]
pub struct Trust {
    /// PEM file with the trusted CA certificates
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/ssl/certs/ca-certificates.crt"
    )]
    ca: PathBuf,
    /// Accept any certificate
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
}

impl Trust {
    /// Accepts any certificate.
    pub fn none() -> Self {
        Self {
            ca: PathBuf::new(),
            insecure: true,
        }
    }

    /// Creates the TLS configuration of a client.
    ///
    /// # Errors
    /// Returns an error if the CA certificates cannot be read.
    pub fn config(&self) -> Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        let mut config = if self.insecure {
            let verifier = Arc::new(AcceptAny(provider));
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier)
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
                "--ca: cannot read certificates from {file}: name another file, or use --insecure"
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

/// Accepts any certificate whose private key the server has.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
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
        Err(rustls::Error::General("QUIC requires TLS 1.3".into()))
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
