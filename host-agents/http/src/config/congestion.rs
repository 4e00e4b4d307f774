// SPDX-License-Identifier: Apache-2.0
//! Congestion control in configurations.

use serde::Deserialize;

/// Congestion control of responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// CUBIC (RFC 9438), which takes lost packets for congestion.
    #[default]
    Cubic,
    /// BBR (draft-ietf-ccwg-bbr), which measures the bandwidth of the path.
    Bbr,
}
