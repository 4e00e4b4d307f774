//! `frontage-get --quicksocks`, by a whole proxy beside a real resolver (unbound).

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use frontage_quicsocks::outcome::{End, Name};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::by_name::{report, seconds};
use crate::lab::{NAME, Options, Resolver, proxy, until};
use crate::world::{SIZE, World, object};

#[tokio::test(flavor = "multi_thread")]
async fn a_download_begins_at_the_proxy_and_goes_on_without_it() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let proxy = proxy(resolver.address, Options::with_a_user()).await;
    let at = proxy.addresses()[0].to_string();
    let world = Arc::new(spawn_blocking(World::new).await.unwrap());
    let url = format!("https://{NAME}:{}/{SIZE}", world.port);
    let mut arguments = vec![url, "--quicksocks".into(), at.clone()];
    arguments.extend(
        "--ca cert.pem --output saved --quicksocks-user"
            .split(' ')
            .map(String::from),
    );

    let whose = |user: &str| {
        let (world, mut arguments) = (world.clone(), arguments.clone());
        arguments.push(user.into());
        spawn_blocking(move || {
            report(
                &world,
                &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
            )
        })
    };
    let (code, report) = whose("ada:engine").await.unwrap();
    assert_eq!(
        (code, &report["error"], &report["stayed"]),
        (Some(0), &Value::Null, &Value::Null),
        "{report}"
    );
    assert!(fs::read(world.folder.join("saved")).unwrap() == object(SIZE));
    // `.example` is in no other resolver (RFC 6761), and this one was asked once.
    let metrics = proxy.metrics();
    assert_eq!(metrics.names.get(Name::Resolved), 1);
    let server = Value::from(format!("[::1]:{}", world.port));
    assert_eq!(
        (&report["found"], &report["service"], &report["proxy"]),
        (&"quicsocks".into(), &server, &at.into())
    );
    assert_eq!(report["seconds"]["name"], Value::Null);
    let steps =
        ["association", "connect", "first_byte", "total"].map(|step| seconds(&report, step));
    assert!(steps.is_sorted() && steps[0] > 0., "{report}");
    // It may have moved before the task that connected hears of it.
    assert!(seconds(&report, "migrated") > steps[0], "{report}");
    until(|| metrics.ends.get(End::Released) == 1, "the flow's end").await;
    until(|| metrics.flows.load(Relaxed) == 0, "no flow").await;

    let (code, report) = whose("ada:difference").await.unwrap();
    let error = report["error"].as_str().unwrap();
    assert!(code == Some(1) && error.contains("not allowed"), "{error}");
    assert_eq!(report["seconds"]["association"], Value::Null);
    assert_eq!(metrics.names.get(Name::Resolved), 1);
}
