// SPDX-License-Identifier: Apache-2.0
//! TLS and mutual TLS of the P4Runtime server.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use softswitch::cli::TlsOptions;
use softswitch::proto::p4::v1::{CapabilitiesRequest, p4_runtime_client::P4RuntimeClient};
use softswitch::switch::Config;
use softswitch::tls;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::common::{TEST_TIMEOUT, TestSwitch};

/// An authority that issues certificates into a folder.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// Returns a certificate and its key.
    fn issue(&self, name: &str) -> (String, String) {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

fn file(dir: &Path, name: &str, text: &str) -> Option<PathBuf> {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    Some(path)
}

/// Starts a switch with a certificate for `localhost`.
async fn start(authority: &Authority, with_client_auth: bool) -> TestSwitch {
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.issue("localhost");
    let options = TlsOptions {
        grpc_server_ssl: true,
        grpc_server_cert: file(dir.path(), "server.pem", &certificate),
        grpc_server_key: file(dir.path(), "server.key", &key),
        grpc_server_cacert: file(dir.path(), "ca.pem", &authority.pem),
        grpc_server_with_client_auth: with_client_auth,
        grpc_client_access: None,
    };
    let tls = tls::configure(&options).unwrap();
    TestSwitch::start_with(0, &[], |config| Config { tls, ..config }).await
}

/// Connects and makes a call.
async fn call(switch: &TestSwitch, tls: Option<ClientTlsConfig>) -> Result<(), String> {
    let address = switch.switch.grpc.to_string();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut endpoint: Endpoint = Channel::from_shared(format!("{scheme}://{address}")).unwrap();
    if let Some(tls) = tls {
        endpoint = endpoint.tls_config(tls.domain_name("localhost")).unwrap();
    }
    let channel = endpoint.connect().await.map_err(|e| format!("{e:?}"))?;
    let mut client = P4RuntimeClient::new(channel);
    let response = client.capabilities(CapabilitiesRequest::default()).await;
    response.map(drop).map_err(|e| format!("{e:?}"))
}

fn trusting(authority: &Authority) -> ClientTlsConfig {
    ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&authority.pem))
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_serves_clients_that_trust_the_authority() {
    let authority = Authority::new();
    let switch = start(&authority, false).await;
    call(&switch, Some(trusting(&authority))).await.unwrap();
    let stranger = Authority::new();
    call(&switch, Some(trusting(&stranger))).await.unwrap_err();
    call(&switch, None).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn mutual_tls_rejects_clients_without_a_valid_certificate() {
    let authority = Authority::new();
    let switch = start(&authority, true).await;
    let with_certificate = |issuer: &Authority| {
        let (certificate, key) = issuer.issue("client");
        trusting(&authority).identity(Identity::from_pem(certificate, key))
    };
    call(&switch, Some(with_certificate(&authority)))
        .await
        .unwrap();
    call(&switch, Some(trusting(&authority))).await.unwrap_err();
    let stranger = Authority::new();
    call(&switch, Some(with_certificate(&stranger)))
        .await
        .unwrap_err();
    call(&switch, None).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_and_grants_change_without_a_restart() {
    let (authority, next) = (Authority::new(), Authority::new());
    let dir = tempfile::tempdir().unwrap();
    let write = |authority: &Authority, grants: &str| {
        let (certificate, key) = authority.issue("localhost");
        file(dir.path(), "server.pem", &certificate);
        file(dir.path(), "server.key", &key);
        file(dir.path(), "ca.pem", &authority.pem);
        file(dir.path(), "grants", grants);
    };
    write(&authority, "client read");
    let path = |name: &str| Some(dir.path().join(name));
    let options = TlsOptions {
        grpc_server_ssl: true,
        grpc_server_cert: path("server.pem"),
        grpc_server_key: path("server.key"),
        grpc_server_cacert: path("ca.pem"),
        grpc_server_with_client_auth: true,
        grpc_client_access: path("grants"),
    };
    let tls = tls::configure(&options).unwrap();
    let handle = tls.clone().unwrap();
    let switch = TestSwitch::start_with(0, &[], |config| Config { tls, ..config }).await;
    let with = |issuer: &Authority, name: &str| {
        let (certificate, key) = issuer.issue(name);
        trusting(issuer).identity(Identity::from_pem(certificate, key))
    };
    call(&switch, Some(with(&authority, "client")))
        .await
        .unwrap();
    let error = call(&switch, Some(with(&authority, "other"))).await;
    assert!(error.unwrap_err().contains("has no access"));

    write(&next, "other read");
    let deadline = tokio::time::Instant::now() + TEST_TIMEOUT;
    while call(&switch, Some(with(&next, "other"))).await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "not reloaded");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    call(&switch, Some(with(&authority, "client")))
        .await
        .unwrap_err();

    file(dir.path(), "server.pem", "no PEM");
    while handle.error().is_none() {
        assert!(tokio::time::Instant::now() < deadline, "no report");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(
        handle
            .error()
            .unwrap()
            .contains("does not contain a CERTIFICATE")
    );
    call(&switch, Some(with(&next, "other"))).await.unwrap();
}

#[test]
fn invalid_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let (_, key) = Authority::new().issue("localhost");
    let cases = [
        (None, "cannot read"),
        (Some("no PEM"), "does not contain a CERTIFICATE"),
    ];
    for (text, expected) in cases {
        let path = match text {
            Some(text) => file(dir.path(), "bad.pem", text),
            None => Some(dir.path().join("missing.pem")),
        };
        let options = TlsOptions {
            grpc_server_ssl: true,
            grpc_server_cert: path,
            grpc_server_key: file(dir.path(), "key.pem", &key),
            grpc_server_cacert: None,
            grpc_server_with_client_auth: false,
            grpc_client_access: None,
        };
        let error = format!("{:#}", tls::configure(&options).unwrap_err());
        assert!(error.starts_with("--grpc-server-cert: "), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}
