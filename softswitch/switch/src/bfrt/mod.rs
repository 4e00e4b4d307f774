// SPDX-License-Identifier: Apache-2.0
//! BfRuntime, the control plane of Tofino, over the switch's state.
//!
//! A client knows the program's tables by a schema ([`schema`]), which the compiler writes. [`link`] finds their objects in
//! the program, and [`fixed`] adds the tables that do not depend on it. Updates ([`batch`]) and reads ([`query`]) are decoded
//! by the schema and then applied to the pipeline, as P4Runtime's and Thrift's are. [`hub`] has the clients with a stream.

mod batch;
mod chip;
mod config;
mod data;
mod error;
mod filters;
mod fixed;
pub mod hub;
mod key;
mod link;
mod no_program;
mod pipes;
mod program;
mod programs;
mod query;
mod rates;
mod schema;
mod service;
mod state;
mod tables;
mod target;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;

use crate::address::Address;
use crate::dataplane::{PortControl, PortView};
use crate::p4rt::deployment::LoadedProgram;
use crate::p4rt::device::Device;
use crate::proto::bfrt::ForwardingPipelineConfig;
use hub::Hub;
use program::{Checked, initial_config};
use tables::Ports;

pub use program::is_tna;
pub use service::Service;

/// The configuration of the server.
#[derive(Debug)]
pub struct Config {
    /// The server's address.
    pub address: Address,
    /// The file of the initial program.
    pub program: Option<PathBuf>,
    /// The schema of the initial program.
    pub schema: Option<Vec<u8>>,
}

impl Config {
    /// Returns the config of the initial program, if it has a schema.
    fn initial(&self, json: &str, pipes: u32) -> Option<ForwardingPipelineConfig> {
        let (path, schema) = self.program.as_ref().zip(self.schema.as_ref())?;
        Some(initial_config(path, json, schema.clone(), pipes))
    }
}

/// The state of the server.
pub struct Bfrt {
    device: Arc<Device>,
    hub: Arc<Hub>,
    ports: Ports,
}

impl Bfrt {
    /// Creates the server's state. Without a program, it has only the tables that do not depend on one.
    ///
    /// # Errors
    /// If these tables cannot be made.
    pub fn new(
        device: Arc<Device>,
        hub: Arc<Hub>,
        control: PortControl,
        views: Vec<PortView>,
    ) -> anyhow::Result<Self> {
        hub.set_fixed(no_program::tables(&device)?);
        let ports = Ports { control, views };
        Ok(Self { device, hub, ports })
    }

    /// Runs the initial program, and shows it to clients if it has a schema.
    ///
    /// # Errors
    /// If the schema is invalid.
    pub fn start(&self, config: &Config, program: LoadedProgram) -> anyhow::Result<()> {
        let checked = config.initial(&program.json, self.device.pipes());
        let checked = checked.map(|config| Checked::new(config, &program));
        let checked = checked.transpose().context("--bfrt-schema")?;
        let deployment = Arc::new(self.device.deployment_of(program));
        self.device.run(Arc::clone(&deployment));
        if let Some(checked) = checked {
            let program = checked.deploy(deployment, 0, Arc::default());
            self.hub.set_programs(program.into());
        }
        Ok(())
    }
}
