// SPDX-License-Identifier: Apache-2.0
//! Measures packets between veth pairs and table writes over gRPC, with softswitch or another program with its
//! options (`simple_switch_grpc`). Prints one JSON object per figure. Needs root.
//!
//! ```text
//! cargo bench -p softswitch --bench switch -- [--switch PATH] [--seconds N]
//! ```

#[allow(dead_code, reason = "only a part is used")]
#[path = "../tests/switch/common/mod.rs"]
mod common;

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;
use common::features::{self, frame, l2};
use common::{Controller, update};
use nix::sched::{CloneFlags, setns};
use softswitch::port::{Transmit, Transmitter};
use softswitch::proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use softswitch::proto::p4::v1::{self as p4, update::Type};

/// Number of entries written, in batches.
const ENTRIES: u64 = 60_000;
const BATCH: u64 = 1_000;

/// Length in bytes of the sent frames.
const FRAME: usize = 64;

#[derive(Debug, Parser)]
struct Args {
    /// The program to measure [default: softswitch]
    #[arg(long, default_value = env!("CARGO_BIN_EXE_softswitch"))]
    switch: PathBuf,
    /// Duration of sending, in seconds
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let mut testbed = Testbed::create(&args).await?;
        testbed.table_writes().await?;
        testbed.forwarding(Duration::from_secs(args.seconds)).await
    })
}

fn report(name: &str, value: f64, unit: &str) {
    println!(
        "{}",
        serde_json::json!({ "name": name, "value": value.round(), "unit": unit })
    );
}

/// Two hosts and a switch between them.
struct Testbed {
    name: String,
    switch: Child,
    controller: Controller,
}

fn ip(args: &str) -> anyhow::Result<Vec<u8>> {
    let output = Command::new("ip").args(args.split_whitespace()).output()?;
    if !output.status.success() {
        bail!("ip {args}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

impl Testbed {
    async fn create(args: &Args) -> anyhow::Result<Self> {
        let name = format!("swbench{}", std::process::id());
        for part in ["s", "a", "b"] {
            ip(&format!("netns add {name}{part}")).context("namespaces need root")?;
        }
        for (part, port) in [("a", 1), ("b", 2)] {
            ip(&format!(
                "-n {name}s link add p{port} type veth peer name e0 netns {name}{part}"
            ))?;
            ip(&format!("-n {name}s link set p{port} up"))?;
            ip(&format!("-n {name}{part} link set e0 up"))?;
        }
        let socket = std::env::temp_dir().join(format!("{name}.sock"));
        let address = format!("unix:{}", socket.display());
        let switch = Command::new("ip")
            .args(["netns", "exec", &format!("{name}s")])
            .arg(&args.switch)
            .args(["--no-p4", "--device-id", "1", "-i", "1@p1", "-i", "2@p2"])
            .args(["--", "--grpc-server-addr", &address])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", args.switch.display()))?;
        let begin = Instant::now();
        let client = loop {
            match P4RuntimeClient::connect(address.clone()).await {
                Ok(client) => break client,
                Err(e) if begin.elapsed() > common::TEST_TIMEOUT => return Err(e.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let arbitration = p4::MasterArbitrationUpdate {
            device_id: common::DEVICE,
            election_id: Some(common::uint128(1)),
            ..Default::default()
        };
        let first = Some(p4::stream_message_request::Update::Arbitration(arbitration));
        let mut controller = Controller::open_with(client, first).await;
        controller.receive().await?;
        controller.set_pipeline(features::config()).await?;
        Ok(Self {
            name,
            switch,
            controller,
        })
    }

    async fn table_writes(&mut self) -> anyhow::Result<()> {
        let batch = |first| {
            let entries = first..first + BATCH;
            entries.map(|n| update(Type::Insert, l2(7, 0x0200_0000_0000 + n, "forward", &[2])))
        };
        let batches: Vec<Vec<p4::Update>> = (0..ENTRIES)
            .step_by(BATCH as usize)
            .map(|first| batch(first).collect())
            .collect();
        let begin = Instant::now();
        for batch in batches {
            self.controller.write(batch).await?;
        }
        report(
            "table_writes",
            ENTRIES as f64 / begin.elapsed().as_secs_f64(),
            "entries/s",
        );
        Ok(())
    }

    async fn forwarding(&mut self, time: Duration) -> anyhow::Result<()> {
        self.controller
            .write(vec![update(Type::Insert, l2(1, 2, "forward", &[2]))])
            .await?;
        let mut transmitter = {
            let path = format!("/run/netns/{}a", self.name);
            let thread = std::thread::spawn(move || {
                setns(File::open(path)?, CloneFlags::CLONE_NEWNET)?;
                Transmitter::open("e0")
            });
            thread.join().expect("the thread does not panic")?
        };
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let frame = frame(2, 1, 0x1234, &[0; FRAME - 14]);
                while !done.load(Ordering::Relaxed) {
                    for _ in 0..32 {
                        transmitter.send(&frame);
                    }
                    transmitter.flush();
                }
            });
            let measured = (|| {
                std::thread::sleep(Duration::from_millis(500));
                let (begin, before) = (Instant::now(), self.received()?);
                std::thread::sleep(time);
                let received = self.received()? - before;
                anyhow::Ok(received as f64 / begin.elapsed().as_secs_f64())
            })();
            done.store(true, Ordering::Relaxed);
            report("veth_forwarding", measured?, "packets/s");
            Ok(())
        })
    }

    /// Returns the number of packets that host b has received.
    fn received(&self) -> anyhow::Result<u64> {
        let json = ip(&format!("-n {}b -s -j link show e0", self.name))?;
        let json: serde_json::Value = serde_json::from_slice(&json)?;
        json[0]["stats64"]["rx"]["packets"]
            .as_u64()
            .context("no statistics")
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // Clean up after any failure.
        let _ = self.switch.kill();
        let _ = self.switch.wait();
        for part in ["s", "a", "b"] {
            let _ = ip(&format!("netns del {}{part}", self.name));
        }
    }
}
