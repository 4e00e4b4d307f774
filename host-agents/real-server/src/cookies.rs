// SPDX-License-Identifier: Apache-2.0
//! CloudCookies of balancers, for the source addresses of packets.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use frontage_cookie::ipv6::Key;
use frontage_handoff::message::Cookie;
use frontage_http::config::load_keys;
use frontage_quic::keys::Keys;
use frontage_quic::meter::Loads;
use frontage_quic::socket::CookiePrefix;
use parking_lot::Mutex;

use crate::config;

/// The current keys, and the balancers that use them.
pub struct Cookies {
    file: PathBuf,
    bandwidth: u64,
    loads: Arc<Loads>,
    state: Mutex<State>,
}

struct State {
    keys: Vec<Key>,
    /// Carriers by server id and prefix.
    carriers: HashMap<(u16, u64), CookiePrefix>,
}

impl Cookies {
    /// Load the keys.
    pub fn load(config: &config::Cookie) -> Result<Self> {
        let file = config.keys.get_ref().clone();
        let state = Mutex::new(State {
            keys: read(&file)?,
            carriers: HashMap::new(),
        });
        Ok(Self {
            file,
            bandwidth: config.bandwidth.0,
            // The switch ignores loads of real servers (docs/real-servers.md).
            loads: Arc::new(Loads::new(0)),
            state,
        })
    }

    /// Reload the keys.
    ///
    /// # Errors
    /// If the file is invalid. Nothing has changed then.
    pub fn reload(&self) -> Result<()> {
        let keys = read(&self.file)?;
        let state = &mut *self.state.lock();
        for cookie_prefix in state.carriers.values() {
            cookie_prefix.keys.rotate(keys.clone())?;
        }
        state.keys = keys;
        Ok(())
    }

    /// Return the contents of source addresses with this `cookie`.
    ///
    /// # Errors
    /// If there is no key of its epoch.
    pub fn cookie_prefix(&self, cookie: &Cookie) -> Result<CookiePrefix> {
        let state = &mut *self.state.lock();
        let id = (cookie.sid, cookie.prefix);
        let cookie_prefix = match state.carriers.get(&id) {
            Some(cookie_prefix) => cookie_prefix.clone(),
            None => {
                let cookie_prefix = CookiePrefix {
                    prefix: cookie.prefix,
                    keys: Arc::new(Keys::new(cookie.sid, state.keys.clone())?),
                    loads: self.loads.clone(),
                    bandwidth: self.bandwidth,
                };
                state.carriers.insert(id, cookie_prefix.clone());
                cookie_prefix
            }
        };
        if let Some(epoch) = cookie.epoch
            && cookie_prefix.keys.static_interface_id_of(epoch).is_none()
        {
            bail!("missing cookie key of epoch {epoch}");
        }
        Ok(cookie_prefix)
    }
}

/// Read and check the key file.
fn read(file: &Path) -> Result<Vec<Key>> {
    let keys = load_keys(file)?;
    // The check does not depend on the server id.
    Keys::new(0, keys.clone()).with_context(|| file.display().to_string())?;
    Ok(keys)
}
