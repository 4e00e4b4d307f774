// SPDX-License-Identifier: Apache-2.0
//! Where a client's packets arrive under a server's prefix.

use std::net::IpAddr;

use frontage_quic_signals::prefix::CookiePrefix;

use crate::migration::LocalAddress;

/// Classify the server's address `at` to which a client sent a packet.
pub(super) fn classify(prefix: &CookiePrefix, at: IpAddr) -> LocalAddress {
    match at {
        IpAddr::V6(v6) if prefix.contains(v6) => prefix
            .keys
            .epoch_of_static(v6.to_bits() as u64)
            .map_or(LocalAddress::Vip, LocalAddress::Cookie),
        _ => LocalAddress::Plain(at),
    }
}
