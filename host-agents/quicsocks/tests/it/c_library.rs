// SPDX-License-Identifier: Apache-2.0
//! The C library (`frontage/quicsocks.h`): its results, and those of its example.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use test_requirements::require;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::testbed::{NAME, Options, Resolver, TEST_TIMEOUT, start_proxy, start_server};

/// A compiled C program, linked with the library.
struct Program(PathBuf);

impl Program {
    /// Compile `source`, a path below `host-agents`. Return None where a package is missing.
    fn compile(source: &str, libraries: &[&str]) -> Option<Self> {
        let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let name = source.rsplit_once('/').map_or(source, |(_, name)| name);
        let program =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let mut cc = Command::new("cc");
        cc.args([
            "-std=c11",
            "-D_GNU_SOURCE",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-I",
        ])
        .arg(agents.join("quicsocks-c/include"))
        .arg(agents.join(source))
        .arg("-o")
        .args([&program, &folder().join("libfrontage_quicsocks_c.so")])
        .args(libraries);
        let Ok(output) = cc.output() else {
            require(false, "cc", "apt install gcc");
            return None;
        };
        let error = String::from_utf8_lossy(&output.stderr);
        if error.contains("ngtcp2/") {
            let packages = "libngtcp2-dev libngtcp2-crypto-gnutls-dev libgnutls28-dev";
            require(false, "ngtcp2", &format!("apt install {packages}"));
            return None;
        }
        assert!(output.status.success(), "{error}");
        Some(Self(program))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.0);
        command.env("LD_LIBRARY_PATH", folder()).args(arguments);
        command.stdin(Stdio::null());
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        let running = spawn_blocking(move || command.output());
        let output = timeout(TEST_TIMEOUT, running).await;
        output.expect("the program exits").unwrap().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Return the folder of the library, which is that of the test's executable.
fn folder() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    here.parent().unwrap().into()
}

#[tokio::test]
async fn functions_return_the_documented_results() {
    let Some(program) = Program::compile("quicsocks/tests/it/results.c", &[]) else {
        return;
    };
    // This test resolves no name.
    let resolver = "[::1]:9".parse().unwrap();
    let proxy = start_proxy(resolver, Options::with_user()).await;
    let address = proxy.addresses()[0].to_string();
    let mut command = program.command(&[&address]);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let ready = spawn_blocking(move || {
        let mut line = [0; 6];
        stdout.read_exact(&mut line).map(|()| line)
    });
    let ready = timeout(TEST_TIMEOUT, ready).await.unwrap().unwrap();
    drop(proxy);
    let exited = spawn_blocking(|| child.wait_with_output());
    let output = timeout(TEST_TIMEOUT, exited).await.unwrap().unwrap();
    let output = output.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(ready.unwrap(), *b"ready\n");
}

#[tokio::test]
async fn example_reports_why_it_cannot_connect() {
    let libraries = ["-lngtcp2", "-lngtcp2_crypto_gnutls", "-lgnutls"];
    let Some(program) = Program::compile("quicsocks-c/examples/quicsocks_get.c", &libraries) else {
        return;
    };
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let proxy = start_proxy(resolver.address, Options::default()).await;
    let address = proxy.addresses()[0].to_string();
    let server = start_server(false);
    let (open, closed) = (server.port.to_string(), "9");
    for (name, port, reason) in [
        (
            "absent.example",
            &open[..],
            "receive: the name has no reachable address",
        ),
        ("inside.example", &open, "receive: not allowed by the proxy"),
        (NAME, closed, "receive: connection refused by the server"),
        // The program trusts no certificate.
        (NAME, &open, "packet: ERR_CRYPTO"),
    ] {
        let output = program.run(&[&address, "/dev/null", name, port, "/"]).await;
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {error}");
        assert_eq!(error, format!("quicsocks_get: {reason}\n"), "{name}");
    }
}
