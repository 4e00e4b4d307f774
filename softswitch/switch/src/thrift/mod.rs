// SPDX-License-Identifier: Apache-2.0
//! BMv2's Thrift services over the switch's state.
//!
//! Each file implements the functions of one subject. The functions check what the pipeline cannot check, such as names and
//! numbers of bytes, and then use the pipeline's own operations, as P4Runtime's entities do. So both interfaces see the same
//! state, with the same checks. A refused operation changes nothing.

mod action;
mod arrays;
mod calculations;
mod clock;
mod direct;
mod error;
mod handle;
mod key;
mod learning;
mod mirroring;
mod multicast;
mod ports;
mod pre;
mod profiles;
mod programs;
mod queues;
mod rates;
mod tables;
mod value_sets;

use std::net::TcpListener;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use softswitch_pipeline::Program;
use softswitch_thrift::calls::Dispatch;
use softswitch_thrift::interface::{
    Calculations, Clock, Counters, DirectResources, Learning, Meters, Mirroring, Multicast, Ports,
    Profiles, Programs, Queues, Registers, Tables, ValueSets,
};
use softswitch_thrift::server::Server;
use thrift::protocol::{TInputProtocol, TOutputProtocol};

use crate::dataplane::PortControl;
use crate::p4rt::deployment::Deployment;
use crate::p4rt::device::Device;
use crate::p4rt::entity::Context;
use pre::Pre;

/// The configuration of the Thrift server.
#[derive(Debug)]
pub struct Config {
    /// The listener.
    pub listener: TcpListener,
    /// Clients may replace the program: `--enable-swap`.
    pub enable_swap: bool,
    /// Number of priorities by which clients count: `--priority-queues`, 1 to 8.
    pub priority_queues: u32,
}

/// Starts the Thrift server.
///
/// # Errors
/// If the listener's address is unknown, or the thread cannot be started.
pub fn start(config: Config, device: Arc<Device>, ports: PortControl) -> std::io::Result<Server> {
    let services = Services {
        thrift_port: config.listener.local_addr()?.port(),
        enable_swap: config.enable_swap,
        priority_queues: config.priority_queues,
        ..Services::new(device, ports)
    };
    Server::start(config.listener, Arc::new(services))
}

/// The implementation of the services.
pub struct Services {
    thrift_port: u16,
    enable_swap: bool,
    priority_queues: u32,
    device: Arc<Device>,
    ports: PortControl,
    /// The program that will replace the current one. As in BMv2, all functions refer to it once it is loaded.
    loaded: Mutex<Option<Arc<Deployment>>>,
    replication: Mutex<Replication>,
}

/// The packet replication of a deployment.
#[derive(Default)]
struct Replication {
    of: Weak<Deployment>,
    pre: Pre,
}

impl Services {
    /// Returns the services of a device without a port of their own. Clients may replace the program.
    pub fn new(device: Arc<Device>, ports: PortControl) -> Self {
        Self {
            thrift_port: 0,
            enable_swap: true,
            priority_queues: 1,
            device,
            ports,
            loaded: Mutex::default(),
            replication: Mutex::default(),
        }
    }

    /// Returns the deployment to which the functions refer.
    fn deployment(&self) -> Option<Arc<Deployment>> {
        let loaded = self.loaded.lock().clone();
        loaded.or_else(|| self.device.running())
    }

    /// Runs a function with the state locked. Without a program, returns `missing`.
    fn with_state<R, E>(
        &self,
        missing: E,
        f: impl FnOnce(&mut Context<'_>, &Program) -> Result<R, E>,
    ) -> Result<R, E> {
        let deployment = self.deployment().ok_or(missing)?;
        deployment.with_context(self.device.dataplane.now(), |cx| {
            let program = cx.pipeline.program().clone();
            f(cx, &program)
        })
    }
}

impl Dispatch for Services {
    fn serve(
        &self,
        service: &str,
        function: &str,
        sequence: i32,
        input: &mut dyn TInputProtocol,
        output: &mut dyn TOutputProtocol,
    ) -> thrift::Result<bool> {
        macro_rules! any {
            ($($subject:ident)*) => {
                $(<Self as $subject>::serve(self, function, sequence, input, output)? ||)* false
            };
        }
        Ok(match service {
            "standard" => any! {
                Tables Profiles DirectResources Counters Meters Registers ValueSets Learning Ports Calculations Programs
            },
            "simple_pre_lag" => any! { Multicast },
            "simple_switch" => any! { Mirroring Queues Clock },
            _ => false,
        })
    }
}
