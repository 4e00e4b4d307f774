// SPDX-License-Identifier: Apache-2.0
//! `frontage-get --quicksocks` through a proxy with a real resolver (unbound).

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use frontage_quicsocks::outcome::{FlowEnd, Lookup};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::get_by_name::{report, seconds};
use crate::quicsocks_testbed::{NAME, Options, Resolver, start_proxy, wait_until};
use crate::testbed::{HttpServer, SIZE, object};

#[tokio::test(flavor = "multi_thread")]
async fn download_through_proxy_migrates_to_direct_path() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let proxy = start_proxy(resolver.address, Options::with_user()).await;
    let proxy_address = proxy.addresses()[0].to_string();
    let server = Arc::new(spawn_blocking(HttpServer::new).await.unwrap());
    let url = format!("https://{NAME}:{}/{SIZE}", server.port);
    let mut arguments = vec![url, "--quicksocks".into(), proxy_address.clone()];
    arguments.extend(
        "--ca cert.pem --output saved --quicksocks-user"
            .split(' ')
            .map(String::from),
    );

    let run_as = |user: &str| {
        let (server, mut arguments) = (server.clone(), arguments.clone());
        arguments.push(user.into());
        spawn_blocking(move || {
            report(
                &server,
                &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
            )
        })
    };
    let (code, report) = run_as("ada:engine").await.unwrap();
    assert_eq!(
        (code, &report["error"], &report["stayed"]),
        (Some(0), &Value::Null, &Value::Null),
        "{report}"
    );
    assert!(fs::read(server.folder.join("saved")).unwrap() == object(SIZE));
    // No other resolver knows `.example` names (RFC 6761), and this one was queried once.
    let metrics = proxy.metrics();
    assert_eq!(metrics.lookups.get(Lookup::Resolved), 1);
    let address = Value::from(format!("[::1]:{}", server.port));
    assert_eq!(
        (&report["found"], &report["service"], &report["proxy"]),
        (&"quicsocks".into(), &address, &proxy_address.into())
    );
    assert_eq!(report["seconds"]["name"], Value::Null);
    let steps =
        ["association", "connect", "first_byte", "total"].map(|step| seconds(&report, step));
    assert!(steps.is_sorted() && steps[0] > 0., "{report}");
    // The connection may migrate before the connecting task runs again, so `migrated` may precede `connect`.
    assert!(seconds(&report, "migrated") > steps[0], "{report}");
    wait_until(
        || metrics.flow_ends.get(FlowEnd::Released) == 1,
        "the end of the flow",
    )
    .await;
    wait_until(
        || metrics.flows.load(Relaxed) == 0,
        "the gauge of flows to drop to 0",
    )
    .await;

    let (code, report) = run_as("ada:difference").await.unwrap();
    let error = report["error"].as_str().unwrap();
    assert!(code == Some(1) && error.contains("not allowed"), "{error}");
    assert_eq!(report["seconds"]["association"], Value::Null);
    assert_eq!(metrics.lookups.get(Lookup::Resolved), 1);
}
