// SPDX-License-Identifier: Apache-2.0
//! The unary requests.

use std::sync::Arc;

use tonic::Status;

use super::{Configs, Device};
use crate::p4rt::deployment::Deployment;
use crate::p4rt::digest::DigestBuffers;
use crate::p4rt::error::{NO_PIPELINE, P4Error, batch_status};
use crate::p4rt::role::Role;
use crate::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, Entity, ForwardingPipelineConfig,
    GetForwardingPipelineConfigRequest, ReadRequest, SetForwardingPipelineConfigRequest, Uint128,
    WriteRequest, get_forwarding_pipeline_config_request::ResponseType,
    set_forwarding_pipeline_config_request::Action, write_request::Atomicity,
};

/// The version of P4Runtime that `proto/` defines.
const API_VERSION: &str = "1.5.0";

impl Device {
    /// Writes entities (specification, section "Write RPC"). Several requests are decoded in parallel, but applied one after the
    /// other.
    ///
    /// # Errors
    /// The status of the RPC, with an error for each update if any failed.
    pub fn write(&self, request: &WriteRequest) -> Result<(), Status> {
        self.check_writer(request)?;
        let deployment = self.deployment()?;
        let atomicity = Atomicity::try_from(request.atomicity)
            .map_err(|e| Status::invalid_argument(format!("unknown atomicity {}", e.0)))?;
        let batch = deployment.decode(&request.updates);
        let _writing = self.writes.lock();
        // While it was decoded, another client may have become primary, or set another config.
        let role = self.check_writer(request)?;
        let current = self.deployment()?;
        let batch = match Arc::ptr_eq(&current, &deployment) {
            true => batch,
            false => current.decode(&request.updates),
        };
        let results = current.write(batch, &role, atomicity, self.dataplane.now());
        self.digests.lock().retain(&current.digest_configs());
        batch_status("updates", &results)
    }

    /// Returns the role of a write request's client, which must be its primary.
    #[allow(deprecated)]
    fn check_writer(&self, request: &WriteRequest) -> Result<Role, Status> {
        self.check_primary(
            request.device_id,
            &request.role,
            request.role_id,
            request.election_id,
        )
    }

    /// Reads entities (specification, section "Read RPC"). A role in the request restricts them to the role's objects. Returns the entities of the requests that succeeded, and the
    /// final status of the RPC.
    ///
    /// # Errors
    /// If no request could be attempted.
    pub fn read(&self, request: &ReadRequest) -> Result<(Vec<Entity>, Result<(), Status>), Status> {
        let role = {
            let arbitration = self.arbitration.lock();
            arbitration.check_device(request.device_id)?;
            arbitration.role(&request.role, 0)
        };
        let deployment = self.deployment()?;
        let now = self.dataplane.now();
        let (entities, results) = deployment.read(&request.entities, &role, now);
        Ok((entities, batch_status("read requests", &results)))
    }

    /// Sets the forwarding pipeline config (specification, section "SetForwardingPipelineConfig RPC").
    ///
    /// # Errors
    /// If the config cannot be realized; the state is then unchanged.
    #[allow(deprecated)]
    pub fn set_config(&self, request: SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        let _writing = self.writes.lock();
        let SetForwardingPipelineConfigRequest {
            device_id,
            role,
            role_id,
            election_id,
            ..
        } = &request;
        let role = self.check_primary(*device_id, role, *role_id, *election_id)?;
        role.check_pushes_pipeline()?;
        self.check_replaceable()?;
        self.carry_out(request)
    }

    /// Checks that clients may replace the program.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if the switch keeps its initial program.
    pub fn check_replaceable(&self) -> Result<(), Status> {
        if self.target.keeps_program {
            return Err(Status::failed_precondition(
                "the switch keeps its program: start it without --disable-swap",
            ));
        }
        Ok(())
    }

    fn check_primary(
        &self,
        device_id: u64,
        role: &str,
        role_id: u64,
        election_id: Option<Uint128>,
    ) -> Result<Role, Status> {
        let arbitration = self.arbitration.lock();
        arbitration.check_primary(device_id, role, role_id, election_id)
    }

    fn carry_out(&self, request: SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        let action = request.action();
        if action == Action::Commit {
            if request.config.is_some() {
                return Err(Status::invalid_argument(
                    "COMMIT commits the saved config: leave the config unset",
                ));
            }
            let saved = self.configs.read().saved.clone();
            let saved = saved.ok_or_else(|| {
                Status::not_found("missing saved config: use VERIFY_AND_SAVE before COMMIT")
            })?;
            self.commit(saved);
            return Ok(());
        }
        let load = || -> Result<Deployment, Status> {
            let config: ForwardingPipelineConfig = (request.config.clone())
                .ok_or_else(|| P4Error::invalid("the request has no config"))?;
            Ok(Deployment::new(config, &self.target)?)
        };
        match action {
            Action::Verify => drop(load()?),
            Action::VerifyAndSave => self.configs.write().saved = Some(Arc::new(load()?)),
            Action::VerifyAndCommit => self.commit(Arc::new(load()?)),
            Action::ReconcileAndCommit => {
                let new = load()?;
                if let Some(old) = self.committed() {
                    new.adopt(&old, self.dataplane.now())?;
                }
                self.commit(Arc::new(new));
            }
            Action::Unspecified | Action::Commit => {
                return Err(Status::invalid_argument("unspecified action"));
            }
        }
        Ok(())
    }

    fn commit(&self, deployment: Arc<Deployment>) {
        let mut configs = self.configs.write();
        self.dataplane
            .set_pipeline(Arc::clone(deployment.pipeline()));
        *configs = Configs {
            committed: Some(deployment),
            ..Configs::default()
        };
        *self.digests.lock() = DigestBuffers::default();
        self.changed.notify_one();
    }

    /// Returns the committed config (specification, section "GetForwardingPipelineConfig RPC").
    ///
    /// # Errors
    /// NOT_FOUND for another device. FAILED_PRECONDITION if there is no config: the specification demands an empty
    /// response, but clients rely on `simple_switch_grpc`'s error to detect a missing pipeline.
    pub fn get_config(
        &self,
        request: &GetForwardingPipelineConfigRequest,
    ) -> Result<ForwardingPipelineConfig, Status> {
        self.arbitration.lock().check_device(request.device_id)?;
        let response_type = ResponseType::try_from(request.response_type)
            .map_err(|e| Status::invalid_argument(format!("unknown response type {}", e.0)))?;
        let committed = self.committed();
        let committed = committed.ok_or_else(|| Status::failed_precondition(NO_PIPELINE))?;
        let whole = committed.config();
        let all = response_type == ResponseType::All;
        let mut config = ForwardingPipelineConfig {
            cookie: whole.cookie,
            ..Default::default()
        };
        if all || response_type == ResponseType::P4infoAndCookie {
            config.p4info = whole.p4info.clone();
        }
        if all || response_type == ResponseType::DeviceConfigAndCookie {
            config.p4_device_config = whole.p4_device_config.clone();
        }
        Ok(config)
    }

    /// Returns the server's capabilities (specification, section "Capabilities RPC").
    ///
    /// # Errors
    /// NOT_FOUND for another device.
    pub fn capabilities(
        &self,
        request: CapabilitiesRequest,
    ) -> Result<CapabilitiesResponse, Status> {
        if request.device_id != 0 {
            self.arbitration.lock().check_device(request.device_id)?;
        }
        Ok(CapabilitiesResponse {
            p4runtime_api_version: API_VERSION.into(),
            experimental: None,
        })
    }
}
