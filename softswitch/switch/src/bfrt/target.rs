// SPDX-License-Identifier: Apache-2.0
//! The pipes of the device, and the targets that messages name.

use crate::proto::bfrt::TargetDevice;

/// All pipes of a target.
pub const ALL_PIPES: u32 = 0xffff;

/// All directions or parsers of a target.
const ALL: u32 = 0xff;

/// Returns the target that is the whole device.
pub fn whole_device() -> TargetDevice {
    TargetDevice {
        device_id: 0,
        pipe_id: ALL_PIPES,
        direction: ALL,
        prsr_id: ALL,
    }
}

/// Returns the target that is one pipe.
pub fn pipe(pipe_id: u32) -> TargetDevice {
    TargetDevice {
        pipe_id,
        ..whole_device()
    }
}
