//! Which unicast address a service was found at, for as long as its server said (`service_ttl`; Artemis, section 3.5).
//!
//! In memory, or in a file that several processes share: a line for each entry, `<until, s since 1970> <port asked for> <unicast address> <name>`. Writers take
//! turns by a lock and put a whole new file in the old one's place, so that readers need no lock; a line that is none is passed over.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use crate::Name;

/// Most entries; one more pushes out the oldest.
pub const CAPACITY: usize = 1024;
/// Longest time that an entry is believed, in seconds, whatever the server says: a day.
pub const LONGEST: u64 = 86_400;
/// Most bytes that are read of a file.
const FILE_LIMIT: u64 = 1 << 20;

/// Unicast addresses by name and port.
#[derive(Debug)]
pub struct Cache(Form);

#[derive(Debug)]
enum Form {
    Own(Mutex<Entries>),
    Shared(PathBuf),
}

impl Default for Cache {
    /// In memory, empty.
    fn default() -> Self {
        Self(Form::Own(Mutex::default()))
    }
}

impl Cache {
    /// In the file at `path`, which needs not exist yet. Beside it comes to be a file of the same name with `.lock`.
    pub fn shared(path: impl Into<PathBuf>) -> Self {
        Self(Form::Shared(path.into()))
    }

    /// Where the service `name` at `port` was found, if that holds still.
    pub fn get(&self, name: &Name, port: u16) -> io::Result<Option<SocketAddr>> {
        match &self.0 {
            Form::Own(entries) => Ok(entries
                .lock()
                .expect("nobody panics with it")
                .get((name, port), now())),
            Form::Shared(path) => Ok(read(path)?.get((name, port), now())),
        }
    }

    /// Remembers for `service_ttl` seconds that it was found at `unicast`.
    pub fn put(
        &self,
        name: &Name,
        port: u16,
        unicast: SocketAddr,
        service_ttl: u64,
    ) -> io::Result<()> {
        self.change(|entries| entries.put((name, port), unicast, service_ttl, now()))
    }

    /// Forgets where it was found.
    pub fn invalidate(&self, name: &Name, port: u16) -> io::Result<()> {
        self.change(|entries| entries.remove((name, port)))
    }

    fn change(&self, change: impl FnOnce(&mut Entries)) -> io::Result<()> {
        match &self.0 {
            Form::Own(entries) => change(&mut entries.lock().expect("nobody panics with it")),
            Form::Shared(path) => {
                let beside = |end: &str| {
                    let mut name = OsString::from(path);
                    name.push(end);
                    PathBuf::from(name)
                };
                let mut options = OpenOptions::new();
                let lock = options.create(true).truncate(false).write(true);
                let lock = lock.open(beside(".lock"))?;
                flock(&lock, FlockOperation::LockExclusive)?;
                let mut entries = read(path)?;
                change(&mut entries);
                let new = beside(".new");
                File::create(&new)?.write_all(entries.to_text().as_bytes())?;
                fs::rename(&new, path)?;
            }
        }
        Ok(())
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn read(path: &Path) -> io::Result<Entries> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(FILE_LIMIT).read_to_end(&mut bytes)?,
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

/// The oldest first.
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
            // The dot is what reading takes off again: a name may end with one of its own.
            writeln!(text, "{until} {port} {unicast} {name}.").expect("a String takes it");
        }
        text
    }

    fn get(&self, (name, port): (&Name, u16), now: u64) -> Option<SocketAddr> {
        let entry = self.0.iter().find(|entry| entry.is_of(name, port))?;
        // One from far ahead was written by a clock that was wrong.
        (now..=now + LONGEST)
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
            until: now + ttl.min(LONGEST),
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
    fn an_entry_lives_as_long_as_its_server_said() {
        let (mut entries, films) = (Entries::default(), name("films.example"));
        entries.put((&films, 443), at(1), 60, 1000);
        assert_eq!(entries.get((&films, 443), 1060), Some(at(1)));
        assert_eq!(entries.get((&films, 443), 1061), None);
        assert_eq!(entries.get((&films, 444), 1000), None);
        entries.put((&films, 443), at(2), u64::MAX, 1000);
        assert_eq!(entries.get((&films, 443), 1000 + LONGEST), Some(at(2)));
        assert_eq!(entries.get((&films, 443), 1001 + LONGEST), None);
        // The clock was set back by a day and more.
        assert_eq!(entries.get((&films, 443), 999), None);
        entries.put((&films, 443), at(3), 0, 1000);
        assert_eq!(entries, Entries::default());
    }

    #[test]
    fn the_oldest_goes_first() {
        let mut entries = Entries::default();
        let names: Vec<Name> = (0..=CAPACITY).map(|i| name(&i.to_string())).collect();
        entries.put((&names[0], 1), at(1), 10, 0);
        entries.put((&names[1], 1), at(1), 10, 0);
        // It is young again.
        entries.put((&names[0], 1), at(1), 10, 0);
        for name in &names[2..] {
            entries.put((name, 1), at(1), 10, 0);
        }
        assert_eq!(entries.0.len(), CAPACITY);
        assert_eq!(entries.get((&names[1], 1), 0), None);
        assert_eq!(entries.get((&names[0], 1), 0), Some(at(1)));
    }

    #[test]
    fn a_damaged_file_loses_its_damaged_lines() {
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
