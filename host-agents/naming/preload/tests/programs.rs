// SPDX-License-Identifier: Apache-2.0
//! Unmodified programs with Artemis names.

use std::path::PathBuf;
use std::process::{Command, Output};

const INSTANCE: &str = "::/0+0 = none.example; 127.0.0.0/8+24 = *.films.example";

fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    here.parent().unwrap().join("libartemis_preload.so")
}

fn run(instances: &str, program: &str, arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", library())
        .env("ARTEMIS", instances)
        .args(arguments);
    let output = command.output().ok();
    if output.is_none() {
        eprintln!("skipped: there is no {program}");
    }
    output
}

const LOOK_UP: &str = "
import json, socket, sys
def look_up(name):
    try:
        return sorted({entry[4][0] for entry in socket.getaddrinfo(name, 443, type=socket.SOCK_DGRAM)})
    except socket.gaierror as error:
        return error.errno
print(json.dumps([look_up(name) for name in sys.argv[1:]]))
";

#[test]
fn python_resolves_artemis_names_and_all_others() {
    let names = [
        "a.films.example",
        "A.Films.Example.",
        "127.0.0.1",
        "localhost",
        "films.invalid",
    ];
    let look_up = |instances| {
        let output = run(
            instances,
            "python3",
            &[&["-c", LOOK_UP][..], &names].concat(),
        )?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let found: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect(&error);
        Some((found, error))
    };
    let Some((found, error)) = look_up(INSTANCE) else {
        return;
    };
    // The first 24 bits of SHA-512("a.films.example").
    let service: artemis::ServicePrefix = "127.0.0.0/8+24".parse().unwrap();
    let service = service.service_address(&artemis::Name::new("a.films.example").unwrap());
    assert_eq!(found[0], serde_json::json!([service.to_string()]));
    assert_eq!((&found[1], error.as_str()), (&found[0], ""));
    assert_eq!(found[2], serde_json::json!(["127.0.0.1"]));
    assert!(found[3].is_array() && found[4].is_number(), "{found:?}");
    // Invalid settings are reported once, and other names still resolve.
    let (found, error) = look_up("::/0+0").unwrap();
    assert_eq!(found[2], serde_json::json!(["127.0.0.1"]));
    assert!(found[3].is_array(), "{found:?}");
    assert!(
        error.starts_with("libartemis: ARTEMIS:1: ") && error.lines().count() == 1,
        "{error}"
    );
}

#[test]
fn curl_downloads_from_a_service_address() {
    let name = artemis::Name::new("b.films.example").unwrap();
    let prefix: artemis::ServicePrefix = "127.0.0.0/8+24".parse().unwrap();
    // On Linux, all of 127.0.0.0/8 is local.
    let listener = std::net::TcpListener::bind((prefix.service_address(&name), 0)).unwrap();
    let url = format!(
        "http://b.films.example:{}/",
        listener.local_addr().unwrap().port()
    );
    let server = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let n = stream.read(&mut request).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfilms")
            .unwrap();
        String::from_utf8_lossy(&request[..n]).into_owned()
    });
    let Some(output) = run(
        INSTANCE,
        "curl",
        &[
            "--silent",
            "--show-error",
            "--noproxy",
            "*",
            "--max-time",
            "20",
            &url,
        ],
    ) else {
        return;
    };
    assert_eq!(
        output.stdout,
        b"films",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(server.join().unwrap().contains("Host: b.films.example:"));
}
