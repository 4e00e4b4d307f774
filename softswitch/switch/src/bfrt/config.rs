// SPDX-License-Identifier: Apache-2.0
//! Forwarding pipeline configs.
//!
//! A new program replaces the present one when its initialization begins. Packets are processed by it from then on, also
//! before the client ends the initialization.

use std::sync::Arc;

use tonic::Status;

use super::Bfrt;
use super::program::Checked;
use crate::p4rt::deployment::LoadedProgram;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::set_forwarding_pipeline_config_request::Action;
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
            Action::Verify => self.check(request).map(drop),
            Action::VerifyAndWarmInitBegin => {
                self.replace(request)?;
                self.report(client, Progress::WarmInitStarted);
                Ok(())
            }
            Action::VerifyAndWarmInitBeginAndEnd => {
                self.replace(request)?;
                self.report(client, Progress::WarmInitFinished);
                Ok(())
            }
            Action::WarmInitEnd => {
                self.report(client, Progress::WarmInitFinished);
                Ok(())
            }
            Action::ReconcileAndWarmInitEnd => Err(Status::unimplemented(
                "RECONCILE_AND_WARM_INIT_END is not supported",
            )),
        }
    }

    fn report(&self, client: u32, progress: Progress) {
        let response = SetForwardingPipelineConfigResponse {
            set_forwarding_pipeline_config_response_type: progress.into(),
        };
        let message = Message::SetForwardingPipelineConfigResponse(response);
        self.hub.send(client, message);
    }

    /// Checks the config of a request.
    fn check(
        &self,
        request: &SetForwardingPipelineConfigRequest,
    ) -> Result<(Checked, LoadedProgram), Status> {
        let [config] = &request.config[..] else {
            return Err(match request.config.len() {
                0 => Status::invalid_argument("the request does not have a config"),
                _ => Status::unimplemented("a device has one program"),
            });
        };
        let program = load(config)?;
        self.device.check_pipes(&program)?;
        let checked = Checked::new(config.clone(), &program)?;
        Ok((checked, program))
    }

    /// Replaces the program. The ports stay.
    fn replace(&self, request: &SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        let (checked, program) = self.check(request)?;
        self.device.check_replaceable()?;
        let deployment = Arc::new(self.device.deployment_of(program));
        let program = Arc::new(checked.deploy(Arc::clone(&deployment)));
        if let Some(old) = self.hub.program(self.device.running().as_ref()) {
            program.keep_ports(&old);
        }
        self.device.run(deployment);
        self.hub.set_program(program);
        Ok(())
    }

    /// Returns the config.
    ///
    /// # Errors
    /// NOT_FOUND if the device has no program.
    pub fn get_config(&self) -> Result<GetForwardingPipelineConfigResponse, Status> {
        let program = self.hub.program(self.device.running().as_ref());
        let program = program.ok_or_else(|| Status::not_found("the device has no program"))?;
        Ok(program.response())
    }
}

fn load(config: &ForwardingPipelineConfig) -> P4Result<LoadedProgram> {
    if config.p4_name.is_empty() {
        return Err(P4Error::invalid("the config does not have a p4_name"));
    }
    let [profile] = &config.profiles[..] else {
        let count = config.profiles.len();
        let message = format!("a program has one profile, not {count}");
        return Err(P4Error::invalid(message));
    };
    let json = String::from_utf8(profile.binary.clone());
    let json = json.map_err(|_| P4Error::invalid("binary is not BMv2 JSON"))?;
    LoadedProgram::load(json).map_err(|e| P4Error::invalid(format!("binary: {e}")))
}
