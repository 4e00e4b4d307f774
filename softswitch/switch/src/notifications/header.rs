// SPDX-License-Identifier: Apache-2.0
//! The beginning of all messages.

/// Length in bytes of a message's header, whatever the topic.
pub const LEN: usize = 32;

/// Number of the program's context: there is one.
pub const CONTEXT: u32 = 0;

/// Begins the header of a message with its topic and the device's id.
pub fn begin(topic: [u8; 4], device_id: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2 * LEN);
    bytes.extend(topic);
    bytes.extend(device_id.to_le_bytes());
    bytes
}
