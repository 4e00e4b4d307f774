// SPDX-License-Identifier: Apache-2.0
//! The log of `--log-console` and `--log-file`: lines in the form of BMv2's log, for packets and for events.

mod events;
mod file;
mod packets;
mod values;

use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use clap::ValueEnum;
use parking_lot::Mutex;

use file::RotatingFile;

pub use events::Events;
pub use packets::PacketLog;

/// Lowest level of the logged lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// Most steps of packets.
    Debug,
    /// Events.
    Info,
    /// Possible faults.
    Warn,
    /// Faults.
    Error,
    /// Nothing.
    Off,
}

/// A log that threads share.
#[derive(Debug)]
pub struct Log {
    level: LogLevel,
    sink: Mutex<Sink>,
}

#[derive(Debug)]
enum Sink {
    Console,
    File(RotatingFile),
}

impl Log {
    /// Logs to standard output.
    pub fn console(level: LogLevel) -> Arc<Self> {
        Self::new(level, Sink::Console)
    }

    /// Logs to `PATH.txt`. When it has become longer than `max_size` bytes, it is renamed to `PATH.1.txt`, and so on up to
    /// `max_files` older files.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn file(
        level: LogLevel,
        path: &Path,
        max_size: u64,
        max_files: u32,
    ) -> io::Result<Arc<Self>> {
        let file = RotatingFile::open(path, max_size, max_files)?;
        Ok(Self::new(level, Sink::File(file)))
    }

    fn new(level: LogLevel, sink: Sink) -> Arc<Self> {
        let sink = Mutex::new(sink);
        Arc::new(Self { level, sink })
    }

    /// Returns true if lines of this level are logged.
    pub fn is_on(&self, level: LogLevel) -> bool {
        level >= self.level && self.level != LogLevel::Off
    }

    /// Returns an empty block of lines, which begin with the current time and the number of this thread.
    fn lines(&self) -> Lines<'_> {
        Lines {
            log: self,
            time: local_time(SystemTime::now()),
            thread: nix::unistd::gettid().as_raw(),
            text: String::new(),
        }
    }

    /// Logs one line.
    pub fn line(&self, level: LogLevel, message: impl Display) {
        let mut lines = self.lines();
        lines.push(level, message);
        lines.write();
    }
}

/// Lines to be written together.
struct Lines<'a> {
    log: &'a Log,
    time: String,
    thread: i32,
    text: String,
}

impl Lines<'_> {
    fn push(&mut self, level: LogLevel, message: impl Display) {
        if self.log.is_on(level) {
            let (time, letter, thread) = (&self.time, letter(level), self.thread);
            // A String takes everything.
            let _ = writeln!(
                self.text,
                "[{time}] [bmv2] [{letter}] [thread {thread}] {message}"
            );
        }
    }

    /// Writes the lines. Lines that cannot be written are lost: a full disk does not stop the switch.
    fn write(self) {
        let text = self.text.as_bytes();
        if text.is_empty() {
            return;
        }
        let _ = match &mut *self.log.sink.lock() {
            Sink::Console => {
                let mut out = io::stdout().lock();
                out.write_all(text).and_then(|()| out.flush())
            }
            Sink::File(file) => file.write(text),
        };
    }
}

fn letter(level: LogLevel) -> char {
    match level {
        LogLevel::Trace => 'T',
        LogLevel::Debug => 'D',
        LogLevel::Info => 'I',
        LogLevel::Warn => 'W',
        LogLevel::Error | LogLevel::Off => 'E',
    }
}

/// Formats a time as hours, minutes, seconds and milliseconds of the local time zone.
fn local_time(time: SystemTime) -> String {
    let since_epoch = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = since_epoch.as_secs() as libc::time_t;
    let mut parts = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid; all-zero parts are valid, too, if the call fails.
    let parts = unsafe {
        libc::localtime_r(&seconds, parts.as_mut_ptr());
        parts.assume_init()
    };
    let (hours, minutes, seconds) = (parts.tm_hour, parts.tm_min, parts.tm_sec);
    let millis = since_epoch.subsec_millis();
    format!("{hours:02}:{minutes:02}:{seconds:02}.{millis:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_time_level_and_thread() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = Log::file(LogLevel::Info, &path, 1 << 20, 3).unwrap();
        log.line(LogLevel::Debug, "hidden");
        log.line(LogLevel::Warn, "shown");
        let text = std::fs::read_to_string(dir.path().join("log.txt")).unwrap();
        let thread = nix::unistd::gettid();
        assert!(
            text.ends_with(&format!("] [bmv2] [W] [thread {thread}] shown\n")),
            "{text}"
        );
        let time = text[1..].split(']').next().unwrap();
        assert_eq!(time.len(), "12:34:56.789".len());
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn off_logs_nothing() {
        let log = Log::console(LogLevel::Off);
        assert!(!log.is_on(LogLevel::Error) && !log.is_on(LogLevel::Off));
    }
}
