// SPDX-License-Identifier: Apache-2.0
//! The whole switch: starts and stops the data plane, the P4Runtime server and the metrics server.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use softswitch_pipeline::Options;
use softswitch_thrift::server::Server as ThriftServer;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::transport::server::{Router, TcpIncoming};

use crate::address::{Address, Listener};
use crate::bfrt::hub::Hub;
use crate::bfrt::{self, Bfrt};
use crate::coverage::CoverageFile;
use crate::dataplane::{
    Captures, Clock, Ends, Engine, Handle, Observers, PacketStream, PortControl, PortSetup, Setup,
};
use crate::grpc_unix::GrpcUnixStream;
use crate::log::PacketLog;
use crate::metrics::Metrics;
use crate::notifications::Notifications;
use crate::p4rt::deployment::{LoadedProgram, Target};
use crate::p4rt::device::{Device, EventListener};
use crate::p4rt::service::Service;
use crate::packet_service::PacketService;
use crate::packet_trace::PacketTraceService;
use crate::thrift;
use crate::tls::{self, Tls};
use crate::trace::TraceLog;

/// Maximum number of packets and digests that wait for the control plane; further ones are dropped.
const EVENT_BACKLOG: usize = 8192;

/// Time without an answer after which a controller's connection is closed.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// The configuration of a switch.
pub struct Config {
    /// P4Runtime device id.
    pub device_id: u64,
    /// The initial program, if any.
    pub program: Option<LoadedProgram>,
    /// The ports.
    pub ports: Vec<PortSetup>,
    /// The clock that packets see.
    pub clock: Clock,
    /// Number of packet threads.
    pub threads: NonZeroUsize,
    /// The port for packet-in and packet-out.
    pub cpu_port: Option<u32>,
    /// Options of the program's pipelines.
    pub options: Options,
    /// Refuse other programs than the initial one.
    pub keeps_program: bool,
    /// Seed of link losses.
    pub seed: u64,
    /// Address of the P4Runtime server.
    pub grpc: Address,
    /// Address of the service of packets, which replaces the ports, if enabled.
    pub packets: Option<Address>,
    /// TLS of the P4Runtime and BfRuntime servers, if enabled.
    pub tls: Option<Arc<Tls>>,
    /// Address of the metrics server, if any.
    pub metrics: Option<Address>,
    /// The Thrift server, if any.
    pub thrift: Option<thrift::Config>,
    /// The BfRuntime server, if any.
    pub bfrt: Option<bfrt::Config>,
    /// BMv2's notifications, if enabled.
    pub notifications: Option<Notifications>,
    /// The output for packet traces, if enabled.
    pub trace: Option<TraceLog>,
    /// The log of packets, if enabled.
    pub log: Option<PacketLog>,
    /// The file of coverage, if enabled.
    pub coverage: Option<CoverageFile>,
}

impl Config {
    /// A switch without ports, program and optional services, whose random numbers have the seed 1.
    pub fn new(grpc: Address) -> Self {
        Self {
            device_id: 0,
            program: None,
            ports: Vec::new(),
            clock: Clock::from_zero(),
            threads: NonZeroUsize::MIN,
            cpu_port: None,
            options: Options {
                seed: 1,
                ..Options::default()
            },
            keeps_program: false,
            seed: 1,
            grpc,
            packets: None,
            tls: None,
            metrics: None,
            thrift: None,
            bfrt: None,
            notifications: None,
            trace: None,
            log: None,
            coverage: None,
        }
    }
}

/// A running switch.
pub struct Switch {
    /// Address of the P4Runtime server, with the actual port.
    pub grpc: Address,
    /// Address of the metrics server.
    pub metrics_address: Option<Address>,
    /// Address of the service of packets.
    pub packets_address: Option<Address>,
    /// Address of the BfRuntime server.
    pub bfrt_address: Option<Address>,
    /// The counters.
    pub metrics: Metrics,
    /// The Thrift server.
    pub thrift: Option<ThriftServer>,
    dataplane: Arc<Handle>,
    dataplane_ends: Ends,
    tasks: Vec<JoinHandle<()>>,
    server: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Switch {
    /// Starts the switch. Afterwards, controllers can connect.
    ///
    /// # Errors
    /// If an address cannot be bound.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        let options = config.options;
        let tls = config.tls;
        let (grpc_listener, grpc) = config.grpc.bind().await.context("--grpc-server-addr")?;
        let packets_listener = match &config.packets {
            Some(address) => Some(address.bind().await.context("--dp-grpc-server-addr")?),
            None => None,
        };
        let has_interfaces = packets_listener.is_none();
        let metrics_listener = match &config.metrics {
            Some(address) => Some(address.bind().await.context("--metrics-addr")?),
            None => None,
        };
        let bfrt_listener = match &config.bfrt {
            Some(config) => Some(
                config
                    .address
                    .bind()
                    .await
                    .context("--bfrt-grpc-server-addr")?,
            ),
            None => None,
        };
        let (events, events_rx) = mpsc::channel(EVENT_BACKLOG);
        let engine = Engine::new(Setup {
            clock: config.clock,
            ports: config.ports,
            threads: config.threads,
            cpu_port: config.cpu_port,
            seed: config.seed,
            events,
            observers: Observers {
                trace: config.trace,
                log: config.log,
                coverage: config.coverage,
                captures: Captures::default(),
            },
            packet_stream: (!has_interfaces).then(PacketStream::default),
        })?;
        let dataplane = engine.handle();
        let metrics = Metrics {
            dataplane: Arc::clone(&dataplane),
            ports: engine.ports(),
            tls: tls.clone(),
        };
        let threads = config.threads.get();
        let target = Target {
            options,
            // A single thread needs no lane.
            lanes: if threads > 1 { threads } else { 0 },
            ports: has_interfaces.then(|| engine.ports().iter().map(|port| port.number).collect()),
            keeps_program: config.keeps_program,
        };
        if let Some(program) = &config.program {
            let checked = target.check_pipes(&program.program);
            checked.map_err(anyhow::Error::msg)?;
        }
        let ports = engine.port_control();
        let views = engine.ports();
        let dataplane_ends = engine.spawn()?;
        let hub = config.bfrt.is_some().then(Arc::<Hub>::default);
        let device = Arc::new(Device::new(
            config.device_id,
            Arc::clone(&dataplane),
            target,
            config.notifications,
            hub.clone().map(|hub| hub as Arc<dyn EventListener>),
        ));
        let bfrt = match hub {
            Some(hub) => {
                let bfrt = Bfrt::new(Arc::clone(&device), hub, ports.clone(), views)?;
                Some(Arc::new(bfrt))
            }
            None => None,
        };
        match (config.program, &bfrt, &config.bfrt) {
            (Some(program), Some(bfrt), Some(config)) => bfrt.start(config, program)?,
            (Some(program), ..) => device.run(Arc::new(device.deployment_of(program))),
            (None, ..) => {}
        }
        let mut tasks = Vec::new();
        tasks.extend(tls.clone().map(|tls| tokio::spawn(tls.follow())));
        if device.notifications.is_some() {
            tasks.push(tokio::spawn(notify(Arc::clone(&device), ports.clone())));
        }
        let thrift = config
            .thrift
            .map(|config| thrift::start(config, Arc::clone(&device), ports));
        let thrift = thrift.transpose().context("--thrift-port")?;
        let event_device = Arc::clone(&device);
        tasks.push(tokio::spawn(async move {
            event_device.serve_events(events_rx).await
        }));
        let metrics_address = metrics_listener.map(|(listener, address)| {
            tasks.push(tokio::spawn(metrics.clone().serve(listener)));
            address
        });
        let packets_address = packets_listener.map(|(listener, address)| {
            let service = PacketService::server(config.device_id, Arc::clone(&dataplane));
            let router = Server::builder().add_service(service);
            tasks.push(tokio::spawn(async move {
                if let Err(error) = serve(router, listener, None).await {
                    tracing::error!("the service of packets failed: {error}: restart the switch");
                }
            }));
            address
        });
        let bfrt_address = bfrt.zip(bfrt_listener).map(|(state, (listener, address))| {
            let router = Server::builder().add_service(bfrt::Service::server(state));
            let tls = tls.clone();
            tasks.push(tokio::spawn(async move {
                if let Err(error) = serve(router, listener, tls).await {
                    tracing::error!("the BfRuntime server failed: {error}: restart the switch");
                }
            }));
            address
        });
        let server = tokio::spawn(serve_grpc(device, grpc_listener, tls));
        Ok(Self {
            grpc,
            metrics_address,
            packets_address,
            bfrt_address,
            metrics,
            thrift,
            dataplane,
            dataplane_ends,
            tasks,
            server,
        })
    }

    /// Waits until the switch fails, and returns the cause.
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

    /// Stops the switch.
    pub async fn stop(self) {
        self.dataplane.stop();
        self.server.abort();
        self.tasks.iter().for_each(JoinHandle::abort);
        let Self {
            dataplane,
            mut dataplane_ends,
            grpc,
            metrics_address,
            packets_address,
            bfrt_address,
            thrift,
            ..
        } = self;
        drop(thrift);
        // The results do not matter any more; all threads have ended when the channel is closed.
        while dataplane_ends.recv().await.is_some() {}
        dataplane.save_coverage();
        grpc.clean_up();
        for address in [metrics_address, packets_address, bfrt_address]
            .into_iter()
            .flatten()
        {
            address.clean_up();
        }
    }
}

/// Sends BMv2's notifications, if they are enabled.
async fn notify(device: Arc<Device>, ports: PortControl) {
    if let Some(notifications) = &device.notifications {
        tokio::join!(
            notifications.serve(|| device.dataplane.now()),
            notifications.serve_ports(|| ports.list()),
        );
    }
}

async fn serve_grpc(
    device: Arc<Device>,
    listener: Listener,
    tls: Option<Arc<Tls>>,
) -> Result<(), tonic::transport::Error> {
    let mut server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE));
    let traces = PacketTraceService::server(device.id(), Arc::clone(&device.dataplane));
    let router = server
        .add_service(traces)
        .add_service(Service::server(device));
    serve(router, listener, tls).await
}

async fn serve(
    server: Router,
    listener: Listener,
    tls: Option<Arc<Tls>>,
) -> Result<(), tonic::transport::Error> {
    if let Some(tls) = tls {
        return server.serve_with_incoming(tls::accept(listener, tls)).await;
    }
    match listener {
        Listener::Tcp(l) => {
            // Without TCP_NODELAY, the rest of a response would wait for the client's delayed acknowledgement.
            let connections = TcpIncoming::from(l).with_nodelay(Some(true));
            server.serve_with_incoming(connections).await
        }
        Listener::Unix(l) => {
            let connections = UnixListenerStream::new(l).map(|c| c.map(GrpcUnixStream::new));
            server.serve_with_incoming(connections).await
        }
    }
}
