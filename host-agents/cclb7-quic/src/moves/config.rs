// SPDX-License-Identifier: Apache-2.0
//! Settings of moves.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::Deserialize;

/// The `[moves]` table of the configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Order file, which says where clients should be (`order.rs`). SIGHUP reads it again. Without the file, clients stay.
    pub order: PathBuf,
    /// Most clients per second to which addresses are announced, so that they do not all move at once.
    #[serde(default = "default_per_second")]
    pub per_second: NonZeroU32,
    /// Least time in seconds between two moves of a client. The latest order waits.
    #[serde(default = "default_min_interval_seconds")]
    pub min_interval_seconds: u64,
}

const fn default_per_second() -> NonZeroU32 {
    NonZeroU32::new(100).expect("100 is not zero")
}

const fn default_min_interval_seconds() -> u64 {
    10
}
