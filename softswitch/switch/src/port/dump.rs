// SPDX-License-Identifier: Apache-2.0
//! The first bytes of received and sent frames in the log (`--dump-packet-data`).

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use super::observed::{self, Observer};
use super::{Receive, Transmit};
use crate::log::{Log, LogLevel};

/// Where a port's frames are logged.
#[derive(Debug, Clone)]
pub struct Dump {
    /// The log.
    pub log: Arc<Log>,
    /// The port's number.
    pub port: u32,
    /// Maximum number of logged bytes of a frame.
    pub bytes: usize,
}

impl Dump {
    fn add(&self, event: &str, frame: &[u8]) {
        let (length, port) = (frame.len(), self.port);
        let data = Hex(&frame[..length.min(self.bytes)]);
        self.log.line(
            LogLevel::Info,
            format_args!("{event} packet of length {length} on port {port}: {data}"),
        );
    }

    /// Also logs received frames.
    pub fn received(self, receiver: Box<dyn Receive>) -> Box<dyn Receive> {
        let event = "Received";
        observed::received(receiver, Direction { dump: self, event })
    }

    /// Also logs sent frames.
    pub fn sent(self, transmitter: Box<dyn Transmit>) -> Box<dyn Transmit> {
        let event = "Sending";
        observed::sent(transmitter, Direction { dump: self, event })
    }
}

struct Hex<'a>(&'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Logs the frames of one direction.
struct Direction {
    dump: Dump,
    event: &'static str,
}

impl Observer for Direction {
    fn record(&mut self, frame: &[u8]) {
        self.dump.add(self.event, frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::loopback;

    #[test]
    fn received_and_sent_frames_are_logged() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::file(LogLevel::Info, &dir.path().join("log"), 1 << 20, 1).unwrap();
        let dump = Dump {
            log,
            port: 7,
            bytes: 3,
        };
        let (receiver, transmitter) = loopback().unwrap();
        let mut receiver = dump.clone().received(Box::new(receiver));
        let mut transmitter = dump.sent(Box::new(transmitter));
        transmitter.send(&[0, 1, 0xab, 3]);
        assert_eq!(transmitter.flush().sent, 1);
        assert!(receiver.fill());
        let mut frames = 0;
        receiver.frames(&mut |_| frames += 1);
        assert_eq!(frames, 1);
        let text = std::fs::read_to_string(dir.path().join("log.txt")).unwrap();
        let messages: Vec<&str> = text
            .lines()
            .map(|line| line.rsplit("] ").next().unwrap())
            .collect();
        let expected = ["Sending", "Received"]
            .map(|event| format!("{event} packet of length 4 on port 7: 0001ab"));
        assert_eq!(messages, expected);
    }
}
