// SPDX-License-Identifier: Apache-2.0
//! Commands for the program as a whole.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::output::Answer;
use crate::p4info;
use crate::proto::p4::v1::ForwardingPipelineConfig;
use crate::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use crate::session::Session;

pub fn load(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let (json, p4info) = match args {
        [json] => (json, p4info::beside(Path::new(json))?),
        [json, p4info] => (json, PathBuf::from(p4info)),
        _ => return Err(Error::Usage),
    };
    let program =
        std::fs::read(json).map_err(|e| Error::new(format!("cannot read {json}: {e}")))?;
    if let Err(e) = serde_json::from_slice::<Value>(&program) {
        return Err(Error::new(format!(
            "{json}: not JSON: {e}: compile the program for BMv2"
        )));
    }
    let config = ForwardingPipelineConfig {
        p4info: Some(p4info::read(&p4info)?),
        p4_device_config: program,
        cookie: None,
    };
    session
        .client
        .set_config(Action::VerifyAndSave, Some(config))?;
    Ok(Answer::text("Loading new Json config"))
}

pub fn swap(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [] = args else { return Err(Error::Usage) };
    session.client.set_config(Action::Commit, None)?;
    session.reload()?;
    Ok(Answer::text("Swapping configs"))
}

pub fn reset(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [] = args else { return Err(Error::Usage) };
    let config = current(session)?;
    session
        .client
        .set_config(Action::VerifyAndCommit, Some(config))?;
    session.reload()?;
    Ok(Answer::default())
}

pub fn write_to_file(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [file] = args else {
        return Err(Error::Usage);
    };
    let config = current(session)?;
    std::fs::write(file, config.p4_device_config)
        .map_err(|e| Error::new(format!("cannot write {file}: {e}")))?;
    Ok(Answer::default())
}

fn current(session: &mut Session) -> Result<ForwardingPipelineConfig> {
    let config = session.client.config()?;
    config.ok_or_else(|| {
        Error::new("the switch runs no program: use load_new_config_file, then swap_configs")
    })
}

pub fn info(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [] = args else { return Err(Error::Usage) };
    let version = session.client.version()?;
    let device_id = session.client.device_id();
    let config = session.client.config()?;
    let cookie = config
        .as_ref()
        .and_then(|c| c.cookie.as_ref())
        .map(|c| c.cookie);
    let shown = match (&config, cookie) {
        (None, _) => "no program".into(),
        (Some(_), None) => "none".into(),
        (Some(_), Some(cookie)) => format!("{cookie:#x}"),
    };
    Ok(Answer::new(
        format!(
            "device_id         : {device_id}\np4runtime_version : {version}\ncookie            : {shown}"
        ),
        json!({
            "device_id": device_id, "p4runtime_version": version, "cookie": cookie, "has_program": config.is_some(),
        }),
    ))
}
