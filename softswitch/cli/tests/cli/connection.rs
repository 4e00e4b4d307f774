// SPDX-License-Identifier: Apache-2.0
//! Addresses, election ids and TLS.

use std::path::Path;
use std::sync::Arc;

use clap::Parser;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use softswitch::cli::TlsOptions;
use softswitch::tls::{self, Tls};
use softswitch_cli::options::Options;
use softswitch_cli::session::Session;

use crate::common::{TestSwitch, ok, refused};

fn error(line: &str) -> String {
    let options = Options::parse_from(line.split(' '));
    Session::connect(&options)
        .expect_err("no server")
        .to_string()
}

#[test]
fn names_the_address_that_does_not_answer() {
    let refused = error("softswitch-cli --addr 127.0.0.1:1");
    assert!(
        refused.starts_with("127.0.0.1:1: cannot connect") && refused.contains("--addr"),
        "{refused}"
    );
    let invalid = error("softswitch-cli --addr a|b");
    assert!(invalid.contains("invalid address"), "{invalid}");
}

#[test]
fn other_device_is_refused() {
    let switch = TestSwitch::start();
    let error = Session::connect(&switch.options("--device-id 9"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("NotFound"), "{error}");
}

#[test]
fn reading_needs_no_election_and_writing_does() {
    let (switch, mut primary) = TestSwitch::with_features();
    ok(&mut primary, "table_add l2 drop 1 2 =>");
    let mut reader = switch.session("--election-id 1");
    assert_eq!(ok(&mut reader, "table_num_entries l2").text, "1");
    let error = refused(&mut reader, "table_delete l2 0");
    assert!(
        error.contains("election id 1") && error.contains("--election-id"),
        "{error}"
    );

    let mut next = switch.session("--election-id 18446744073709551616");
    ok(&mut next, "table_delete l2 0");
    let error = refused(&mut primary, "table_add l2 drop 1 3 =>");
    assert!(error.contains("primary"), "{error}");
    drop(next);
}

/// An authority with certificates of a server and a client.
struct Certificates {
    folder: tempfile::TempDir,
    server: Arc<Tls>,
}

fn certificates() -> Certificates {
    let folder = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let issue = |name: &str| {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        (
            params.signed_by(&key, &issuer).unwrap().pem(),
            key.serialize_pem(),
        )
    };
    let (server, server_key) = issue("switch.example");
    let (client, client_key) = issue("client");
    for (name, text) in [
        ("ca.pem", &authority),
        ("server.pem", &server),
        ("server.key", &server_key),
        ("client.pem", &client),
        ("client.key", &client_key),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let file = |name: &str| Some(folder.path().join(name));
    let server = tls::configure(&TlsOptions {
        grpc_server_ssl: true,
        grpc_server_cert: file("server.pem"),
        grpc_server_key: file("server.key"),
        grpc_server_cacert: file("ca.pem"),
        grpc_server_with_client_auth: true,
        grpc_client_access: None,
    });
    let server = server.unwrap().unwrap();
    Certificates { folder, server }
}

#[test]
fn connects_with_tls_and_a_certificate() {
    let Certificates { folder, server } = certificates();
    let switch = TestSwitch::start_with(Some(server));
    let file = |name: &str| Path::join(folder.path(), name).display().to_string();
    let tls = format!(
        "--ssl --cacert {} --server-name switch.example",
        file("ca.pem")
    );
    let certificate = format!(
        "{tls} --cert {} --private-key {}",
        file("client.pem"),
        file("client.key")
    );
    let mut session = switch.session(&certificate);
    ok(&mut session, "switch_info");
    for options in [
        "",
        &tls,
        &certificate.replace("switch.example", "other.example"),
    ] {
        assert!(
            Session::connect(&switch.options(options)).is_err(),
            "{options}"
        );
    }
    let missing = certificate.replace("client.key", "nosuch.key");
    let error = Session::connect(&switch.options(&missing))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("--private-key: cannot read"), "{error}");
}
