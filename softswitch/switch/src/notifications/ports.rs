// SPDX-License-Identifier: Apache-2.0
//! Messages about ports that went up or down, in BMv2's format.

use std::collections::BTreeMap;

use super::header;
use crate::dataplane::PortStatus;

/// A port's number, and whether it is up.
type Change = (u32, bool);

/// The states of the ports that subscribers know.
#[derive(Debug, Default)]
pub struct States(BTreeMap<u32, bool>);

impl States {
    /// Replaces the states, and returns the ports that are up or down since then. Ports begin as down ones, and subscribers
    /// do not learn that a port was removed, as in BMv2.
    pub fn update(&mut self, ports: &[PortStatus]) -> Vec<Change> {
        let now: BTreeMap<_, _> = ports.iter().map(|port| (port.number, port.up)).collect();
        let before = std::mem::replace(&mut self.0, now);
        let was_up = |number: &u32| before.get(number).copied().unwrap_or(false);
        let now = self.0.iter().map(|(&number, &is_up)| (number, is_up));
        now.filter(|(number, is_up)| was_up(number) != *is_up)
            .collect()
    }
}

/// Encodes a message as BMv2 does: topic, device, number of ports and 16 zero bytes, then number and state of each port, in
/// little-endian order without gaps. A state is 1 for up, and 0 for down.
pub fn encode(changes: &[Change], device_id: u64) -> Vec<u8> {
    let mut bytes = header::begin(*b"PRT|", device_id);
    bytes.extend((changes.len() as u32).to_le_bytes()); // few ports
    bytes.resize(header::LEN, 0);
    for (number, is_up) in changes {
        bytes.extend(number.to_le_bytes());
        bytes.extend(u32::from(*is_up).to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_has_layout_of_bmv2() {
        let expected: [&[u8]; 8] = [
            b"PRT|",
            &[7, 0, 0, 0, 0, 0, 0, 0],
            &[2, 0, 0, 0],
            &[0; 16],
            &[1, 0, 0, 0],
            &[0, 0, 0, 0],
            &[0x2c, 1, 0, 0],
            &[1, 0, 0, 0],
        ];
        assert_eq!(encode(&[(1, false), (300, true)], 7), expected.concat());
    }

    #[test]
    fn changes_are_reported_once() {
        let ports = |states: &[Change]| -> Vec<PortStatus> {
            let status = |&(number, up)| PortStatus {
                number,
                name: String::new(),
                up,
            };
            states.iter().map(status).collect()
        };
        let mut states = States::default();
        let both = ports(&[(1, true), (2, false)]);
        assert_eq!(states.update(&both), [(1, true)]);
        assert_eq!(states.update(&both), []);
        let changed = ports(&[(1, false), (2, true)]);
        assert_eq!(states.update(&changed), [(1, false), (2, true)]);
        assert_eq!(states.update(&ports(&[(1, false)])), [], "removed");
        assert_eq!(states.update(&changed), [(2, true)], "added again");
    }
}
