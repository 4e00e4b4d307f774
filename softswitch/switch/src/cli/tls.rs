// SPDX-License-Identifier: Apache-2.0
//! Options of TLS.

use std::path::PathBuf;

use clap::Args;

/// Options of TLS for the P4Runtime and BfRuntime servers, with the names of `simple_switch_grpc`.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "TLS of the P4Runtime and BfRuntime servers")]
pub struct TlsOptions {
    /// Serve P4Runtime and BfRuntime with TLS. Replaced files are read without a restart
    #[arg(long, requires_all = ["grpc_server_cert", "grpc_server_key"])]
    pub grpc_server_ssl: bool,

    /// Certificates of authorities (PEM), to verify clients' certificates
    #[arg(long, value_name = "FILE")]
    pub grpc_server_cacert: Option<PathBuf>,

    /// Certificate chain of the server (PEM)
    #[arg(long, value_name = "FILE")]
    pub grpc_server_cert: Option<PathBuf>,

    /// Private key of the server (PEM)
    #[arg(long, value_name = "FILE")]
    pub grpc_server_key: Option<PathBuf>,

    /// Reject clients without a valid certificate
    #[arg(long)]
    pub grpc_server_with_client_auth: bool,

    /// Restrict clients by the names in their certificates: lines of NAME and `read` or `write`
    #[arg(long, value_name = "FILE")]
    pub grpc_client_access: Option<PathBuf>,
}

impl TlsOptions {
    /// Checks that the options fit together.
    pub(super) fn check(&self) -> Result<(), String> {
        let needs_authority = self.grpc_server_ssl && self.grpc_server_with_client_auth;
        if needs_authority && self.grpc_server_cacert.is_none() {
            return Err(
                "--grpc-server-with-client-auth: no authority for clients' certificates: add --grpc-server-cacert"
                    .into(),
            );
        }
        Ok(())
    }

    /// Returns notes about options without effect, because others are missing.
    pub(super) fn notes(&self) -> Vec<String> {
        let unused = |is_given: bool, option: &str, missing: &str| {
            is_given.then(|| format!("--{option} has no effect without --{missing}"))
        };
        let without_tls = !self.grpc_server_ssl;
        let without_clients = without_tls || !self.grpc_server_with_client_auth;
        let missing = ["grpc-server-with-client-auth", "grpc-server-ssl"][usize::from(without_tls)];
        let notes = [
            unused(
                without_clients && self.grpc_server_cacert.is_some(),
                "grpc-server-cacert",
                missing,
            ),
            unused(
                without_tls && self.grpc_server_cert.is_some(),
                "grpc-server-cert",
                "grpc-server-ssl",
            ),
            unused(
                without_tls && self.grpc_server_key.is_some(),
                "grpc-server-key",
                "grpc-server-ssl",
            ),
            unused(
                without_tls && self.grpc_server_with_client_auth,
                "grpc-server-with-client-auth",
                "grpc-server-ssl",
            ),
            unused(
                without_clients && self.grpc_client_access.is_some(),
                "grpc-client-access",
                missing,
            ),
        ];
        notes.into_iter().flatten().collect()
    }
}
