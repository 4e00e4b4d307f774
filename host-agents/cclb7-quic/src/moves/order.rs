// SPDX-License-Identifier: Apache-2.0
//! The order file (TOML): where clients should be.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use frontage_daemon::config::{locate, parse};
use frontage_http::config::Prefix;
use frontage_quic::keys::Keys;
use frontage_quic::socket::join_address;
use frontage_quic_wire::server_addresses::Announcement;
use serde::Deserialize;
use toml::Spanned;

/// The word for the cookie address of the newest key.
const COOKIE: &str = "cookie";

/// An order to all clients of a server.
#[derive(Debug, PartialEq, Eq)]
pub struct Order {
    /// The use that clients should make of the addresses.
    pub announcement: Announcement,
    /// Addresses, the most preferred first. A client uses those of its own family.
    pub addresses: Vec<SocketAddr>,
    /// Epoch of the cookie address among `addresses`.
    pub cookie_epoch: Option<u32>,
}

/// The server's cookie addresses, one for each key.
#[derive(Clone, Copy, Debug)]
pub struct CookieAddress {
    /// Prefix of the cookie addresses.
    pub prefix: Prefix,
    /// Port of the service.
    pub port: u16,
}

impl CookieAddress {
    /// Return the address of the newest key, and its epoch.
    pub fn with(&self, keys: &Keys) -> (SocketAddr, Option<u32>) {
        let id = keys.static_interface_id();
        let ip = join_address(self.prefix.0, id);
        ((ip, self.port).into(), keys.epoch_of_static(id))
    }
}

/// The order file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Other addresses of this server.
    #[serde(default, rename = "move")]
    moves: Vec<Spanned<String>>,
    /// Addresses of another server.
    #[serde(default)]
    hand_over: Vec<Spanned<String>>,
}

/// Load the order file at `path`. `cookie` is the cookie address of the newest key and its epoch. Return `None`
/// if the file is missing or empty.
///
/// # Errors
/// If the file is invalid; the error names file, line, reason and remedy.
pub fn load(path: &Path, cookie: Option<(SocketAddr, Option<u32>)>) -> Result<Option<Order>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let file: File = parse(path, &text)?;
    let (announcement, written) = match (&file.moves[..], &file.hand_over[..]) {
        ([], []) => return Ok(None),
        (moves, []) => (Announcement::Move, moves),
        ([], hand_over) => (Announcement::HandOver, hand_over),
        (_, [first, ..]) => {
            let problem = "hand_over: conflicts with move: remove one of them";
            bail!("{}", locate(path, &text, first.span(), problem));
        }
    };
    let mut order = Order {
        announcement,
        addresses: Vec::new(),
        cookie_epoch: None,
    };
    for word in written {
        let fail = |problem: &str| locate(path, &text, word.span(), problem);
        let address = match word.get_ref().as_str() {
            COOKIE if announcement == Announcement::HandOver => {
                bail!("{}", fail("hand_over: \"cookie\" is an address of this server: use move"))
            }
            COOKIE => {
                let missing = || fail("\"cookie\": missing [cookie] in the configuration: use an address and a port");
                let (address, epoch) = cookie.with_context(missing)?;
                order.cookie_epoch = epoch;
                address
            }
            word => word.parse().with_context(|| {
                fail(&format!(
                    "invalid address {word:?}: use an address and a port, for example [2001:db8::20]:443"
                ))
            })?,
        };
        if order.addresses.contains(&address) {
            bail!("{}", fail(&format!("{address}: appears twice: remove one")));
        }
        order.addresses.push(address);
    }
    Ok(Some(order))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_text(name: &str, text: &str) -> Result<Option<Order>> {
        let file = std::env::temp_dir().join(format!("order-{name}-{}", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let cookie = ("[2001:db8:f::7]:443".parse().unwrap(), Some(5));
        let order = load(&file, Some(cookie));
        std::fs::remove_file(&file).unwrap();
        order
    }

    #[test]
    fn order_names_addresses_and_the_cookie_address() {
        let order = load_text("valid", "move = ['cookie', '192.0.2.1:443']")
            .unwrap()
            .unwrap();
        let addresses = ["[2001:db8:f::7]:443", "192.0.2.1:443"].map(|text| text.parse().unwrap());
        assert_eq!(order.addresses, addresses);
        assert_eq!(
            (order.announcement, order.cookie_epoch),
            (Announcement::Move, Some(5))
        );
        let order = load_text("hand", "hand_over = ['192.0.2.1:443']")
            .unwrap()
            .unwrap();
        assert_eq!(
            (order.announcement, order.cookie_epoch),
            (Announcement::HandOver, None)
        );
        assert_eq!(load_text("empty", "").unwrap(), None);
        assert_eq!(
            load(Path::new("/nonexistent/order.toml"), None).unwrap(),
            None
        );
    }

    #[test]
    fn invalid_orders_name_line_reason_and_remedy() {
        for (name, text, expected) in [
            (
                "bare",
                "\nmove = ['192.0.2.1']",
                ":2: invalid address \"192.0.2.1\": use an address and a port",
            ),
            (
                "both",
                "move = ['cookie']\nhand_over = ['192.0.2.1:1']",
                ":2: hand_over: conflicts with move",
            ),
            (
                "cookie",
                "hand_over = ['cookie']",
                ":1: hand_over: \"cookie\" is an address of this server",
            ),
            (
                "twice",
                "move = ['192.0.2.1:1', '192.0.2.1:1']",
                ":1: 192.0.2.1:1: appears twice",
            ),
            ("unknown", "mov = []", ":1: unknown field `mov`"),
        ] {
            let error = load_text(name, text).unwrap_err().to_string();
            assert!(
                error.contains(expected),
                "{error} does not contain {expected}"
            );
        }
        let file = std::env::temp_dir().join(format!("order-plain-{}", std::process::id()));
        std::fs::write(&file, "move = ['cookie']").unwrap();
        let error = load(&file, None).unwrap_err().to_string();
        std::fs::remove_file(&file).unwrap();
        assert!(
            error.contains(":1: \"cookie\": missing [cookie]"),
            "{error}"
        );
    }
}
