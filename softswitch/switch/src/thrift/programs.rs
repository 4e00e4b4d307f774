// SPDX-License-Identifier: Apache-2.0
//! The program and the state as a whole.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

use md5::{Digest, Md5};
use serde_json::Value as Json;
use softswitch_thrift::interface::{IdError, Programs, SwapError, SwitchInfo, resource};
use softswitch_thrift::wire::Binary;

use super::Services;
use crate::p4rt::deployment::LoadedProgram;

impl Services {
    /// Returns the JSON of the program; empty without one.
    fn json(&self) -> Vec<u8> {
        let deployment = self.deployment();
        deployment.map_or_else(Vec::new, |d| d.config().p4_device_config.to_vec())
    }
}

/// Returns the id of the object with a name in lists of the JSON.
fn find_id<'a>(lists: impl Iterator<Item = &'a Json>, name: &str) -> Option<i32> {
    let mut objects = lists.filter_map(Json::as_array).flatten();
    let object = objects.find(|object| object["name"] == name)?;
    i32::try_from(object["id"].as_i64()?).ok()
}

impl Programs for Services {
    fn bm_load_new_config(&self, config: String) -> Result<(), SwapError> {
        if !self.enable_swap {
            return Err(SwapError::ConfigSwapDisabled);
        }
        let mut loaded = self.loaded.lock();
        if loaded.is_some() {
            return Err(SwapError::OngoingSwap);
        }
        // BMv2 does not have a code for this: nothing was loaded.
        let refuse = |error: &dyn Display| {
            tracing::error!("thrift: bm_load_new_config: {error}");
            SwapError::NoOngoingSwap
        };
        let program = LoadedProgram::load(config).map_err(|error| refuse(&error))?;
        let checked = self.device.check_pipes(&program);
        checked.map_err(|error| refuse(&error.message))?;
        *loaded = Some(Arc::new(self.device.deployment_of(program)));
        Ok(())
    }

    fn bm_swap_configs(&self) -> Result<(), SwapError> {
        if !self.enable_swap {
            return Err(SwapError::ConfigSwapDisabled);
        }
        let loaded = self.loaded.lock().take();
        self.device.run(loaded.ok_or(SwapError::NoOngoingSwap)?);
        Ok(())
    }

    fn bm_mgmt_get_info(&self) -> Result<SwitchInfo, Infallible> {
        Ok(SwitchInfo {
            device_id: self.device.id().cast_signed(),
            thrift_port: self.thrift_port.into(),
            notifications_socket: (self.device.notifications.as_ref())
                .map(|notifications| notifications.address().to_string()),
            ..Default::default()
        })
    }

    fn bm_reset_state(&self) -> Result<(), Infallible> {
        if let Some(deployment) = self.deployment() {
            deployment.reset_state();
            if let Some(notifications) = &self.device.notifications {
                notifications.reset(deployment.pipeline());
            }
        }
        *self.replication.lock() = Default::default();
        Ok(())
    }

    fn bm_get_config(&self) -> Result<String, Infallible> {
        // A program is UTF-8 text, because it was loaded from JSON.
        Ok(String::from_utf8(self.json()).unwrap_or_default())
    }

    fn bm_get_config_md5(&self) -> Result<Binary, Infallible> {
        Ok(Binary(Md5::digest(self.json()).to_vec()))
    }

    fn bm_get_id_from_name(&self, _: i32, kind: i32, name: String) -> Result<i32, IdError> {
        let json: Json = serde_json::from_slice(&self.json()).unwrap_or_default();
        let pipelines = || json["pipelines"].as_array().into_iter().flatten();
        let id = match kind {
            resource::TABLE => find_id(pipelines().map(|p| &p["tables"]), &name),
            resource::ACTION_PROFILE => find_id(pipelines().map(|p| &p["action_profiles"]), &name),
            resource::COUNTER => find_id([&json["counter_arrays"]].into_iter(), &name),
            resource::METER => find_id([&json["meter_arrays"]].into_iter(), &name),
            resource::REGISTER => find_id([&json["register_arrays"]].into_iter(), &name),
            resource::LEARNING_LIST => find_id([&json["learn_lists"]].into_iter(), &name),
            _ => return Err(IdError::InvalidResourceType),
        };
        id.ok_or(IdError::InvalidResourceName)
    }
}
