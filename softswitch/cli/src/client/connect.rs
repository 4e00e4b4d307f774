// SPDX-License-Identifier: Apache-2.0
//! Connections to addresses, with and without TLS.

use std::path::Path;
use std::time::Duration;

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::error::{Error, Result};
use crate::options::{Options, TlsOptions};

/// Time without an answer after which connecting fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to the server of the options.
pub(super) async fn channel(options: &Options) -> Result<Channel> {
    let addr = &options.addr;
    let scheme = match options.tls.ssl {
        true => "https",
        false => "http",
    };
    let uri = match addr.starts_with("unix:") {
        true => addr.clone(),
        false => format!("{scheme}://{addr}"),
    };
    let invalid = |_| {
        Error::new(format!(
            "invalid address {addr:?}: use HOST:PORT or unix:PATH, for example 127.0.0.1:9559"
        ))
    };
    let mut endpoint = Endpoint::from_shared(uri).map_err(invalid)?;
    if options.tls.ssl {
        let tls = tls(&options.tls)?;
        endpoint = endpoint.tls_config(tls).map_err(|e| {
            let causes = causes(&e);
            Error::new(format!(
                "TLS: {causes}: check the files of --cacert, --cert and --private-key"
            ))
        })?;
    }
    let endpoint = endpoint.connect_timeout(CONNECT_TIMEOUT);
    endpoint.connect().await.map_err(|e| {
        let causes = causes(&e);
        Error::new(format!(
            "{addr}: cannot connect: {causes}: check that the switch runs, and --addr"
        ))
    })
}

/// Returns an error with its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn tls(options: &TlsOptions) -> Result<ClientTlsConfig> {
    let mut config = ClientTlsConfig::new();
    if let Some(file) = &options.cacert {
        config = config.ca_certificate(Certificate::from_pem(pem("--cacert", file)?));
    }
    if let (Some(cert), Some(key)) = (&options.cert, &options.private_key) {
        let identity = Identity::from_pem(pem("--cert", cert)?, pem("--private-key", key)?);
        config = config.identity(identity);
    }
    if let Some(name) = &options.server_name {
        config = config.domain_name(name);
    }
    Ok(config)
}

fn pem(option: &str, file: &Path) -> Result<String> {
    let read = std::fs::read_to_string(file);
    read.map_err(|e| Error::new(format!("{option}: cannot read {}: {e}", file.display())))
}
