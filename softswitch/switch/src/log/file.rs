// SPDX-License-Identifier: Apache-2.0
//! A log file that is replaced when it is full, with the file names of `simple_switch`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A log file with its older parts.
#[derive(Debug)]
pub(super) struct RotatingFile {
    /// The path without `.txt`.
    path: PathBuf,
    file: File,
    size: u64,
    max_size: u64,
    max_files: u32,
}

impl RotatingFile {
    /// Opens `PATH.txt`, to append to it.
    pub(super) fn open(path: &Path, max_size: u64, max_files: u32) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(part(path, 0))?;
        Ok(Self {
            path: path.to_owned(),
            size: file.metadata()?.len(),
            file,
            max_size,
            max_files,
        })
    }

    /// Appends whole lines at once.
    pub(super) fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.size > 0 && self.size + text.len() as u64 > self.max_size {
            self.rotate()?;
        }
        self.size += text.len() as u64;
        self.file.write_all(text)
    }

    /// Makes room for a new file: each part gets the next number, and the last one is removed.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (0..self.max_files).rev() {
            let from = part(&self.path, number);
            if from.exists() {
                fs::rename(from, part(&self.path, number + 1))?;
            }
        }
        // Without older parts, the file itself starts anew.
        self.file = File::create(part(&self.path, 0))?;
        self.size = 0;
        Ok(())
    }
}

/// Returns the path of a part; 0 is the current one.
fn part(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    match number {
        0 => name.push(".txt"),
        _ => name.push(format!(".{number}.txt")),
    }
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_files_are_kept_up_to_the_limit() {
        for max_files in [0, 2] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s1.log");
            let mut file = RotatingFile::open(&path, 10, max_files).unwrap();
            for line in ["one..\n", "two..\n", "three\n", "four.\n"] {
                file.write(line.as_bytes()).unwrap();
            }
            let read = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
            assert_eq!(read("s1.log.txt").as_deref(), Some("four.\n"));
            let kept = (max_files > 0).then_some("three\n");
            assert_eq!(read("s1.log.1.txt").as_deref(), kept);
            assert_eq!(read("s1.log.2.txt").is_some(), max_files > 0);
            assert_eq!(read("s1.log.3.txt"), None);
            // A new start appends.
            let mut file = RotatingFile::open(&path, 100, max_files).unwrap();
            file.write(b"five\n").unwrap();
            assert_eq!(read("s1.log.txt").as_deref(), Some("four.\nfive\n"));
        }
    }
}
