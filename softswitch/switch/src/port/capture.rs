//! Captures: what a port receives and sends, in files of libpcap's format.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use byteorder_slice::LittleEndian;
use pcap_file::pcap::{PcapHeader, PcapPacket};
use pcap_file::{DataLink, Endianness, TsResolution};
use softswitch_pipeline::MAX_FRAME;

use super::{Flushed, Port, PortError};

/// A port whose frames are also written to `NAME_in.pcap` and `NAME_out.pcap`, as `simple_switch --pcap`
/// calls them. Times are nanoseconds of the wall clock, when a frame is taken and when it is handed to the
/// interface. A file that cannot be written is given up with an error in the log; the port goes on.
pub struct Capture {
    port: Box<dyn Port>,
    received: Dump,
    sent: Dump,
}

impl Capture {
    /// Begins new files in `dir`, which it makes if need be.
    ///
    /// # Errors
    /// A file cannot be made; the error names it.
    pub fn new(port: Box<dyn Port>, dir: &Path, name: &str) -> io::Result<Self> {
        let named = |e: io::Error, path: &Path| {
            io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display()))
        };
        std::fs::create_dir_all(dir).map_err(|e| named(e, dir))?;
        let dump = |way| {
            let path = dir.join(format!("{name}_{way}.pcap"));
            Dump::create(path.clone()).map_err(|e| named(e, &path))
        };
        Ok(Self {
            port,
            received: dump("in")?,
            sent: dump("out")?,
        })
    }
}

impl Port for Capture {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.port.poll_fd()
    }

    fn fill(&mut self) -> Result<usize, PortError> {
        self.port.fill()
    }

    fn frames(&mut self, each: &mut dyn FnMut(&[u8])) {
        let received = &mut self.received;
        self.port.frames(&mut |frame| {
            received.add(frame);
            each(frame);
        });
        received.flush();
    }

    fn send(&mut self, frame: Vec<u8>) {
        self.sent.add(&frame);
        self.port.send(frame);
    }

    fn flush(&mut self, spare: &mut Vec<Vec<u8>>) -> Flushed {
        self.sent.flush();
        self.port.flush(spare)
    }

    fn kernel_drops(&mut self) -> u64 {
        self.port.kernel_drops()
    }
}

/// A file of frames.
struct Dump {
    path: PathBuf,
    /// None after a failure.
    file: Option<File>,
    pending: Vec<u8>,
}

impl Dump {
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
        // Readers may come before the first frame does.
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
        tracing::error!("cannot write {path}: {error}; the capture ends, the port goes on");
        self.file = None;
        self.pending = Vec::new();
    }
}
