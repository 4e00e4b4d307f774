// SPDX-License-Identifier: Apache-2.0
//! Action profiles as a whole.

use serde_json::{Value, json};

use super::{groups, members};
use crate::error::{Error, Result};
use crate::output::Answer;
use crate::proto::p4::config::v1 as info;
use crate::schema::{Kind, id_of, name};
use crate::session::Session;

impl Session {
    /// Returns an action profile by its name.
    pub(crate) fn profile(&self, name: &str) -> Result<&info::ActionProfile> {
        let id = self.schema.id(Kind::Profile, name)?;
        let profile = self.schema.profile(id);
        profile.ok_or_else(|| Error::new(format!("unknown action profile {name:?}")))
    }
}

pub fn dump(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [profile] = args else {
        return Err(Error::Usage);
    };
    let profile = id_of(&session.profile(profile)?.preamble);
    describe(session, profile)
}

/// Shows the members of a profile, and the groups if it can have any.
pub fn describe(session: &mut Session, profile: u32) -> Result<Answer> {
    let definition = session.schema.profile(profile);
    let has_groups = definition.is_some_and(|p| p.with_selector);
    let profile_name = definition.map_or("", |p| name(&p.preamble)).to_owned();
    let (members, data) = list(members::describe_all(session, profile)?);
    let mut text = format!("==========\nMEMBERS\n{members}");
    let mut answer = json!({"name": profile_name, "members": data});
    if has_groups {
        let (groups, data) = list(groups::describe_all(session, profile)?);
        text.push_str(&format!("==========\nGROUPS\n{groups}"));
        answer["groups"] = data;
    }
    Ok(Answer::new(text, answer))
}

/// Joins descriptions.
fn list(described: Vec<(String, Value)>) -> (String, Value) {
    let (texts, data): (Vec<String>, Vec<Value>) = described.into_iter().unzip();
    let text = texts.iter().map(|text| format!("**********\n{text}\n"));
    (text.collect(), Value::Array(data))
}
