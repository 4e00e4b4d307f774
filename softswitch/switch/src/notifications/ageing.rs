// SPDX-License-Identifier: Apache-2.0
//! Messages about idle entries, in BMv2's format.

use super::header;

/// The idle entries of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The table's id in the JSON.
    pub table_id: u32,
    /// The number of the message.
    pub buffer_id: u64,
    /// The handles of the entries.
    pub handles: Vec<u32>,
}

impl Message {
    /// Encodes the message as BMv2 does: topic, device, context, buffer, table and number of entries in little-endian
    /// order without gaps, then the handles.
    pub fn encode(&self, device_id: u64) -> Vec<u8> {
        let mut bytes = header::begin(*b"AGE|", device_id);
        bytes.extend(header::CONTEXT.to_le_bytes());
        bytes.extend(self.buffer_id.to_le_bytes());
        bytes.extend(self.table_id.to_le_bytes());
        bytes.extend((self.handles.len() as u32).to_le_bytes()); // a table has fewer entries
        bytes.extend(self.handles.iter().flat_map(|handle| handle.to_le_bytes()));
        bytes
    }
}

/// The numbers of a program's messages.
#[derive(Debug, Default)]
pub struct Buffers {
    next: u64,
}

impl Buffers {
    /// Returns a message for each table. `idle` are the tables' ids and the handles of their idle entries, by table.
    pub fn messages(&mut self, idle: impl Iterator<Item = (u32, u32)>) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        for (table_id, handle) in idle {
            match messages.last_mut() {
                Some(message) if message.table_id == table_id => message.handles.push(handle),
                _ => {
                    messages.push(Message {
                        table_id,
                        buffer_id: self.next,
                        handles: vec![handle],
                    });
                    self.next += 1;
                }
            }
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_has_layout_of_bmv2() {
        let message = Message {
            table_id: 2,
            buffer_id: 3,
            handles: vec![0x0100_0005, 6],
        };
        let expected: [&[u8]; 8] = [
            b"AGE|",
            &[7, 0, 0, 0, 0, 0, 0, 0],
            &[0; 4],
            &[3, 0, 0, 0, 0, 0, 0, 0],
            &[2, 0, 0, 0],
            &[2, 0, 0, 0],
            &[5, 0, 0, 1],
            &[6, 0, 0, 0],
        ];
        let bytes = message.encode(7);
        assert_eq!(bytes, expected.concat());
        assert_eq!(bytes.len(), header::LEN + 8);
    }

    #[test]
    fn each_table_has_its_message() {
        let mut buffers = Buffers::default();
        let sent = buffers.messages([(4, 0), (4, 1), (9, 0)].into_iter());
        let sent = sent.into_iter();
        let sent: Vec<_> = sent.map(|m| (m.buffer_id, m.table_id, m.handles)).collect();
        assert_eq!(sent, [(0, 4, vec![0, 1]), (1, 9, vec![0])]);
        assert_eq!(buffers.messages([(4, 1)].into_iter())[0].buffer_id, 2);
        assert_eq!(buffers.messages([].into_iter()), []);
    }
}
