// SPDX-License-Identifier: Apache-2.0
use super::*;
use frontage_quic_wire::PacketNumberSet;

mod incoming;
mod nonces;
mod outgoing;
mod resume;
mod shared_numbers;
