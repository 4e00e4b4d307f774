// SPDX-License-Identifier: Apache-2.0
//! Ports that receive packets from pcap files and send them to pcap files (`--use-files`), with the file names of
//! `simple_switch`: NAME_in.pcap and NAME_out.pcap in the current directory.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use pcap_file::pcap::PcapReader;

use super::{Flushed, Receive, Transmit, capture, loopback};

/// Pause between packets of different ports, so that the switch processes them in the order of their time stamps.
const SETTLING: Duration = Duration::from_millis(2);

/// Pause before a further attempt to pass a packet to a port with too many of them.
const FULL_PORT_PAUSE: Duration = Duration::from_millis(1);

/// The packets of one port's file, and the way into the port.
pub struct Feed {
    frames: Vec<(Duration, Vec<u8>)>,
    port: Box<dyn Transmit>,
}

/// A port between two files.
pub struct FilePort {
    /// The receiving side, which stays empty until [`play`].
    pub receiver: Box<dyn Receive>,
    /// The sending side.
    pub transmitter: Box<dyn Transmit>,
    /// The packets to receive.
    pub feed: Feed,
}

/// Opens the files of a port.
///
/// # Errors
/// If a file cannot be read or created, or is not a pcap file; the error names it.
pub fn open(name: &str) -> io::Result<FilePort> {
    let path = format!("{name}_in.pcap");
    let frames = read(Path::new(&path))
        .map_err(|e| io::Error::new(e.kind(), format!("cannot read {path}: {e}")))?;
    let (receiver, port) = loopback()?;
    let transmitter = capture::sent(Box::<Discard>::default(), Path::new("."), name)?;
    let feed = Feed {
        frames,
        port: Box::new(port),
    };
    Ok(FilePort {
        receiver: Box::new(receiver),
        transmitter,
        feed,
    })
}

fn read(path: &Path) -> io::Result<Vec<(Duration, Vec<u8>)>> {
    let mut reader = PcapReader::new(File::open(path)?).map_err(io::Error::other)?;
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(io::Error::other)?;
        frames.push((packet.timestamp, packet.data.into_owned()));
    }
    Ok(frames)
}

/// Receives the packets of all files, in the order of their time stamps, after a delay; blocks until the last one.
pub fn play(mut feeds: Vec<Feed>, delay: Duration) {
    std::thread::sleep(delay);
    let mut order: Vec<(Duration, usize, usize)> = Vec::new();
    for (port, feed) in feeds.iter().enumerate() {
        let times = feed.frames.iter().enumerate();
        order.extend(times.map(|(i, (time, _))| (*time, port, i)));
    }
    order.sort_by_key(|(time, ..)| *time);
    let mut last = None;
    for (_, port, i) in order {
        if last.replace(port).is_some_and(|last| last != port) {
            std::thread::sleep(SETTLING);
        }
        let Feed { frames, port } = &mut feeds[port];
        loop {
            port.send(&frames[i].1);
            if port.flush().busy == 0 {
                break;
            }
            std::thread::sleep(FULL_PORT_PAUSE);
        }
    }
}

/// The sending side of a port without a network: its capture is the output.
#[derive(Default)]
struct Discard {
    flushed: Flushed,
}

impl Transmit for Discard {
    fn send(&mut self, frame: &[u8]) {
        self.flushed.sent += 1;
        self.flushed.sent_bytes += frame.len() as u64;
    }

    fn flush(&mut self) -> Flushed {
        std::mem::take(&mut self.flushed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_received_in_the_order_of_their_times() {
        let feed = |times: &[u64]| {
            let (receiver, port) = loopback().unwrap();
            let frames = times
                .iter()
                .map(|t| (Duration::from_nanos(*t), vec![*t as u8]));
            let feed = Feed {
                frames: frames.collect(),
                port: Box::new(port),
            };
            (receiver, feed)
        };
        let ((mut first, one), (mut second, two)) = (feed(&[1, 2, 5]), feed(&[3, 4]));
        play(vec![one, two], Duration::ZERO);
        let received = |receiver: &mut dyn Receive| {
            let mut frames = Vec::new();
            assert!(receiver.fill());
            receiver.frames(&mut |frame| frames.push(frame[0]));
            frames
        };
        assert_eq!(received(&mut first), [1, 2, 5]);
        assert_eq!(received(&mut second), [3, 4]);
    }

    #[test]
    fn errors_name_the_file() {
        let error = open("/nonexistent/p1").err().unwrap().to_string();
        assert!(
            error.starts_with("cannot read /nonexistent/p1_in.pcap: "),
            "{error}"
        );
    }
}
