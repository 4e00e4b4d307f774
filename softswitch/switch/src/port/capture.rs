// SPDX-License-Identifier: Apache-2.0
//! Captures of received and sent frames in libpcap files, with the file names of `simple_switch --pcap`.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use byteorder_slice::LittleEndian;
use pcap_file::pcap::{PcapHeader, PcapPacket};
use pcap_file::{DataLink, Endianness, TsResolution};
use softswitch_pipeline::MAX_FRAME;

use super::{Flushed, PortError, Receive, Transmit};

/// Also writes received frames to `NAME_in.pcap` in a directory, which is created if necessary. Time stamps are the
/// wall-clock times, in nanoseconds, at which frames are taken. After a write error, which is logged, the capture ends
/// and the port continues.
///
/// # Errors
/// If the file cannot be created; the error names it.
pub fn received(
    receiver: Box<dyn Receive>,
    dir: &Path,
    name: &str,
) -> io::Result<Box<dyn Receive>> {
    let dump = Dump::begin(dir, &format!("{name}_in.pcap"))?;
    Ok(Box::new(Received { receiver, dump }))
}

/// Also writes sent frames to `NAME_out.pcap`, in the same way, when a frame is passed to the interface.
///
/// # Errors
/// If the file cannot be created; the error names it.
pub fn sent(
    transmitter: Box<dyn Transmit>,
    dir: &Path,
    name: &str,
) -> io::Result<Box<dyn Transmit>> {
    let dump = Dump::begin(dir, &format!("{name}_out.pcap"))?;
    Ok(Box::new(Sent { transmitter, dump }))
}

struct Received {
    receiver: Box<dyn Receive>,
    dump: Dump,
}

impl Receive for Received {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.receiver.poll_fd()
    }

    fn fill(&mut self) -> bool {
        self.receiver.fill()
    }

    fn frames(&mut self, each: &mut dyn FnMut(&[u8])) {
        let dump = &mut self.dump;
        self.receiver.frames(&mut |frame| {
            dump.add(frame);
            each(frame);
        });
        dump.flush();
    }

    fn failure(&mut self) -> Option<PortError> {
        self.receiver.failure()
    }

    fn drops(&mut self) -> u64 {
        self.receiver.drops()
    }
}

struct Sent {
    transmitter: Box<dyn Transmit>,
    dump: Dump,
}

impl Transmit for Sent {
    fn send(&mut self, frame: &[u8]) {
        self.dump.add(frame);
        self.transmitter.send(frame);
    }

    fn flush(&mut self) -> Flushed {
        self.dump.flush();
        self.transmitter.flush()
    }
}

/// A capture file.
struct Dump {
    path: PathBuf,
    /// `None` after a write error.
    file: Option<File>,
    pending: Vec<u8>,
}

impl Dump {
    fn begin(dir: &Path, file: &str) -> io::Result<Self> {
        let named = |e: io::Error, path: &Path| {
            io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display()))
        };
        std::fs::create_dir_all(dir).map_err(|e| named(e, dir))?;
        let path = dir.join(file);
        Self::create(path.clone()).map_err(|e| named(e, &path))
    }

    fn create(path: PathBuf) -> io::Result<Self> {
        let header = PcapHeader {
            endianness: Endianness::Little,
            ts_resolution: TsResolution::NanoSecond,
            datalink: DataLink::ETHERNET,
            snaplen: MAX_FRAME as u32,
            ..PcapHeader::default()
        };
        let mut pending = Vec::new();
        header.write_to(&mut pending).map_err(io::Error::other)?;
        let mut dump = Self {
            file: Some(File::create(&path)?),
            path,
            pending,
        };
        // Flushed, so that a reader finds the file header before the first frame.
        dump.write()?;
        Ok(dump)
    }

    fn add(&mut self, frame: &[u8]) {
        if self.file.is_none() {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or(Duration::ZERO);
        let packet = PcapPacket::new(now, frame.len() as u32, frame);
        let resolution = TsResolution::NanoSecond;
        let written =
            packet.write_to::<_, LittleEndian>(&mut self.pending, resolution, MAX_FRAME as u32);
        if let Err(e) = written {
            self.give_up(&e);
        }
    }

    fn write(&mut self) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(&self.pending)?;
        }
        self.pending.clear();
        Ok(())
    }

    fn flush(&mut self) {
        if let Err(e) = self.write() {
            self.give_up(&e);
        }
    }

    fn give_up(&mut self, error: &dyn std::error::Error) {
        let path = self.path.display();
        tracing::error!("cannot write {path}: {error}: the capture ends, the port continues");
        self.file = None;
        self.pending = Vec::new();
    }
}
