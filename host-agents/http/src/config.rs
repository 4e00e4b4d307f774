// SPDX-License-Identifier: Apache-2.0
//! Configuration that the agents share (TOML). Errors name file, line and reason.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use frontage_daemon::config::locate;
use toml::Spanned;

mod congestion;
mod keys;
mod route;
mod units;

pub use congestion::Congestion;
pub use keys::load as load_keys;
pub use route::{HeaderMatch, RealServerChoice, Route};
pub use units::{Bandwidth, Bytes, Prefix, origin};

/// Name of the standard output in place of the access log's file.
pub const STANDARD_OUTPUT: &str = "-";

/// Make the path `file` in the configuration at `path`, with this `text`, relative to the configuration's folder.
///
/// # Errors
/// If the file does not exist.
pub fn resolve(file: &mut Spanned<PathBuf>, path: &Path, text: &str) -> Result<()> {
    *file.get_mut() = folder(path).join(file.get_ref());
    if !file.get_ref().is_file() {
        let reason = format!("{}: no such file", file.get_ref().display());
        bail!("{}", locate(path, text, file.span(), &reason));
    }
    Ok(())
}

/// Make the access log's path relative to the folder of the configuration at `path`.
pub fn resolve_log(log: &mut PathBuf, path: &Path) {
    if log.as_os_str() != STANDARD_OUTPUT {
        *log = folder(path).join(&*log);
    }
}

/// Check the routes of the configuration at `path`, with this `text`, and make their directories relative to its folder.
/// The routes may name `real_servers`.
///
/// # Errors
/// If a route is invalid or missing.
pub fn check_routes(
    routes: &mut [Spanned<Route>],
    real_servers: Option<&[&str]>,
    path: &Path,
    text: &str,
) -> Result<()> {
    if routes.is_empty() {
        bail!(
            "{}: route: missing: add at least one [[route]], or every response is 404",
            path.display()
        );
    }
    for route in routes {
        let span = route.span();
        let route = route.get_mut();
        if let Some(directory) = &mut route.directory {
            *directory = folder(path).join(&directory);
        }
        if let Some(reason) = route.problem(real_servers) {
            bail!("{}", locate(path, text, span, &reason));
        }
    }
    Ok(())
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}
