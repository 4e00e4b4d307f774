// SPDX-License-Identifier: Apache-2.0
//! softswitch without interfaces and queues, for differential tests: the P4Runtime server of the real one, and BMv2's
//! gRPC interface for packets. Each packet runs through the pipeline until nothing is left of it, before the next begins.

mod dataplane;

use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Parser;
use softswitch::address::{Address, Listener};
use softswitch::dataplane::{Engine, Setup};
use softswitch::p4rt::deployment::Target;
use softswitch::p4rt::device::Device;
use softswitch::p4rt::service::Service;
use softswitch_pipeline::Options;
use tokio::sync::mpsc;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// softswitch, with packets over gRPC instead of interfaces. Takes the options of simple_switch_grpc that it needs.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// P4Runtime's number of this device.
    #[arg(long, default_value_t = 0)]
    device_id: u64,
    /// Where P4Runtime is served: HOST:PORT.
    #[arg(long)]
    grpc_server_addr: Address,
    /// Where packets go in and come out: HOST:PORT.
    #[arg(long)]
    dp_grpc_server_addr: Address,
    /// Use the interpreter instead of native code.
    #[arg(long)]
    interpreter: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    // The engine never runs: it only gives the handle by which a device knows the time.
    let engine = Engine::new(Setup {
        ports: Vec::new(),
        threads: NonZeroUsize::MIN,
        cpu_port: None,
        seed: 0,
        events: mpsc::channel(1).0,
        observers: Default::default(),
        packet_stream: None,
    })?;
    let mut options = Options::default();
    if arguments.interpreter {
        options.engine = softswitch_pipeline::Engine::Interpreter;
    }
    let target = Target {
        options,
        ports: None,
        keeps_program: false,
    };
    let device = Device::new(arguments.device_id, engine.handle(), target, None);
    let device = Arc::new(device);
    let packets = dataplane::server(Arc::clone(&device));
    let control = Server::builder()
        .add_service(Service::server(device))
        .serve_with_incoming(listen(arguments.grpc_server_addr).await?);
    let data = Server::builder()
        .add_service(packets)
        .serve_with_incoming(listen(arguments.dp_grpc_server_addr).await?);
    tokio::try_join!(control, data)?;
    Ok(())
}

async fn listen(address: Address) -> Result<TcpIncoming> {
    match address.bind().await.context("binding")? {
        // Or every answer waits for the client's delayed acknowledgement of its beginning.
        (Listener::Tcp(listener), _) => Ok(TcpIncoming::from(listener).with_nodelay(Some(true))),
        (Listener::Unix(_), address) => anyhow::bail!("{address}: HOST:PORT is wanted here"),
    }
}
