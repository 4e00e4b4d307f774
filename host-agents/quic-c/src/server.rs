// SPDX-License-Identifier: Apache-2.0
//! A server: its settings, keys and loads.

use std::net::{Ipv6Addr, SocketAddrV6};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use frontage_cookie::cid;
use frontage_cookie::ipv6::Key;
use frontage_cookie::load::Loads;
use frontage_daemon::key_file;
use frontage_quic_signals::ids::SealedIds;
use frontage_quic_signals::keys::Keys;
use frontage_quic_signals::prefix::{CookiePrefix, join_address};

/// The settings of a server, as `struct fq_settings` documents them.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Settings {
    pub server_prefix: Ipv6Addr,
    pub cookie_prefix: Ipv6Addr,
    pub keys: PathBuf,
    pub bandwidth: u64,
    pub look_ahead: u64,
    pub sid: u16,
    pub sid_v4: u16,
    pub port: u16,
}

/// A server.
#[derive(Debug)]
pub struct Server {
    pub(crate) prefix: Arc<CookiePrefix>,
    ids: SealedIds,
    ids_v4: SealedIds,
    cookie_prefix: u64,
    port: u16,
    key_file: PathBuf,
}

impl Server {
    /// Open a server.
    ///
    /// # Errors
    /// If a setting or the key file is invalid.
    pub fn open(settings: Settings) -> Result<Self> {
        let prefix = upper_half("server_prefix", settings.server_prefix)?;
        let cookie_prefix = upper_half("cookie_prefix", settings.cookie_prefix)?;
        if settings.bandwidth == 0 {
            bail!("bandwidth: invalid bandwidth 0: use a number of bit/s above 0");
        }
        let keys = Keys::new(settings.sid, load(&settings.keys)?);
        let keys = Arc::new(keys.with_context(|| settings.keys.display().to_string())?);
        Ok(Self {
            ids: SealedIds::new(keys.clone(), settings.sid),
            ids_v4: SealedIds::new(keys.clone(), settings.sid_v4),
            prefix: Arc::new(CookiePrefix {
                prefix,
                keys,
                loads: Arc::new(Loads::new(settings.look_ahead)),
                bandwidth: settings.bandwidth,
            }),
            cookie_prefix,
            port: settings.port,
            key_file: settings.keys,
        })
    }

    /// Reload the key file.
    ///
    /// # Errors
    /// If it is invalid. The previous keys then remain in use.
    pub fn reload(&self) -> Result<()> {
        let rotated = self.prefix.keys.rotate(load(&self.key_file)?);
        rotated.with_context(|| self.key_file.display().to_string())
    }

    /// Return a new connection id for clients over IPv4 or IPv6.
    pub fn connection_id(&self, is_ipv4: bool) -> [u8; cid::LEN] {
        if is_ipv4 {
            self.ids_v4.generate()
        } else {
            self.ids.generate()
        }
    }

    /// Return the preferred address for the newest key.
    pub fn preferred_address(&self) -> SocketAddrV6 {
        let id = self.prefix.keys.static_interface_id();
        SocketAddrV6::new(join_address(self.cookie_prefix, id), self.port, 0, 0)
    }

    /// Return the server's loads.
    pub fn loads(&self) -> &Arc<Loads> {
        &self.prefix.loads
    }
}

/// Return the upper 64 bits of a /64.
fn upper_half(name: &str, prefix: Ipv6Addr) -> Result<u64> {
    let bits = prefix.to_bits();
    if bits as u64 != 0 {
        bail!("{name}: invalid prefix {prefix}/64: set the lower 64 bits to zero");
    }
    Ok((bits >> 64) as u64)
}

fn load(path: &Path) -> Result<Vec<Key>> {
    let keys = key_file::load(path)?.into_iter();
    Ok(keys.map(|(id, secret)| Key::new(id, &secret)).collect())
}
