// SPDX-License-Identifier: Apache-2.0
//! The client's view of a service's record: its newest addresses.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::addresses::Address;
use crate::dial::Target;
use crate::records::{Name, Records};

/// Pause before a broken subscription is renewed. A change of this machine's addresses ends the pause.
const PAUSE: Duration = Duration::from_millis(200);

/// Follow the record `name` until the receiver is dropped. The target has no addresses before the record is known.
pub fn follow(
    records: Records,
    name: Name,
    observed: watch::Receiver<Vec<Address>>,
) -> watch::Receiver<Target> {
    let (sender, receiver) = watch::channel(Target::default());
    tokio::spawn(async move {
        tokio::select! {
            () = sender.closed() => {}
            () = run(&records, &name, observed, &sender) => {}
        }
    });
    receiver
}

async fn run(
    records: &Records,
    name: &Name,
    mut observed: watch::Receiver<Vec<Address>>,
    sender: &watch::Sender<Target>,
) {
    let mut newest = i64::MIN;
    loop {
        observed.mark_unchanged();
        tokio::select! {
            result = read(records, name, &mut newest, sender) => {
                if let Err(error) = result {
                    tracing::debug!("the subscription ended: {error:#}");
                }
                tokio::select! {
                    () = sleep(PAUSE) => {}
                    Ok(()) = observed.changed() => {}
                }
            }
            // The connection of the subscription may have lost its address.
            Ok(()) = observed.changed() => {}
        }
    }
}

async fn read(
    records: &Records,
    name: &Name,
    newest: &mut i64,
    sender: &watch::Sender<Target>,
) -> anyhow::Result<()> {
    let mut subscription = records.subscribe(name).await?;
    while let Some(state) = subscription.next().await? {
        // After a change of the server, an older state may come again.
        if state.version <= *newest {
            continue;
        }
        *newest = state.version;
        match state.value.as_ref().and_then(target) {
            Some(target) => {
                tracing::debug!("the service is at {target:?}");
                sender.send_if_modified(|now| {
                    let is_new = *now != target;
                    *now = target;
                    is_new
                });
            }
            None => tracing::warn!(
                "the record has no address and port of a mobile service: {:?}",
                state.value
            ),
        }
    }
    Ok(())
}

/// Return the service's addresses from a document (`docs/records.md`, "As a DNS zone").
fn target(document: &Value) -> Option<Target> {
    let port = document.get("service")?.get("port")?.as_u64()?;
    let addresses = match document.get("address")? {
        Value::Array(several) => several.iter().filter_map(address).collect(),
        one => vec![address(one)?],
    };
    Some(Target {
        addresses,
        port: u16::try_from(port).ok()?,
    })
}

fn address(value: &Value) -> Option<IpAddr> {
    let text = value.as_str().or_else(|| value.get("ip")?.as_str())?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_has_the_addresses_of_the_document() {
        let parsed = |text: &str| target(&serde_json::from_str(text).unwrap());
        let both = r#"{"address": ["192.0.2.1", {"ip": "2001:db8::7", "site": 1}], "service": {"port": 7000}}"#;
        let both = parsed(both).unwrap();
        assert_eq!(both.port, 7000);
        assert_eq!(
            both.addresses,
            ["192.0.2.1", "2001:db8::7"].map(|text| text.parse::<IpAddr>().unwrap())
        );
        let one = parsed(r#"{"address": "192.0.2.1", "service": {"port": 1}}"#).unwrap();
        assert_eq!(one.addresses.len(), 1);
        for invalid in [
            r#"{"address": "192.0.2.1"}"#,
            r#"{"address": "x", "service": {"port": 1}}"#,
            r#"{"address": "192.0.2.1", "service": {"port": 65536}}"#,
            r#"{"service": {"port": 1}}"#,
        ] {
            assert_eq!(parsed(invalid), None, "{invalid}");
        }
    }
}
