// SPDX-License-Identifier: Apache-2.0
//! Collects digest messages into lists (specification, section "DigestEntry"), as a state machine
//! without I/O.

use std::collections::{BTreeMap, HashMap, HashSet};

use prost::Message;
use softswitch_pipeline::Nanos;

use crate::proto::p4::v1::{DigestList, P4Data, digest_entry::Config};

/// Maximum number of messages per digest that wait for a list; further ones are dropped.
const MAX_BUFFERED: usize = 65_536;

/// Maximum number of messages per digest that wait for an acknowledgement. Beyond it, new lists are sent, but not recorded,
/// so their duplicates are not suppressed.
const MAX_UNACKNOWLEDGED: usize = 262_144;

/// The buffers of all digests.
#[derive(Debug, Default)]
pub struct DigestBuffers {
    buffers: BTreeMap<u32, Buffer>,
    last_list_id: u64,
}

#[derive(Debug, Default)]
struct Buffer {
    waiting: Vec<P4Data>,
    since: Nanos,
    /// Encoded messages that wait, or that were sent and not acknowledged.
    known: HashSet<Vec<u8>>,
    unacknowledged: HashMap<u64, SentList>,
}

#[derive(Debug)]
struct SentList {
    messages: Vec<Vec<u8>>,
    forget_at: Nanos,
}

impl DigestBuffers {
    /// Adds a message; returns the list that it completes, if any.
    pub fn push(
        &mut self,
        digest_id: u32,
        config: &Config,
        data: P4Data,
        now: Nanos,
    ) -> Option<DigestList> {
        let buffer = self.buffers.entry(digest_id).or_default();
        if buffer.waiting.len() >= MAX_BUFFERED || !buffer.known.insert(data.encode_to_vec()) {
            return None;
        }
        if buffer.waiting.is_empty() {
            buffer.since = now;
        }
        buffer.waiting.push(data);
        let full = usize::try_from(config.max_list_size)
            .is_ok_and(|max| max > 0 && buffer.waiting.len() >= max);
        if full || config.max_timeout_ns <= 0 {
            return self.flush(digest_id, config, now);
        }
        None
    }

    /// Removes digests that are no longer configured.
    pub fn retain(&mut self, configs: &BTreeMap<u32, Config>) {
        self.buffers.retain(|id, _| configs.contains_key(id));
    }

    /// Returns the due lists, and discards the records of lists that were not acknowledged in time.
    pub fn poll(&mut self, configs: &BTreeMap<u32, Config>, now: Nanos) -> Vec<DigestList> {
        self.retain(configs);
        let mut due = Vec::new();
        for (id, buffer) in &mut self.buffers {
            let expired: Vec<_> = (buffer.unacknowledged.iter())
                .filter(|(_, list)| list.forget_at <= now)
                .map(|(list_id, _)| *list_id)
                .collect();
            expired
                .into_iter()
                .for_each(|list_id| buffer.forget(list_id));
            let timeout = Nanos::try_from(configs[id].max_timeout_ns).unwrap_or(0);
            if !buffer.waiting.is_empty() && now.saturating_sub(buffer.since) >= timeout {
                due.push(*id);
            }
        }
        let mut lists = Vec::new();
        for id in due {
            while let Some(list) = self.flush(id, &configs[&id], now) {
                lists.push(list);
            }
        }
        lists
    }

    /// Returns the time at which [`poll`](Self::poll) must be called next.
    pub fn next_deadline(&self, configs: &BTreeMap<u32, Config>) -> Option<Nanos> {
        let deadlines = self.buffers.iter().map(|(id, buffer)| {
            let timeout = configs.get(id).map_or(0, |c| c.max_timeout_ns);
            let timeout = Nanos::try_from(timeout).unwrap_or(0);
            let send = (!buffer.waiting.is_empty()).then(|| buffer.since.saturating_add(timeout));
            let forget = buffer.unacknowledged.values().map(|list| list.forget_at);
            send.into_iter().chain(forget).min()
        });
        deadlines.flatten().min()
    }

    /// Handles an acknowledgement.
    pub fn acknowledge(&mut self, digest_id: u32, list_id: u64) {
        if let Some(buffer) = self.buffers.get_mut(&digest_id) {
            buffer.forget(list_id);
        }
    }

    /// Discards the records of sent lists, so that duplicates are sent again.
    pub fn forget_sent(&mut self) {
        for buffer in self.buffers.values_mut() {
            let lists: Vec<_> = buffer.unacknowledged.keys().copied().collect();
            lists.into_iter().for_each(|list_id| buffer.forget(list_id));
        }
    }

    /// Returns a list of waiting messages, at most of the configured length; `None` if no message waits.
    fn flush(&mut self, digest_id: u32, config: &Config, now: Nanos) -> Option<DigestList> {
        let buffer = self.buffers.get_mut(&digest_id)?;
        if buffer.waiting.is_empty() {
            return None;
        }
        self.last_list_id += 1;
        let list_id = self.last_list_id;
        let most = match usize::try_from(config.max_list_size) {
            Ok(0) | Err(_) => usize::MAX,
            Ok(size) => size,
        };
        let rest = buffer.waiting.split_off(most.min(buffer.waiting.len()));
        let data = std::mem::replace(&mut buffer.waiting, rest);
        let messages: Vec<_> = data.iter().map(Message::encode_to_vec).collect();
        let list = SentList {
            messages,
            forget_at: now.saturating_add(config.ack_timeout_ns.try_into().unwrap_or(0)),
        };
        buffer.unacknowledged.insert(list_id, list);
        if config.ack_timeout_ns <= 0 || buffer.known.len() > MAX_UNACKNOWLEDGED {
            buffer.forget(list_id);
        }
        Some(DigestList {
            digest_id,
            list_id,
            data,
            timestamp: super::epoch_nanos(),
        })
    }
}

impl Buffer {
    fn forget(&mut self, list_id: u64) {
        if let Some(list) = self.unacknowledged.remove(&list_id) {
            for message in list.messages {
                self.known.remove(&message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::p4::v1::p4_data::Data;

    fn config(max_timeout_ns: i64, max_list_size: i32, ack_timeout_ns: i64) -> Config {
        Config {
            max_timeout_ns,
            max_list_size,
            ack_timeout_ns,
        }
    }

    fn data(n: u8) -> P4Data {
        P4Data {
            data: Some(Data::Bitstring(vec![n].into())),
        }
    }

    #[test]
    fn list_is_sent_when_full_or_due() {
        let mut buffers = DigestBuffers::default();
        let config = config(1000, 2, 0);
        let all = BTreeMap::from([(1, config)]);
        assert_eq!(buffers.push(1, &config, data(1), 0), None);
        assert_eq!(buffers.push(1, &config, data(1), 1), None, "duplicate");
        let list = buffers.push(1, &config, data(2), 2).unwrap();
        assert_eq!((list.list_id, list.data.len()), (1, 2));
        buffers.push(1, &config, data(3), 100);
        assert_eq!(buffers.next_deadline(&all), Some(1100));
        assert_eq!(buffers.poll(&all, 1099), []);
        assert_eq!(buffers.poll(&all, 1100)[0].list_id, 2);
    }

    #[test]
    fn duplicate_is_suppressed_until_acknowledgement_or_time_out() {
        let mut buffers = DigestBuffers::default();
        let config = config(0, 1, 1000);
        let all = BTreeMap::from([(1, config)]);
        let first = buffers.push(1, &config, data(1), 0).unwrap();
        assert_eq!(buffers.push(1, &config, data(1), 10), None);
        buffers.acknowledge(1, first.list_id);
        buffers.push(1, &config, data(1), 20).unwrap();
        assert_eq!(buffers.push(1, &config, data(1), 30), None);
        buffers.poll(&all, 1020);
        assert!(buffers.push(1, &config, data(1), 1020).is_some());
    }

    #[test]
    fn lists_obey_reduced_maximum_length() {
        let mut buffers = DigestBuffers::default();
        for n in 0..5 {
            buffers.push(1, &config(1000, 9, 0), data(n), 0);
        }
        let all = BTreeMap::from([(1, config(1000, 2, 0))]);
        let lists = buffers.poll(&all, 1000);
        let sizes: Vec<_> = lists.iter().map(|list| list.data.len()).collect();
        assert_eq!(sizes, [2, 2, 1]);
    }

    #[test]
    fn unconfigured_digest_is_removed() {
        let mut buffers = DigestBuffers::default();
        buffers.push(1, &config(1000, 0, 0), data(1), 0);
        assert_eq!(buffers.poll(&BTreeMap::new(), 5000), []);
        assert!(buffers.buffers.is_empty());
    }
}
