// SPDX-License-Identifier: Apache-2.0
//! The settings of Artemis in a process's environment.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::{Cache, Instances};

/// The variable that holds instances.
const INSTANCES: &str = "ARTEMIS";
/// The variable that names a file with further instances.
const FILE: &str = "ARTEMIS_CONF";
/// The file that is read if it exists and `FILE` does not name another one.
const DEFAULT_FILE: &str = "/etc/artemis.conf";
/// The variable that names the file of the cache. Without it, the cache is in memory.
const CACHE: &str = "ARTEMIS_CACHE";

/// The settings of a program that has no configuration of its own for Artemis.
#[derive(Debug)]
pub struct Settings {
    /// Instances of the variable `ARTEMIS`, then those of the file.
    pub instances: Instances,
    /// The cache in the file that `ARTEMIS_CACHE` names, or one in memory.
    pub cache: Cache,
}

impl Settings {
    /// Read the environment.
    ///
    /// # Errors
    /// If a setting is invalid; the error names the variable or file, and the line.
    pub fn from_environment() -> Result<Self, String> {
        let instances = match env::var(INSTANCES) {
            Ok(text) => Instances::parse(&text, INSTANCES)?,
            Err(env::VarError::NotPresent) => Instances::default(),
            Err(env::VarError::NotUnicode(_)) => return Err(format!("{INSTANCES}: not UTF-8")),
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
