// SPDX-License-Identifier: Apache-2.0
//! TLS of the P4Runtime and BfRuntime servers. Replaced files are reloaded without a restart.

mod access;
mod certificate;
mod incoming;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow};
use parking_lot::RwLock;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::cli::TlsOptions;

pub use access::{Access, Client, require};
pub use incoming::{TlsConnection, accept};

use access::Grants;
use certificate::Certificate;

/// Interval between checks of the files.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Identifies the content of a file: its size and the time of its last change.
type Stamp = Option<(u64, SystemTime)>;

/// The currently valid certificate, authorities and grants.
pub struct Tls {
    files: Files,
    current: RwLock<Current>,
}

/// The files of the options.
#[derive(Debug, Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// The authorities of client certificates, if clients need a certificate.
    authorities: Option<PathBuf>,
    /// The access of each client; full access if absent.
    access: Option<PathBuf>,
}

struct Current {
    config: Arc<ServerConfig>,
    grants: Arc<Grants>,
    certificate: Certificate,
    stamps: Vec<Stamp>,
    /// The reason why the current files cannot be used.
    error: Option<String>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish()
    }
}

/// Reads the files of the options; returns `None` if TLS is off.
///
/// # Errors
/// If a file is missing or unusable.
pub fn configure(options: &TlsOptions) -> anyhow::Result<Option<Arc<Tls>>> {
    if !options.grpc_server_ssl {
        return Ok(None);
    }
    let needed = |option: &str, path: &Option<PathBuf>| {
        let path = path.clone();
        path.ok_or_else(|| anyhow!("{option}: missing: TLS needs it"))
    };
    let authorities = match options.grpc_server_with_client_auth {
        true => Some(needed("--grpc-server-cacert", &options.grpc_server_cacert)?),
        false => None,
    };
    let files = Files {
        certificate: needed("--grpc-server-cert", &options.grpc_server_cert)?,
        key: needed("--grpc-server-key", &options.grpc_server_key)?,
        authorities,
        access: options.grpc_client_access.clone(),
    };
    let current = RwLock::new(files.load()?);
    Ok(Some(Arc::new(Tls { files, current })))
}

impl Tls {
    /// Returns the days until the certificate expires; negative afterwards.
    pub fn days_left(&self) -> f64 {
        self.current.read().certificate.days_left()
    }

    /// Returns the reason why the current files cannot be used.
    pub fn error(&self) -> Option<String> {
        self.current.read().error.clone()
    }

    /// Reloads the files whenever they change. If the new files are invalid, the last valid ones remain in use.
    pub async fn follow(self: Arc<Self>) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            self.refresh();
        }
    }

    fn refresh(&self) {
        let stamps = self.files.stamps();
        if self.current.read().stamps == stamps {
            return;
        }
        match self.files.load() {
            Ok(loaded) => {
                tracing::warn!(
                    "TLS: reloaded: the certificate expires in {:.1} days",
                    loaded.certificate.days_left()
                );
                *self.current.write() = loaded;
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!("{error}; the previous files remain in use");
                let mut current = self.current.write();
                (current.stamps, current.error) = (stamps, Some(error));
            }
        }
    }

    fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().config)
    }

    fn grants(&self) -> Arc<Grants> {
        Arc::clone(&self.current.read().grants)
    }
}

impl Files {
    fn load(&self) -> anyhow::Result<Current> {
        // Taken before reading, so that the next check detects a change in between.
        let stamps = self.stamps();
        let chain = certificates("--grpc-server-cert", &self.certificate)?;
        let own = Certificate::parse(&chain[0])
            .with_context(|| format!("--grpc-server-cert: {}", self.certificate.display()))?;
        own.check_validity()
            .with_context(|| format!("--grpc-server-cert: {}", self.certificate.display()))?;
        let key = read("--grpc-server-key", &self.key)?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| {
            anyhow!(
                "--grpc-server-key: {} does not contain a PRIVATE KEY: use a PEM file",
                self.key.display()
            )
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match &self.authorities {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates("--grpc-server-cacert", path)? {
                    roots.add(authority).with_context(|| {
                        format!(
                            "--grpc-server-cacert: {}: invalid authority",
                            path.display()
                        )
                    })?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build()?)
            }
        };
        let mut config = builder.with_single_cert(chain, key).with_context(|| {
            format!(
                "--grpc-server-key: {} is not the key of {}",
                self.key.display(),
                self.certificate.display()
            )
        })?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let grants = match &self.access {
            Some(path) => {
                let text = read("--grpc-client-access", path)?;
                Grants::parse(&String::from_utf8_lossy(&text))
                    .map_err(|fault| anyhow!("--grpc-client-access: {}:{fault}", path.display()))?
            }
            None => Grants::Everything,
        };
        Ok(Current {
            config: Arc::new(config),
            grants: Arc::new(grants),
            certificate: own,
            stamps,
            error: None,
        })
    }

    fn stamps(&self) -> Vec<Stamp> {
        let optional = [&self.authorities, &self.access];
        let files = [&self.certificate, &self.key]
            .into_iter()
            .chain(optional.into_iter().flatten());
        files
            .map(|path| {
                let found = std::fs::metadata(path).ok()?;
                Some((found.len(), found.modified().ok()?))
            })
            .collect()
    }
}

fn read(option: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("{option}: cannot read {}", path.display()))
}

/// Reads a PEM file with at least one certificate.
fn certificates(option: &str, path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let text = read(option, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(anyhow!(
            "{option}: {} does not contain a CERTIFICATE: use a PEM file",
            path.display()
        )),
    }
}
