//! The CloudCookies of balancers, of which the sources of packets are made.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, bail};
use frontage_cclb7_quic::config::load_keys;
use frontage_cookie::ipv6::Key;
use frontage_handoff::message::Cookie;
use frontage_quic::keys::Keys;
use frontage_quic::meter::Loads;
use frontage_quic::socket::CookiePrefix;

use crate::config;

/// The keys in force, and the balancers for which they seal.
pub struct Cookies {
    file: PathBuf,
    bandwidth: u64,
    loads: Arc<Loads>,
    all: Mutex<All>,
}

struct All {
    keys: Vec<Key>,
    /// By server id and prefix.
    carriers: HashMap<(u16, u64), CookiePrefix>,
}

impl Cookies {
    /// Reads the keys.
    pub fn load(config: &config::Cookie) -> Result<Self> {
        let file = config.keys.get_ref().clone();
        let all = Mutex::new(All {
            keys: read(&file)?,
            carriers: HashMap::new(),
        });
        Ok(Self {
            file,
            bandwidth: config.bandwidth.0,
            // Loads are the balancers' to tell: the switch does not hear those that real servers write (docs/real-servers.md).
            loads: Arc::new(Loads::new(0)),
            all,
        })
    }

    /// Reads the keys again. Nothing changes if there is an error.
    pub fn reload(&self) -> Result<()> {
        let keys = read(&self.file)?;
        let all = &mut *self.all.lock().expect("nobody panics with it");
        for cookie_prefix in all.carriers.values() {
            cookie_prefix.keys.rotate(keys.clone())?;
        }
        all.keys = keys;
        Ok(())
    }

    /// What the sources of packets with this `cookie` are made of.
    ///
    /// # Errors
    /// If no key in force is of its epoch.
    pub fn cookie_prefix(&self, cookie: &Cookie) -> Result<CookiePrefix> {
        let all = &mut *self.all.lock().expect("nobody panics with it");
        let id = (cookie.sid, cookie.prefix);
        let cookie_prefix = match all.carriers.get(&id) {
            Some(cookie_prefix) => cookie_prefix.clone(),
            None => {
                let cookie_prefix = CookiePrefix {
                    prefix: cookie.prefix,
                    keys: Arc::new(Keys::new(cookie.sid, all.keys.clone())?),
                    loads: self.loads.clone(),
                    bandwidth: self.bandwidth,
                };
                all.carriers.insert(id, cookie_prefix.clone());
                cookie_prefix
            }
        };
        if let Some(epoch) = cookie.epoch
            && cookie_prefix.keys.static_interface_id_of(epoch).is_none()
        {
            bail!("there is no key of epoch {epoch}");
        }
        Ok(cookie_prefix)
    }
}

/// Keys that can be in force together.
fn read(file: &Path) -> Result<Vec<Key>> {
    let keys = load_keys(file)?;
    // For whom they seal does not matter to that.
    Keys::new(0, keys.clone()).with_context(|| file.display().to_string())?;
    Ok(keys)
}
