//! The configuration file (TOML) and the file of keys: what may stand in them, and errors that name file, line and reason.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use frontage_cookie::{Secret, ipv6};
use frontage_program::config::{at, parse, read};
use serde::Deserialize;
use toml::Spanned;

use crate::artemis::Config as Artemis;
use crate::handoff::Config as Handoff;

mod route;
mod units;

pub use route::{Field, RealServers, Route};
pub(crate) use units::origin;
pub use units::{Bandwidth, Bytes, Prefix};

/// Instead of the access log's file.
pub const STANDARD_OUTPUT: &str = "-";

/// What the server is to do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Addresses and UDP ports to serve; best the wildcards.
    pub listen: Vec<SocketAddr>,
    /// PEM file with the certificate and those that lead to its root.
    pub certificate: Spanned<PathBuf>,
    /// PEM file with the certificate's key.
    pub private_key: Spanned<PathBuf>,
    /// Where Prometheus may ask; nowhere if absent.
    pub metrics: Option<SocketAddr>,
    /// File of the access log, one JSON object a line, `-` for the standard output; none if absent.
    pub access_log: Option<PathBuf>,
    /// Seconds that requests may take to end once the server was told to.
    #[serde(default = "default_drain_seconds")]
    pub drain_seconds: u64,
    /// Most handshakes at a time whose clients did not show that they are where they say; each is held until it ends or idles. Beyond, a client is
    /// sent a Retry, for which nothing is held (RFC 9000, section 8.1.2): a flood from forged addresses stops there. 0 sends one to everybody.
    #[serde(default = "default_unproven_handshakes")]
    pub unproven_handshakes: usize,
    /// The CloudCookie; without it this is a plain HTTP/3 server.
    pub cookie: Option<Cookie>,
    /// What makes it a replica of Artemis; needs the CloudCookie, of which the unicast address is made.
    pub artemis: Option<Spanned<Artemis>>,
    /// The real servers to which routes may hand requests; none if absent.
    pub handoff: Option<Spanned<Handoff>>,
    /// Where requests go: of the routes whose host and header are the request's, that with the longest prefix of its path.
    #[serde(rename = "route")]
    pub routes: Vec<Spanned<Route>>,
}

const fn default_drain_seconds() -> u64 {
    30
}

const fn default_unproven_handshakes() -> usize {
    256
}

/// This server in its data centre.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cookie {
    /// Server id.
    pub sid: u16,
    /// Server id over IPv4, which is another service to the switch; `sid` if absent.
    pub sid_v4: Option<u16>,
    /// The /64 of this server (AnyIP).
    pub server_prefix: Prefix,
    /// The /64 at which clients find the servers by cookie.
    pub cookie_prefix: Prefix,
    /// The service's UDP port, at the VIP and at cookie addresses alike.
    pub port: u16,
    /// File of the keys, see [`Keys`].
    pub keys: Spanned<PathBuf>,
    /// Bandwidth that a connection is assumed to get (RPT = remaining bytes / bandwidth).
    #[serde(default)]
    pub bandwidth: Bandwidth,
    /// Remaining bytes above which a response counts in N_FF.
    #[serde(default)]
    pub look_ahead: Bytes,
}

/// The file of keys: `[[keys]]` with `id` and `secret` (hexadecimal), one or the two newest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    keys: Vec<Spanned<Key>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    id: u32,
    secret: String,
}

/// Reads the configuration at `path`. Relative paths in it start at its folder.
pub fn load(path: &Path) -> Result<Config> {
    let text = read(path)?;
    let mut config: Config = parse(path, &text)?;
    let files = [&mut config.certificate, &mut config.private_key];
    let files = files.into_iter();
    let files = files.chain(config.cookie.iter_mut().map(|cookie| &mut cookie.keys));
    let handoff = config.handoff.iter_mut();
    for file in files.chain(handoff.flat_map(|handoff| handoff.get_mut().files())) {
        resolve(file, path, &text)?;
    }
    if let Some(log) = &mut config.access_log
        && log.as_os_str() != STANDARD_OUTPUT
    {
        *log = folder(path).join(&log);
    }
    if let Some(handoff) = &config.handoff
        && let Some((span, reason)) = handoff.get_ref().problem()
    {
        let span = span.unwrap_or(handoff.span());
        bail!("{}", at(path, &text, span, &format!("handoff: {reason}")));
    }
    let real_servers = config.handoff.as_ref();
    let real_servers = real_servers.map(|handoff| handoff.get_ref().names());
    check_routes(&mut config.routes, real_servers.as_deref(), path, &text)?;
    if let Some(artemis) = &config.artemis {
        let without = || "needs a [cookie]: the unicast address is made of it".to_owned();
        let reason = artemis.get_ref().problem();
        if let Some(reason) = reason.or_else(|| config.cookie.is_none().then(without)) {
            bail!(
                "{}",
                at(path, &text, artemis.span(), &format!("artemis: {reason}"))
            );
        }
    }
    if config.listen.is_empty() {
        bail!(
            "{}: listen: names no address; write [\"[::]:443\"]",
            path.display()
        );
    }
    Ok(config)
}

/// Has `file`, which a configuration at `path` with this `text` names, start at the configuration's folder.
///
/// # Errors
/// If there is no such file.
pub fn resolve(file: &mut Spanned<PathBuf>, path: &Path, text: &str) -> Result<()> {
    *file.get_mut() = folder(path).join(file.get_ref());
    if !file.get_ref().is_file() {
        let reason = format!("{} is no file", file.get_ref().display());
        bail!("{}", at(path, text, file.span(), &reason));
    }
    Ok(())
}

/// Has the routes' directories start at the folder of the configuration at `path` with this `text`. They may name these `real_servers`.
///
/// # Errors
/// If one is wrong, or there is none.
pub fn check_routes(
    routes: &mut [Spanned<Route>],
    real_servers: Option<&[&str]>,
    path: &Path,
    text: &str,
) -> Result<()> {
    if routes.is_empty() {
        let path = path.display();
        bail!("{path}: route: there is none, so every answer would be 404");
    }
    for route in routes {
        let span = route.span();
        let route = route.get_mut();
        if let Some(directory) = &mut route.directory {
            *directory = folder(path).join(&directory);
        }
        if let Some(reason) = route.problem(real_servers) {
            bail!("{}", at(path, text, span, &reason));
        }
    }
    Ok(())
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// Reads the file of keys at `path`.
pub fn load_keys(path: &Path) -> Result<Vec<ipv6::Key>> {
    let text = read(path)?;
    let file: Keys = parse(path, &text)?;
    let keys = file.keys.iter().map(|key| {
        // The secret itself must not end up in a log.
        let secret =
            hex(&key.get_ref().secret).ok_or_else(|| "secret is not hexadecimal".to_owned());
        let secret =
            secret.and_then(|bytes| Secret::new(&bytes).map_err(|error| error.to_string()));
        match secret {
            Ok(secret) => Ok(ipv6::Key::new(key.get_ref().id, &secret)),
            Err(reason) => bail!("{}", at(path, &text, key.span(), &reason)),
        }
    });
    keys.collect()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let error = parse::<Config>(Path::new("agent.toml"), text)
            .unwrap_err()
            .to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    }

    const HEAD: &str = "listen = ['[::]:443']\ncertificate = 'c.pem'\nprivate_key = 'k.pem'\n";

    #[test]
    fn errors_name_line_and_reason() {
        let cookie = "sid = 1\nserver_prefix = '2001:db8::/64'\ncookie_prefix = '2001:db8:1::/64'\nport = 443\nkeys = 'k'\n";
        for (tail, expected) in [
            ("listen = 3\n", "agent.toml:4: "),
            ("lisen = 3\n", "agent.toml:4: unknown field `lisen`"),
            (
                "[[route]]\npath = '/'\norigin = 'https://x/'\n",
                "agent.toml:6: \"https://x/\" is no origin",
            ),
            (
                &format!("[cookie]\n{cookie}bandwidth = '9'\n"),
                "agent.toml:10: \"9\" is no bandwidth",
            ),
            (
                &format!("[cookie]\n{}", cookie.replace("1::/64", "1::1/64")),
                "agent.toml:7: \"2001:db8:1::1/64\" is no /64",
            ),
            (
                &format!("[cookie]\n{}", cookie.replace("sid = 1", "sid = 70000")),
                "agent.toml:5: invalid value: integer `70000`",
            ),
        ] {
            let error = refused(&format!("{HEAD}{tail}"));
            assert!(error.starts_with(expected), "{error} is not {expected}");
        }
    }

    /// What cannot be known from the text alone.
    #[test]
    fn files_and_routes_must_be_there() {
        let folder = std::env::temp_dir().join(format!("cclb7-quic-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("agent.toml");
        let error = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let error = load(&path).unwrap_err().to_string();
            error.replace(&format!("{}/", folder.display()), "")
        };
        assert_eq!(
            error(&format!("{HEAD}route = []\n")),
            "agent.toml:2: c.pem is no file"
        );
        std::fs::write(folder.join("c.pem"), "").unwrap();
        std::fs::write(folder.join("k.pem"), "").unwrap();
        assert!(
            error(&format!("{HEAD}route = []\n")).starts_with("agent.toml: route: there is none")
        );
        for (route, expected) in [
            (
                "path = '/'",
                "a route needs one of directory, origin and real_servers",
            ),
            ("path = '/'\ndirectory = 'www'", "www is no directory"),
            (
                "path = 'x'\ndirectory = '.'",
                "path \"x\" does not begin with /",
            ),
        ] {
            assert_eq!(
                error(&format!("{HEAD}\n[[route]]\n{route}\n")),
                format!("agent.toml:5: {expected}")
            );
        }
        let route = "path = '/'\ndirectory = '.'";
        for (log, expected) in [("log", folder.join("log")), ("-", "-".into())] {
            let whole = format!("access_log = '{log}'\n{HEAD}\n[[route]]\n{route}\n");
            std::fs::write(&path, whole).unwrap();
            assert_eq!(load(&path).unwrap().access_log, Some(expected));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
