// SPDX-License-Identifier: Apache-2.0
//! The tables of a device without a program: only those that do not depend on one.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::program::{Checked, Program};
use crate::p4rt::deployment::LoadedProgram;
use crate::p4rt::device::Device;
use crate::proto::bfrt::ForwardingPipelineConfig;

/// The name by which clients bind to the tables that do not depend on a program.
pub const SHARED: &str = "$SHARED";

/// Returns a program for Tofino without tables, which never processes packets.
fn blank() -> Json {
    let metadata = [
        ("ig_intr_md_for_dprsr", "drop_ctl"),
        ("eg_intr_md_for_dprsr", "drop_ctl"),
        ("ig_intr_md_for_tm", "ucast_egress_port"),
    ];
    let numbered = || metadata.iter().enumerate();
    let types = numbered().map(
        |(id, (header, field))| json!({"name": header, "id": id, "fields": [[field, 9, false]]}),
    );
    let headers = numbered().map(|(id, (header, _))| {
        json!({"name": header, "id": id, "header_type": header, "metadata": true})
    });
    json!({
        "__meta__": {"architecture": "tna"},
        "header_types": types.collect::<Json>(),
        "headers": headers.collect::<Json>(),
    })
}

/// Returns the tables of a device without a program.
///
/// # Errors
/// If the program without tables cannot be loaded.
pub fn tables(device: &Device) -> anyhow::Result<Program> {
    let program = LoadedProgram::load(blank().to_string())?;
    let config = ForwardingPipelineConfig {
        p4_name: SHARED.into(),
        bfruntime_info: json!({"tables": []}).to_string().into_bytes(),
        profiles: vec![],
    };
    let checked = Checked::new(config, &program)?;
    let deployment = Arc::new(device.deployment_of(program));
    Ok(checked.deploy(deployment, 0, Arc::default()))
}
