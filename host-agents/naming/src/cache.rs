// SPDX-License-Identifier: Apache-2.0
//! A cache of the unicast addresses that servers have announced. An entry lives as long as its server said
//! (`service_ttl`; Artemis, section 3.5).
//!
//! The cache is in memory, or in a file that several processes share. The file has a line for each entry: `<expiry,
//! seconds since 1970> <requested port> <unicast address> <name>`. Writers hold a lock and replace the file as a
//! whole, so readers need no lock. Readers skip malformed lines.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};

use crate::Name;

/// Most entries. A further one replaces the oldest.
pub const CAPACITY: usize = 1024;
/// Longest lifetime of an entry in seconds, whatever the server says: a day.
pub const MAX_TTL: u64 = 86_400;
/// Most bytes that are read from a file.
const MAX_FILE: u64 = 1 << 20;

/// Unicast addresses by name and port.
#[derive(Debug)]
pub struct Cache(Storage);

#[derive(Debug)]
enum Storage {
    Memory(Mutex<Entries>),
    File(PathBuf),
}

impl Default for Cache {
    /// Create an empty cache in memory.
    fn default() -> Self {
        Self(Storage::Memory(Mutex::default()))
    }
}

impl Cache {
    /// Use the cache in the file at `path`, which need not exist yet. Its lock is a file of the same name with
    /// `.lock` appended.
    pub fn shared(path: impl Into<PathBuf>) -> Self {
        Self(Storage::File(path.into()))
    }

    /// Return the unicast address of the service `name` at `port`, if it is known and has not expired.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn get(&self, name: &Name, port: u16) -> io::Result<Option<SocketAddr>> {
        match &self.0 {
            Storage::Memory(entries) => Ok(entries.lock().get((name, port), now())),
            Storage::File(path) => Ok(read(path)?.get((name, port), now())),
        }
    }

    /// Store the `unicast` address of a service for `service_ttl` seconds. A TTL of 0 removes the entry.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(
        &self,
        name: &Name,
        port: u16,
        unicast: SocketAddr,
        service_ttl: u64,
    ) -> io::Result<()> {
        self.change(|entries| entries.put((name, port), unicast, service_ttl, now()))
    }

    /// Remove the entry of a service.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn invalidate(&self, name: &Name, port: u16) -> io::Result<()> {
        self.change(|entries| entries.remove((name, port)))
    }

    fn change(&self, change: impl FnOnce(&mut Entries)) -> io::Result<()> {
        match &self.0 {
            Storage::Memory(entries) => change(&mut entries.lock()),
            Storage::File(path) => {
                let with_suffix = |suffix: &str| {
                    let mut name = OsString::from(path);
                    name.push(suffix);
                    PathBuf::from(name)
                };
                let mut options = OpenOptions::new();
                let lock = options.create(true).truncate(false).write(true);
                let lock = lock.open(with_suffix(".lock"))?;
                flock(&lock, FlockOperation::LockExclusive)?;
                let mut entries = read(path)?;
                change(&mut entries);
                let new = with_suffix(".new");
                File::create(&new)?.write_all(entries.to_text().as_bytes())?;
                fs::rename(&new, path)?;
            }
        }
        Ok(())
    }
}

/// Return the seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn read(path: &Path) -> io::Result<Entries> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(MAX_FILE).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok(Entries::from_text(&String::from_utf8_lossy(&bytes)))
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    until: u64,
    port: u16,
    unicast: SocketAddr,
    name: Name,
}

/// Entries, oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entries(Vec<Entry>);

impl Entries {
    fn from_text(text: &str) -> Self {
        let entry = |line: &str| {
            let mut fields = line.splitn(4, ' ');
            let mut field = || fields.next();
            Some(Entry {
                until: field()?.parse().ok()?,
                port: field()?.parse().ok()?,
                unicast: field()?.parse().ok()?,
                name: Name::new(field()?).ok()?,
            })
        };
        Self(text.lines().filter_map(entry).take(CAPACITY).collect())
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        for entry in &self.0 {
            let Entry {
                until,
                port,
                unicast,
                name,
            } = entry;
            // Reading removes one final dot, and a name may itself end with a dot.
            writeln!(text, "{until} {port} {unicast} {name}.")
                .expect("writing to a string does not fail");
        }
        text
    }

    fn get(&self, (name, port): (&Name, u16), now: u64) -> Option<SocketAddr> {
        let entry = self.0.iter().find(|entry| entry.is_of(name, port))?;
        // A later expiry was written with a wrong clock.
        (now..=now + MAX_TTL)
            .contains(&entry.until)
            .then_some(entry.unicast)
    }

    fn put(&mut self, (name, port): (&Name, u16), unicast: SocketAddr, ttl: u64, now: u64) {
        self.0
            .retain(|entry| entry.until >= now && !entry.is_of(name, port));
        if ttl == 0 {
            return;
        }
        if self.0.len() >= CAPACITY {
            self.0.remove(0);
        }
        self.0.push(Entry {
            until: now + ttl.min(MAX_TTL),
            port,
            unicast,
            name: name.clone(),
        });
    }

    fn remove(&mut self, (name, port): (&Name, u16)) {
        self.0.retain(|entry| !entry.is_of(name, port));
    }
}

impl Entry {
    fn is_of(&self, name: &Name, port: u16) -> bool {
        (&self.name, self.port) == (name, port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn at(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    #[test]
    fn entry_expires_after_its_ttl_or_a_day() {
        let (mut entries, films) = (Entries::default(), name("films.example"));
        entries.put((&films, 443), at(1), 60, 1000);
        assert_eq!(entries.get((&films, 443), 1060), Some(at(1)));
        assert_eq!(entries.get((&films, 443), 1061), None);
        assert_eq!(entries.get((&films, 444), 1000), None);
        entries.put((&films, 443), at(2), u64::MAX, 1000);
        assert_eq!(entries.get((&films, 443), 1000 + MAX_TTL), Some(at(2)));
        assert_eq!(entries.get((&films, 443), 1001 + MAX_TTL), None);
        // The clock was set back by more than a day.
        assert_eq!(entries.get((&films, 443), 999), None);
        entries.put((&films, 443), at(3), 0, 1000);
        assert_eq!(entries, Entries::default());
    }

    #[test]
    fn full_cache_replaces_the_oldest_entry() {
        let mut entries = Entries::default();
        let names: Vec<Name> = (0..=CAPACITY).map(|i| name(&i.to_string())).collect();
        entries.put((&names[0], 1), at(1), 10, 0);
        entries.put((&names[1], 1), at(1), 10, 0);
        // Renewed, so no longer the oldest.
        entries.put((&names[0], 1), at(1), 10, 0);
        for name in &names[2..] {
            entries.put((name, 1), at(1), 10, 0);
        }
        assert_eq!(entries.0.len(), CAPACITY);
        assert_eq!(entries.get((&names[1], 1), 0), None);
        assert_eq!(entries.get((&names[0], 1), 0), Some(at(1)));
    }

    #[test]
    fn malformed_lines_are_skipped() {
        let mut entries = Entries::default();
        entries.put(
            (&name("dot at the end.."), 7),
            "[2001:db8::1]:443".parse().unwrap(),
            10,
            0,
        );
        entries.put((&name("b"), 7), at(443), 10, 0);
        let text = entries.to_text();
        assert_eq!(Entries::from_text(&text), entries);
        assert_eq!(
            Entries::from_text(&format!("1 2 3\n\nx\n{text}99 7 [::1 b")),
            entries
        );
    }
}
