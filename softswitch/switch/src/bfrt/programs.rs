// SPDX-License-Identifier: Apache-2.0
//! The programs of the device.

use std::sync::Arc;

use super::no_program::SHARED;
use super::program::Program;
use crate::dataplane::SharedPipeline;
use crate::p4rt::deployment::Deployment;
use crate::proto::bfrt::{GetForwardingPipelineConfigResponse, NonP4Config};

/// The programs of the device: one, or one for each of several groups of pipes.
#[derive(Debug, Clone)]
pub struct Programs {
    first: Arc<Program>,
    others: Vec<Arc<Program>>,
}

impl From<Program> for Programs {
    fn from(program: Program) -> Self {
        Self {
            first: Arc::new(program),
            others: vec![],
        }
    }
}

impl Programs {
    /// Creates the programs in the order of their numbers; `None` without programs.
    pub fn new(programs: Vec<Program>) -> Option<Self> {
        let mut programs = programs.into_iter().map(Arc::new);
        Some(Self {
            first: programs.next()?,
            others: programs.collect(),
        })
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<Program>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns the program with a name. The tables that do not depend on a program are those of all programs.
    pub fn named(&self, name: &str) -> Option<&Arc<Program>> {
        let shared = Some(&self.first).filter(|_| name == SHARED);
        shared.or_else(|| self.iter().find(|program| program.name() == name))
    }

    /// Takes over the settings of ports from earlier programs, and with `keeps_scopes` also the scopes of entries of
    /// programs that stay.
    pub fn keep_settings(&self, earlier: &Self, keeps_scopes: bool) {
        self.first.keep_ports(&earlier.first);
        for program in self.iter().filter(|_| keeps_scopes) {
            if let Some(earlier) = earlier.named(program.name()) {
                program.keep_scopes(earlier);
            }
        }
    }

    /// Returns the program with a number.
    pub fn numbered(&self, number: usize) -> Option<&Arc<Program>> {
        self.iter().nth(number)
    }

    /// Returns the first program, whose deployment stands for all.
    pub fn first(&self) -> &Arc<Program> {
        &self.first
    }

    /// Returns true if the programs are those of a deployment.
    pub fn are_of(&self, deployment: &Deployment) -> bool {
        self.first.deployment.shares_pipeline(deployment)
    }

    /// Returns true if the programs have this pipeline.
    pub fn have(&self, pipeline: &SharedPipeline) -> bool {
        Arc::ptr_eq(self.first.deployment.pipeline(), pipeline)
    }

    /// Returns the config of the device, for clients.
    pub fn response(&self) -> GetForwardingPipelineConfigResponse {
        GetForwardingPipelineConfigResponse {
            config: self
                .iter()
                .map(|program| program.config().clone())
                .collect(),
            non_p4_config: Some(NonP4Config {
                bfruntime_info: self.first.fixed_schema(),
            }),
        }
    }
}
