// SPDX-License-Identifier: Apache-2.0
//! Captures of received and sent frames in libpcap files, with the file names of `simple_switch --pcap`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use byteorder_slice::LittleEndian;
use pcap_file::pcap::{PcapHeader, PcapPacket};
use pcap_file::{DataLink, Endianness, TsResolution};
use softswitch_pipeline::MAX_FRAME;

use super::observed::{self, Observer};
use super::{Receive, Transmit};

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
    let file = CaptureFile::begin(dir, &format!("{name}_in.pcap"))?;
    Ok(observed::received(receiver, file))
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
    let file = CaptureFile::begin(dir, &format!("{name}_out.pcap"))?;
    Ok(observed::sent(transmitter, file))
}

struct CaptureFile {
    path: PathBuf,
    /// `None` after a write error.
    file: Option<File>,
    pending: Vec<u8>,
}

impl CaptureFile {
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
        let mut capture = Self {
            file: Some(File::create(&path)?),
            path,
            pending,
        };
        // Flushed, so that a reader finds the file header before the first frame.
        capture.write()?;
        Ok(capture)
    }

    fn write(&mut self) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(&self.pending)?;
        }
        self.pending.clear();
        Ok(())
    }

    fn give_up(&mut self, error: &dyn std::error::Error) {
        let path = self.path.display();
        tracing::error!("cannot write {path}: {error}: the capture ends, the port continues");
        self.file = None;
        self.pending = Vec::new();
    }
}

impl Observer for CaptureFile {
    fn record(&mut self, frame: &[u8]) {
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

    fn end_batch(&mut self) {
        if let Err(e) = self.write() {
            self.give_up(&e);
        }
    }
}
