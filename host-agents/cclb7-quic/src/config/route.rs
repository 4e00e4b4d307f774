//! Routes: which requests, and what answers them.

use std::path::PathBuf;

use http::{HeaderName, HeaderValue, Uri};
use serde::Deserialize;

use super::origin;
use crate::handoff::Policy;

/// A path's prefix, and what answers there.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Prefix, from `/` on.
    pub path: String,
    /// Name of the host that requests are for, without a port; any if absent.
    pub host: Option<String>,
    /// A field of the header that requests have; any if absent.
    pub header: Option<Field>,
    /// Folder whose files are served; the path's prefix is not part of their names.
    pub directory: Option<PathBuf>,
    /// Server to which requests go over HTTP/1.1, with the path as it is.
    #[serde(default, deserialize_with = "origin")]
    pub origin: Option<Uri>,
    /// Real servers that answer clients themselves.
    pub real_servers: Option<RealServers>,
}

/// A field of a request's header.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Text")]
pub struct Field {
    /// Its name.
    pub name: HeaderName,
    /// Its value, all of it.
    pub value: HeaderValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    name: String,
    value: String,
}

impl TryFrom<Text> for Field {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        let name = text.name.parse();
        let value = text.value.parse();
        Ok(Self {
            name: name.map_err(|_| format!("{:?} is no field's name", text.name))?,
            value: value.map_err(|_| format!("{:?} is no field's value", text.value))?,
        })
    }
}

/// Those of [`crate::handoff::Config`] that a route may use.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RealServers {
    /// How one is chosen.
    pub policy: Policy,
    /// Their names; all of them if there are none.
    #[serde(default)]
    pub names: Vec<String>,
}

impl Route {
    /// What is wrong with it; it may name these `real_servers`.
    pub(super) fn problem(&self, real_servers: Option<&[&str]>) -> Option<String> {
        if !self.path.starts_with('/') {
            return Some(format!("path {:?} does not begin with /", self.path));
        }
        match (&self.directory, &self.origin, &self.real_servers) {
            (Some(directory), None, None) if !directory.is_dir() => {
                Some(format!("{} is no directory", directory.display()))
            }
            (Some(_), None, None) | (None, Some(_), None) => None,
            (None, None, Some(chosen)) => chosen.problem(real_servers),
            _ => Some("a route needs one of directory, origin and real_servers".into()),
        }
    }
}

impl RealServers {
    fn problem(&self, known: Option<&[&str]>) -> Option<String> {
        let Some(known) = known else {
            return Some("real_servers: needs a [handoff] that lists them".into());
        };
        let unknown = self
            .names
            .iter()
            .find(|name| !known.contains(&name.as_str()))?;
        let known = known.join(", ");
        Some(format!("real_servers: {unknown:?} is none of {known}"))
    }
}
