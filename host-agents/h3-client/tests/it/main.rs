// SPDX-License-Identifier: Apache-2.0
//! `frontage-h3-client` and `frontage-get` against `frontage-cclb7-quic`.

mod get_by_name;
mod get_through_proxy;
mod h3_client;
mod losses;
mod moves;
#[allow(dead_code, reason = "these tests use only part of it")]
#[path = "../../../quicsocks/tests/it/testbed.rs"]
mod quicsocks_testbed;
mod testbed;
