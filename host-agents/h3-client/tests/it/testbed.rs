// SPDX-License-Identifier: Apache-2.0
//! `frontage-cclb7-quic` as a plain HTTP/3 server on the loopback interface.

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use frontage_cclb7_quic::{config, server::Server};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::quicsocks_testbed;

pub const SIZE: usize = 1_000_000;
static SERVERS: AtomicU32 = AtomicU32::new(0);

/// A server with one object of [`SIZE`] bytes, named by its size. It runs on a thread that ends with the test.
pub struct HttpServer {
    pub folder: PathBuf,
    pub port: u16,
    /// Makes the server reload its files, or end once it is closed.
    reloads: Option<mpsc::UnboundedSender<oneshot::Sender<()>>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl HttpServer {
    pub fn new() -> Self {
        Self::listening("[::1]:0", "drain_seconds = 0")
    }

    /// Start a server at `address` with a free port, and with `more` in its configuration.
    pub fn listening(address: &str, more: &str) -> Self {
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("h3-client-{}-{number}", std::process::id()));
        fs::create_dir_all(folder.join("files")).unwrap();
        fs::write(folder.join("files").join(SIZE.to_string()), object(SIZE)).unwrap();
        fs::write(folder.join("period"), object(PERIOD)).unwrap();
        let names = [
            "localhost".into(),
            "::1".into(),
            quicsocks_testbed::NAME.into(),
        ];
        let certificate = rcgen::generate_simple_self_signed(names).unwrap();
        fs::write(folder.join("cert.pem"), certificate.cert.pem()).unwrap();
        fs::write(
            folder.join("key.pem"),
            certificate.signing_key.serialize_pem(),
        )
        .unwrap();
        let free_port = UdpSocket::bind(address).unwrap();
        let listen = free_port.local_addr().unwrap();
        drop(free_port);
        let text = format!(
            "listen = ['{listen}']\ncertificate = 'cert.pem'\nprivate_key = 'key.pem'\naccess_log = 'log'\n\
             {more}\n[[route]]\npath = '/'\ndirectory = 'files'\n"
        );
        fs::write(folder.join("agent.toml"), text).unwrap();
        let config = config::load(&folder.join("agent.toml")).unwrap();
        let (reloads, mut reloading) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
        let (ready, started) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let server = Server::start(config).await.unwrap();
                ready.send(()).unwrap();
                let end = async {
                    while let Some(done) = reloading.recv().await {
                        server.reload().unwrap();
                        done.send(()).unwrap();
                    }
                };
                server.run(end).await;
            });
        });
        started.recv().unwrap();
        Self {
            folder,
            port: listen.port(),
            reloads: Some(reloads),
            thread: Some(thread),
        }
    }

    pub fn url(&self, name: impl std::fmt::Display) -> String {
        format!("https://[::1]:{}/{name}", self.port)
    }

    /// Make the server reload its files, and wait until it has.
    pub async fn reload(&self) {
        let (done, reloaded) = oneshot::channel();
        self.reloads.as_ref().unwrap().send(done).unwrap();
        reloaded.await.unwrap();
    }

    pub fn run_client(&self, arguments: &[&str]) -> Output {
        self.run(env!("CARGO_BIN_EXE_frontage-h3-client"), arguments)
    }

    pub fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        let output = command
            .args(arguments)
            .current_dir(&self.folder)
            .output()
            .unwrap();
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        output
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.reloads.take());
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Period of the content of objects: a prime, so that misplaced bytes are detected.
pub const PERIOD: usize = 65_521;

pub fn object(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % PERIOD * 31 % 251) as u8).collect()
}

pub fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

pub fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
