//! What the environment says of Artemis.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::{Cache, Instances};

/// Instances.
const INSTANCES: &str = "ARTEMIS";
/// A file of further ones.
const FILE: &str = "ARTEMIS_CONF";
/// Read if `FILE` names none, and if it is there.
const DEFAULT_FILE: &str = "/etc/artemis.conf";
/// A file of the cache; in memory if absent.
const CACHE: &str = "ARTEMIS_CACHE";

/// What a program without a configuration of its own goes by.
#[derive(Debug)]
pub struct Settings {
    /// Of the variable `ARTEMIS`, then of the file.
    pub instances: Instances,
    /// In the file that `ARTEMIS_CACHE` names, or this process's own.
    pub cache: Cache,
}

impl Settings {
    /// Reads the environment; an error names the variable or file and line.
    pub fn from_environment() -> Result<Self, String> {
        let instances = match env::var(INSTANCES) {
            Ok(text) => Instances::parse(&text, INSTANCES)?,
            Err(env::VarError::NotPresent) => Instances::default(),
            Err(env::VarError::NotUnicode(_)) => return Err(format!("{INSTANCES}: is not UTF-8")),
        };
        let named = env::var_os(FILE);
        let path = named.as_deref().map_or(Path::new(DEFAULT_FILE), Path::new);
        let file = match fs::read_to_string(path) {
            Ok(text) => Instances::parse(&text, &path.display().to_string())?,
            Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => {
                Instances::default()
            }
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let cache = env::var_os(CACHE).map_or_else(Cache::default, Cache::shared);
        Ok(Self {
            instances: instances.and(file),
            cache,
        })
    }
}
