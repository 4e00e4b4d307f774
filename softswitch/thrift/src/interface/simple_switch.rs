// SPDX-License-Identifier: Apache-2.0
//! The service `simple_switch`.

use std::convert::Infallible;

use super::codes::MirroringError;
use super::records::MirroringSession;
use crate::declare::functions;

functions! {
    /// Mirroring sessions, which are v1model's clone sessions.
    Mirroring in "simple_switch" {
        /// Sets a session to one port; returns 1, or 0 if it cannot.
        mirroring_mapping_add(1 mirror_id: i32, 2 egress_port: i32) -> i32, Infallible;
        /// Deletes a session; returns 1 if it existed.
        mirroring_mapping_delete(1 mirror_id: i32) -> i32, Infallible;
        /// Returns the port of a session, or -1.
        mirroring_mapping_get_egress_port(1 mirror_id: i32) -> i32, Infallible;
        /// Sets a session.
        mirroring_session_add(1 mirror_id: i32, 2 config: MirroringSession) -> (), MirroringError;
        /// Deletes a session.
        mirroring_session_delete(1 mirror_id: i32) -> (), MirroringError;
        /// Returns a session.
        mirroring_session_get(1 mirror_id: i32) -> MirroringSession, MirroringError;
    }
}

functions! {
    /// Egress queues. The functions return 0, or 1 if the port or the priority does not exist.
    Queues in "simple_switch" {
        /// Limits one priority of a port, in packets.
        set_egress_priority_queue_depth(1 port: i32, 2 priority: i32, 3 depth: i32) -> i32, Infallible;
        /// Limits each priority of a port, in packets.
        set_egress_queue_depth(1 port: i32, 2 depth: i32) -> i32, Infallible;
        /// Limits each priority of all ports, in packets.
        set_all_egress_queue_depths(1 depth: i32) -> i32, Infallible;
        /// Sets the rate of one priority of a port, in packets per second; 0 means unlimited.
        set_egress_priority_queue_rate(1 port: i32, 2 priority: i32, 3 rate: i64) -> i32, Infallible;
        /// Sets the rate of each priority of a port, in packets per second; 0 means unlimited.
        set_egress_queue_rate(1 port: i32, 2 rate: i64) -> i32, Infallible;
        /// Sets the rate of each priority of all ports, in packets per second; 0 means unlimited.
        set_all_egress_queue_rates(1 rate: i64) -> i32, Infallible;
    }
}

functions! {
    /// The switch's clock.
    Clock in "simple_switch" {
        /// Returns the microseconds since the switch started.
        get_time_elapsed_us() -> i64, Infallible;
        /// Returns the microseconds since 1970.
        get_time_since_epoch_us() -> i64, Infallible;
    }
}
