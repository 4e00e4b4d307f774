// SPDX-License-Identifier: Apache-2.0
//! Instances of Artemis: the names that belong to each prefix.
//!
//! The text has one instance per line, or several on a line, separated by `;`. `#` begins a comment:
//!
//! ```text
//! 2001:db8:a::/48+16 = films.example, *.films.example
//! 198.51.100.0/24+8  = films.example
//! ```

use std::net::IpAddr;

use crate::{Name, ServicePrefix};

/// Instances, in the order in which their addresses are used.
#[derive(Clone, Debug, Default)]
pub struct Instances(Vec<Instance>);

#[derive(Clone, Debug)]
struct Instance {
    prefix: ServicePrefix,
    patterns: Vec<Pattern>,
}

#[derive(Clone, Debug)]
enum Pattern {
    /// `*`.
    All,
    /// `*.films.example`, all names below `films.example`. Holds `.films.example`.
    Below(String),
    /// `films.example`.
    Exactly(Name),
}

impl Pattern {
    fn new(text: &str) -> Result<Self, String> {
        let name =
            |text| Name::new(text).map_err(|error| format!("invalid name {text:?}: {error}"));
        match text.strip_prefix('*') {
            Some("") => Ok(Self::All),
            Some(below) if below.starts_with('.') => {
                Ok(Self::Below(format!(".{}", name(&below[1..])?)))
            }
            _ if text.contains('*') => Err(format!(
                "invalid pattern {text:?}: write films.example, *.films.example or *"
            )),
            _ => name(text).map(Self::Exactly),
        }
    }

    fn matches(&self, name: &Name) -> bool {
        match self {
            Self::All => true,
            Self::Below(suffix) => {
                name.as_str().len() > suffix.len() && name.as_str().ends_with(suffix.as_str())
            }
            Self::Exactly(this) => this == name,
        }
    }
}

impl Instances {
    /// Parse `text`, the content of `origin`, which is a file or a variable.
    ///
    /// # Errors
    /// If the text is invalid; the error names `origin` and the line.
    pub fn parse(text: &str, origin: &str) -> Result<Self, String> {
        let mut instances = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let line = line.split_once('#').map_or(line, |(before, _)| before);
            for part in line
                .split(';')
                .map(str::trim)
                .filter(|part| !part.is_empty())
            {
                let instance =
                    instance(part).map_err(|reason| format!("{origin}:{}: {reason}", i + 1))?;
                instances.push(instance);
            }
        }
        Ok(Self(instances))
    }

    /// Append the instances of `more`.
    pub fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Return the Service Addresses of `name`, one for each instance to which it belongs.
    pub fn service_addresses(&self, name: &Name) -> Vec<IpAddr> {
        let matches = |instance: &&Instance| {
            instance
                .patterns
                .iter()
                .any(|pattern| pattern.matches(name))
        };
        let instances = self.0.iter().filter(matches);
        instances
            .map(|instance| instance.prefix.service_address(name))
            .collect()
    }
}

fn instance(text: &str) -> Result<Instance, String> {
    let Some((prefix, names)) = text.split_once('=') else {
        return Err(format!(
            "missing names in {text:?}: write 2001:db8:a::/48+16 = films.example, *.films.example"
        ));
    };
    let prefix = prefix.trim().parse::<ServicePrefix>();
    let patterns = names.split(',').map(|name| Pattern::new(name.trim()));
    Ok(Instance {
        prefix: prefix.map_err(|error| error.to_string())?,
        patterns: patterns.collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_their_instances() {
        let text = "# anycast\n2001:db8:a::/48+16 = Films.example, *.films.example\n\n198.51.100.0/24+0=films.example; 192.0.2.0/24+0 = the quick fox # one";
        let instances = Instances::parse(text, "conf").unwrap();
        let found = |name| instances.service_addresses(&Name::new(name).unwrap());
        assert_eq!(found("FILMS.example.").len(), 2);
        assert_eq!(found("a.b.films.example").len(), 1);
        assert_eq!(
            found("the quick fox"),
            ["192.0.2.0".parse::<IpAddr>().unwrap()]
        );
        for other in ["example", "afilms.example", ".films.example", "quick"] {
            assert_eq!(found(other).len(), 0, "{other}");
        }
        let all = Instances::parse("::/0+0 = *", "ARTEMIS").unwrap();
        assert_eq!(all.service_addresses(&Name::new("x").unwrap()).len(), 1);
    }

    #[test]
    fn errors_name_origin_and_line() {
        for (text, expected) in [
            (
                "\n2001:db8::/32+8",
                "conf:2: missing names in \"2001:db8::/32+8\"",
            ),
            (
                "2001:db8::/32 = a",
                "conf:1: invalid prefix \"2001:db8::/32\"",
            ),
            ("::/0+0 = a,", "conf:1: invalid name \"\""),
            (
                "::/0+0 = a; ::/0+0 = a*b",
                "conf:1: invalid pattern \"a*b\"",
            ),
            ("::/0+0 = *.", "conf:1: invalid name \"\""),
        ] {
            let error = Instances::parse(text, "conf").unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
