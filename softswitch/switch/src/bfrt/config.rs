// SPDX-License-Identifier: Apache-2.0
//! Forwarding pipeline configs.
//!
//! When the initialization of a program begins, reads and writes refer to it, while packets are still processed by the
//! earlier program. The program processes packets when its initialization ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use softswitch_pipeline::PipeSet;
use tonic::Status;

use super::Bfrt;
use super::program::Checked;
use super::programs::Programs;
use crate::p4rt::deployment::LoadedProgram;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::set_forwarding_pipeline_config_request::{Action, DevInitMode};
use crate::proto::bfrt::stream_message_response::Update as Message;
use crate::proto::bfrt::{
    ForwardingPipelineConfig, GetForwardingPipelineConfigResponse,
    SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse,
    SetForwardingPipelineConfigResponseType as Progress,
};

impl Bfrt {
    /// Sets the config, or binds a client to the present one.
    ///
    /// # Errors
    /// If the config cannot be realized; the state is then unchanged.
    pub fn set_config(&self, request: &SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        let client = request.client_id;
        let action = Action::try_from(request.action)
            .map_err(|e| Status::invalid_argument(format!("unknown action {}", e.0)))?;
        match action {
            Action::Bind => {
                let [config] = &request.config[..] else {
                    let message = "exactly one config is required";
                    return Err(Status::invalid_argument(message));
                };
                let running = self.device.running();
                self.hub.bind(client, &config.p4_name, running.as_ref())
            }
            Action::Verify => Ok(self.check(request).map(drop)?),
            Action::VerifyAndWarmInitBegin => {
                self.begin(request)?;
                self.hub.broadcast(&progress(Progress::WarmInitStarted));
                self.hub.dismiss_unbound(self.device.running().as_ref());
                Ok(())
            }
            Action::VerifyAndWarmInitBeginAndEnd => {
                self.begin(request)?;
                self.hub.broadcast(&progress(Progress::WarmInitStarted));
                self.end()?;
                self.hub.dismiss_unbound(self.device.running().as_ref());
                Ok(())
            }
            Action::WarmInitEnd if !request.config.is_empty() => Err(Status::invalid_argument(
                "WARM_INIT_END has a config: send the config with VERIFY_AND_WARM_INIT_BEGIN",
            )),
            Action::WarmInitEnd => self.end(),
            Action::ReconcileAndWarmInitEnd => Err(Status::unimplemented(
                "RECONCILE_AND_WARM_INIT_END is not supported",
            )),
        }
    }

    /// Checks the configs of a request.
    fn check(
        &self,
        request: &SetForwardingPipelineConfigRequest,
    ) -> P4Result<Vec<(Checked, LoadedProgram, PipeSet)>> {
        if request.config.is_empty() {
            return Err(P4Error::invalid("the request does not have a config"));
        }
        let mut names = BTreeSet::new();
        let programs = request.config.iter().map(|config| {
            if !names.insert(&config.p4_name) {
                let message = format!("two configs have the p4_name {:?}", config.p4_name);
                return Err(P4Error::invalid(message));
            }
            let program = load(config)?;
            self.device.check_pipes(&program)?;
            let checked = Checked::new(config.clone(), &program)?;
            Ok((checked, program, self.pipes(config)?))
        });
        let programs: Vec<_> = programs.collect::<P4Result<_>>()?;
        let has_pipelines = |(_, program, _): &(_, LoadedProgram, _)| program.program.pipes() > 1;
        if programs.len() > 1 && programs.iter().any(has_pipelines) {
            let message = "a program with several pipelines must be the only program";
            return Err(P4Error::unimplemented(message));
        }
        Ok(programs)
    }

    /// Returns the pipes of a config.
    fn pipes(&self, config: &ForwardingPipelineConfig) -> P4Result<PipeSet> {
        let scope = config
            .profiles
            .iter()
            .flat_map(|p| p.pipe_scope.iter().copied());
        let count = self.device.pipes();
        if let Some(pipe) = scope.clone().find(|pipe| *pipe >= count) {
            let message = format!(
                "pipe_scope: unknown pipe {pipe}: the switch has {count}: start it with --pipes"
            );
            return Err(P4Error::invalid(message));
        }
        Ok(scope.collect())
    }

    /// Begins the initialization of programs, to which reads and writes refer from now on. The settings of ports stay; in
    /// the mode HITLESS also the scopes of entries.
    fn begin(&self, request: &SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        let programs = self.check(request)?;
        self.device.check_replaceable()?;
        let earlier = self.hub.programs(self.device.running().as_ref());
        let programs = self.deploy(programs)?;
        if let Some(earlier) = earlier {
            let is_hitless = request.dev_init_mode() == DevInitMode::Hitless;
            programs.keep_settings(&earlier, is_hitless);
        }
        self.hub.prepare(programs);
        Ok(())
    }

    /// Returns programs in their initial state.
    fn deploy(&self, programs: Vec<(Checked, LoadedProgram, PipeSet)>) -> P4Result<Programs> {
        let mut schemas = Vec::new();
        let mut loaded = Vec::new();
        for (checked, program, pipes) in programs {
            schemas.push(checked);
            loaded.push((program, pipes));
        }
        let deployments = match loaded.len() {
            1 => loaded
                .into_iter()
                .map(|(program, _)| self.device.deployment_of(program))
                .collect(),
            _ => self.device.deployments_of(loaded)?,
        };
        let state = Arc::default();
        let programs = schemas.into_iter().zip(deployments).enumerate();
        let programs = programs.map(|(number, (checked, deployment))| {
            checked.deploy(Arc::new(deployment), number, Arc::clone(&state))
        });
        let programs = Programs::new(programs.collect());
        programs.ok_or_else(|| P4Error::invalid("the request does not have a config"))
    }

    /// Lets the programs whose initialization has begun process packets.
    fn end(&self) -> Result<(), Status> {
        let deployment = self.hub.start_prepared().ok_or_else(|| {
            Status::invalid_argument(
                "no initialization has begun: send VERIFY_AND_WARM_INIT_BEGIN first",
            )
        })?;
        self.device.run(deployment);
        self.hub.broadcast(&progress(Progress::WarmInitFinished));
        Ok(())
    }

    /// Returns the config.
    ///
    /// # Errors
    /// NOT_FOUND if the device has no program.
    pub fn get_config(&self) -> Result<GetForwardingPipelineConfigResponse, Status> {
        let programs = self.hub.programs(self.device.running().as_ref());
        let programs = programs.ok_or_else(|| Status::not_found("the device has no program"))?;
        Ok(programs.response())
    }
}

/// Returns the message about the progress of an initialization.
fn progress(progress: Progress) -> Message {
    Message::SetForwardingPipelineConfigResponse(SetForwardingPipelineConfigResponse {
        set_forwarding_pipeline_config_response_type: progress.into(),
    })
}

fn load(config: &ForwardingPipelineConfig) -> P4Result<LoadedProgram> {
    if config.p4_name.is_empty() {
        return Err(P4Error::invalid("the config does not have a p4_name"));
    }
    let [profile, others @ ..] = &config.profiles[..] else {
        return Err(P4Error::invalid("the config does not have a profile"));
    };
    if others.iter().any(|other| other.binary != profile.binary) {
        let message = "profiles have different binaries: give all of them the whole program";
        return Err(P4Error::invalid(message));
    }
    let json = String::from_utf8(profile.binary.clone());
    let json = json.map_err(|_| P4Error::invalid("binary is not BMv2 JSON"))?;
    LoadedProgram::load(json).map_err(|e| P4Error::invalid(format!("binary: {e}")))
}
