// SPDX-License-Identifier: Apache-2.0
//! Third-party client programs.

use std::path::{Path, PathBuf};

use super::Testbed;
use frontage_testkit::require;

pub const PYTHON: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../build/quic-clients/bin/python"
);
pub const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");

/// A client program. Only some follow the preferred address (RFC 9000, section 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The client of ngtcp2, from Debian; follows the preferred address.
    Ngtcp2,
    /// aioquic, in Python; follows the preferred address.
    Aioquic,
    /// curl, as packaged by `curl_cffi`; does not follow the preferred address.
    Curl,
}

impl Client {
    /// Return whether the program is installed.
    pub fn is_installed(self) -> bool {
        let (path, fix) = match self {
            Self::Ngtcp2 => ("/usr/bin/gtlsclient", "apt install ngtcp2-client"),
            Self::Aioquic | Self::Curl => (PYTHON, "make build/stamps/quic-clients"),
        };
        require(Path::new(path).exists(), path, fix)
    }

    /// Return the file to which the client writes the body of `/name`.
    pub fn output_file(self, testbed: &Testbed, name: &str) -> PathBuf {
        self.folder(testbed)
            .join(if self == Self::Ngtcp2 { name } else { "body" })
    }

    /// Return a different folder for each client.
    fn folder(self, testbed: &Testbed) -> PathBuf {
        testbed.folder.join(format!("{self:?}"))
    }

    /// Download `/name` from the server at `host` with these `fields` (curl only). Returns the body and a description
    /// of the response.
    pub fn get(
        self,
        testbed: &Testbed,
        host: &str,
        name: &str,
        fields: &[&str],
    ) -> (Vec<u8>, String) {
        let url = format!("https://{host}/{name}");
        let script = |name: &str| format!("{SCRIPTS}/{name}");
        let (get_curl, get_aioquic) = (script("get_curl.py"), script("get_aioquic.py"));
        let bare = host.trim_matches(['[', ']']);
        let (file, folder) = (self.output_file(testbed, name), self.folder(testbed));
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
        let output = testbed.client(&command);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self:?} {url}: {error}");
        let body = std::fs::read(file)
            .unwrap_or_else(|_| panic!("{self:?} {url}: missing output file: {error}"));
        (body, String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
