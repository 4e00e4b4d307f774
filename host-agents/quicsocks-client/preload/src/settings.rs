// SPDX-License-Identifier: Apache-2.0
//! The proxy, from the environment.

use std::sync::OnceLock;

use frontage_quicsocks_client::Credentials;

/// `QUICSOCKS`: `HOST:PORT` of the proxy, or `NAME:PASSWORD@HOST:PORT`.
const VARIABLE: &str = "QUICSOCKS";

/// The proxy and the credentials for it.
pub struct Settings {
    pub proxy: String,
    pub credentials: Option<Credentials>,
}

/// Return the settings; None without the variable.
pub fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    SETTINGS
        .get_or_init(|| std::env::var(VARIABLE).ok().and_then(|text| parse(&text)))
        .as_ref()
}

fn parse(text: &str) -> Option<Settings> {
    if text.is_empty() {
        return None;
    }
    let (user, proxy) = text
        .rsplit_once('@')
        .map_or((None, text), |(user, proxy)| (Some(user), proxy));
    let credentials = user.map(|user| {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        Credentials {
            name: name.to_owned(),
            password: password.to_owned(),
        }
    });
    Some(Settings {
        proxy: proxy.to_owned(),
        credentials,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_a_proxy_and_perhaps_a_user() {
        assert!(parse("").is_none());
        let plain = parse("[2001:db8::1]:1080").unwrap();
        assert_eq!(plain.proxy, "[2001:db8::1]:1080");
        assert!(plain.credentials.is_none());
        let named = parse("ada:en@gine@proxy.example:1080").unwrap();
        assert_eq!(named.proxy, "proxy.example:1080");
        let credentials = named.credentials.unwrap();
        assert_eq!(
            (credentials.name.as_str(), credentials.password.as_str()),
            ("ada", "en@gine")
        );
    }
}
