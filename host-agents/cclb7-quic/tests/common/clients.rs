//! The clients: programs that others wrote, each where it is installed.

use std::path::{Path, PathBuf};

use super::World;

pub const PYTHON: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../build/quic-clients/bin/python"
);
pub const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");

/// A client, and whether it follows the preferred address (RFC 9000, section 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// ngtcp2's, of Debian: follows.
    Ngtcp2,
    /// Python's: follows.
    Aioquic,
    /// curl, as `curl_cffi` brings it: stays.
    Curl,
}

impl Client {
    /// Whether it is installed; says what to do if not.
    pub fn is_here(self) -> bool {
        let (path, fix) = match self {
            Self::Ngtcp2 => ("/usr/bin/gtlsclient", "apt install ngtcp2-client"),
            Self::Aioquic | Self::Curl => (PYTHON, "make build/stamps/quic-clients"),
        };
        let here = Path::new(path).exists();
        if !here {
            eprintln!("skipped {self:?}: {fix}");
        }
        here
    }

    /// Where the body of `/name` comes to be.
    pub fn saved(self, world: &World, name: &str) -> PathBuf {
        self.folder(world)
            .join(if self == Self::Ngtcp2 { name } else { "body" })
    }

    /// One for each, so that none is taken for another's.
    fn folder(self, world: &World) -> PathBuf {
        world.folder.join(format!("{self:?}"))
    }

    /// Downloads `/name` of the server at `host` with these `fields` (curl alone), and what came: body, and a description of the answer.
    pub fn get(self, world: &World, host: &str, name: &str, fields: &[&str]) -> (Vec<u8>, String) {
        let url = format!("https://{host}/{name}");
        let script = |name: &str| format!("{SCRIPTS}/{name}");
        let (get_curl, get_aioquic) = (script("get_curl.py"), script("get_aioquic.py"));
        let bare = host.trim_matches(['[', ']']);
        let (file, folder) = (self.saved(world, name), self.folder(world));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, download) = (
            file.to_str().unwrap(),
            format!("--download={}", folder.display()),
        );
        let mut command = match self {
            Self::Ngtcp2 => {
                vec![
                    "gtlsclient",
                    "--quiet",
                    "--exit-on-all-streams-close",
                    &download,
                    bare,
                    "443",
                    &url,
                ]
            }
            Self::Aioquic => vec![PYTHON, &get_aioquic, file, &url],
            Self::Curl => vec![PYTHON, &get_curl, file, &url],
        };
        command.extend(fields);
        let output = world.client(&command);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self:?} {url}: {error}");
        let body =
            std::fs::read(file).unwrap_or_else(|_| panic!("{self:?} {url} saved nothing: {error}"));
        (body, String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
