// SPDX-License-Identifier: Apache-2.0
//! TLS of the P4Runtime server.

use std::path::Path;

use anyhow::{Context, anyhow};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use crate::cli::TlsOptions;

/// Reads the certificates and the key of the options; returns `None` if TLS is off.
///
/// # Errors
/// If a file cannot be read, or is missing.
pub fn configure(options: &TlsOptions) -> anyhow::Result<Option<ServerTlsConfig>> {
    if !options.grpc_server_ssl {
        return Ok(None);
    }
    let certificate = pem(
        "--grpc-server-cert",
        options.grpc_server_cert.as_deref(),
        "CERTIFICATE",
    )?;
    let key = pem(
        "--grpc-server-key",
        options.grpc_server_key.as_deref(),
        "PRIVATE KEY",
    )?;
    let config = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
    if !options.grpc_server_with_client_auth {
        return Ok(Some(config));
    }
    let authority = pem(
        "--grpc-server-cacert",
        options.grpc_server_cacert.as_deref(),
        "CERTIFICATE",
    )?;
    Ok(Some(
        config.client_ca_root(Certificate::from_pem(authority)),
    ))
}

/// Reads a PEM file with a block of this kind.
fn pem(option: &str, path: Option<&Path>, kind: &str) -> anyhow::Result<String> {
    let path = path.ok_or_else(|| anyhow!("{option}: missing: TLS needs it"))?;
    let file = path.display();
    let text =
        std::fs::read_to_string(path).with_context(|| format!("{option}: cannot read {file}"))?;
    if !text.contains(&format!("{kind}-----")) {
        return Err(anyhow!(
            "{option}: {file} does not contain a {kind}: use a PEM file"
        ));
    }
    Ok(text)
}
