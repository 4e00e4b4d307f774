//! A whole switch: data plane, P4Runtime server and metrics, put together and taken down.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use parking_lot::Mutex;
use softswitch_pipeline::{Options, Pipeline, Program};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::address::{Address, Listener};
use crate::dataplane::{Ends, Engine, Handle, PortSetup, Setup};
use crate::grpc_unix::GrpcUnixStream;
use crate::metrics::Metrics;
use crate::p4rt::deployment::Target;
use crate::p4rt::device::Device;
use crate::p4rt::service::Service;
use crate::trace::TraceLog;

/// Packets and digests on their way to the control plane; more are dropped.
const EVENT_BACKLOG: usize = 8192;

/// A controller that does not answer for so long is gone.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// What a switch is made of.
pub struct Config {
    /// P4Runtime's device id.
    pub device_id: u64,
    /// The program to begin with, if any.
    pub program: Option<Program>,
    /// The ports.
    pub ports: Vec<PortSetup>,
    /// Threads that move packets.
    pub threads: NonZeroUsize,
    /// The port by which packets go to and come from controllers.
    pub cpu_port: Option<u32>,
    /// The port that means "drop".
    pub drop_port: u32,
    /// Seed of all that is random.
    pub seed: u64,
    /// Where P4Runtime is served.
    pub grpc: Address,
    /// Where metrics are served, if anywhere.
    pub metrics: Option<Address>,
    /// Where traces of packets go, if they are wanted.
    pub trace: Option<TraceLog>,
}

/// A running switch.
pub struct Switch {
    /// Where P4Runtime is served; with the real port, if 0 was asked for.
    pub grpc: Address,
    /// Where metrics are served.
    pub metrics_address: Option<Address>,
    /// Its counters.
    pub metrics: Metrics,
    dataplane: Arc<Handle>,
    dataplane_ends: Ends,
    tasks: Vec<JoinHandle<()>>,
    server: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Switch {
    /// Starts everything. When it returns, controllers can connect.
    ///
    /// # Errors
    /// If an address cannot be bound.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        let options = Options {
            seed: config.seed,
            drop_port: config.drop_port,
            ..Options::default()
        };
        let (grpc_listener, grpc) = config.grpc.bind().await.context("--grpc-server-addr")?;
        let metrics_listener = match &config.metrics {
            Some(address) => Some(address.bind().await.context("--metrics-addr")?),
            None => None,
        };
        let (events, events_rx) = mpsc::channel(EVENT_BACKLOG);
        let engine = Engine::new(Setup {
            ports: config.ports,
            threads: config.threads,
            cpu_port: config.cpu_port,
            seed: config.seed,
            events,
            trace: config.trace,
        })?;
        let dataplane = engine.handle();
        let metrics = Metrics {
            dataplane: Arc::clone(&dataplane),
            ports: engine.ports(),
        };
        if let Some(program) = config.program {
            let pipeline = Pipeline::new(program, options.clone());
            dataplane.set_pipeline(Arc::new(Mutex::new(pipeline)));
        }
        let target = Target {
            options,
            ports: engine.ports().iter().map(|port| port.number).collect(),
        };
        let dataplane_ends = engine.spawn()?;
        let device = Arc::new(Device::new(
            config.device_id,
            Arc::clone(&dataplane),
            target,
        ));
        let mut tasks = Vec::new();
        let event_device = Arc::clone(&device);
        tasks.push(tokio::spawn(async move {
            event_device.serve_events(events_rx).await
        }));
        let metrics_address = metrics_listener.map(|(listener, address)| {
            tasks.push(tokio::spawn(metrics.clone().serve(listener)));
            address
        });
        let server = tokio::spawn(serve_grpc(device, grpc_listener));
        Ok(Self {
            grpc,
            metrics_address,
            metrics,
            dataplane,
            dataplane_ends,
            tasks,
            server,
        })
    }

    /// Waits until the switch fails by itself, and says why.
    pub async fn failed(&mut self) -> anyhow::Error {
        tokio::select! {
            end = self.dataplane_ends.recv() => match end {
                Some(Err(error)) => error.context("the data plane failed"),
                _ => anyhow!("a packet thread ended unexpectedly"),
            },
            end = &mut self.server => match end {
                Ok(Err(error)) => anyhow!(error).context("the gRPC server failed"),
                _ => anyhow!("the gRPC server ended unexpectedly"),
            },
        }
    }

    /// Takes everything down.
    pub async fn stop(self) {
        self.dataplane.stop();
        self.server.abort();
        self.tasks.iter().for_each(JoinHandle::abort);
        let Self {
            mut dataplane_ends,
            grpc,
            metrics_address,
            ..
        } = self;
        // However they end, it is over when all have.
        while dataplane_ends.recv().await.is_some() {}
        grpc.clean_up();
        if let Some(address) = metrics_address {
            address.clean_up();
        }
    }
}

async fn serve_grpc(
    device: Arc<Device>,
    listener: Listener,
) -> Result<(), tonic::transport::Error> {
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .add_service(Service::server(device));
    match listener {
        Listener::Tcp(l) => {
            // Or every answer waits for the client's delayed acknowledgement of its beginning.
            let connections = TcpIncoming::from(l).with_nodelay(Some(true));
            server.serve_with_incoming(connections).await
        }
        Listener::Unix(l) => {
            let connections = UnixListenerStream::new(l).map(|c| c.map(GrpcUnixStream::new));
            server.serve_with_incoming(connections).await
        }
    }
}
