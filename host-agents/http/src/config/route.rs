// SPDX-License-Identifier: Apache-2.0
//! Configuration of routes.

use std::path::PathBuf;

use http::{HeaderName, HeaderValue, Uri};
use serde::Deserialize;

use super::origin;
use crate::policy::Policy;

/// A path prefix and its target.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Path prefix, which begins with `/`.
    pub path: String,
    /// Host name of requests, without a port; any if absent.
    pub host: Option<String>,
    /// Header field of requests; any if absent.
    pub header: Option<HeaderMatch>,
    /// Directory whose files are served. The path prefix is not part of their names.
    pub directory: Option<PathBuf>,
    /// Origin to which requests are proxied over HTTP/1.1 with an unchanged path.
    #[serde(default, deserialize_with = "origin")]
    pub origin: Option<Uri>,
    /// Real servers, which respond to clients directly.
    pub real_servers: Option<RealServerChoice>,
}

/// A header field that a request must have.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Text")]
pub struct HeaderMatch {
    /// Field name.
    pub name: HeaderName,
    /// The whole field value.
    pub value: HeaderValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    name: String,
    value: String,
}

impl TryFrom<Text> for HeaderMatch {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        let name = text.name.parse();
        let value = text.value.parse();
        Ok(Self {
            name: name.map_err(|_| format!("invalid header field name {:?}", text.name))?,
            value: value.map_err(|_| format!("invalid header field value {:?}", text.value))?,
        })
    }
}

/// Real servers of a route.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RealServerChoice {
    /// Policy that chooses one for each request.
    pub policy: Policy,
    /// Names of the real servers; all if empty.
    #[serde(default)]
    pub names: Vec<String>,
}

impl Route {
    /// Check the route, which may name `real_servers`. Returns the problem.
    pub(super) fn problem(&self, real_servers: Option<&[&str]>) -> Option<String> {
        if !self.path.starts_with('/') {
            return Some(format!(
                "path: invalid prefix {:?}: must begin with /",
                self.path
            ));
        }
        match (&self.directory, &self.origin, &self.real_servers) {
            (Some(directory), None, None) if !directory.is_dir() => Some(format!(
                "directory: {}: no such directory",
                directory.display()
            )),
            (Some(_), None, None) | (None, Some(_), None) => None,
            (None, None, Some(choice)) => choice.problem(real_servers),
            _ => Some("route: needs exactly one of directory, origin and real_servers".into()),
        }
    }
}

impl RealServerChoice {
    fn problem(&self, known: Option<&[&str]>) -> Option<String> {
        let Some(known) = known else {
            return Some("real_servers: missing [handoff]: list the real servers there".into());
        };
        let unknown = self
            .names
            .iter()
            .find(|name| !known.contains(&name.as_str()))?;
        let known = known.join(", ");
        Some(format!(
            "real_servers: unknown name {unknown:?}: use {known}"
        ))
    }
}
