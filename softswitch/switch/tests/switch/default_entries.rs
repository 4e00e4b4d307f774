// SPDX-License-Identifier: Apache-2.0
//! Direct counters and meters of default entries (P4Runtime specification, sections "Default Entry" and
//! "Direct Resources").

use crate::common::features::{self, direct, entry, lpm, route};
use crate::common::{Controller, IntoEntity, TestSwitch};
use softswitch::proto::p4::config::v1::Table;
use softswitch::proto::p4::v1 as p4;
use tonic::Code;

const COUNT: p4::CounterData = p4::CounterData {
    byte_count: 100,
    packet_count: 2,
};

const RATES: p4::MeterConfig = p4::MeterConfig {
    cir: 1000,
    cburst: 100,
    pir: 2000,
    pburst: 200,
    eburst: 0,
};

/// The default entry of a table.
fn default(table: &str, action: Option<p4::TableAction>) -> p4::TableEntry {
    p4::TableEntry {
        is_default_action: true,
        ..entry(table, &[], action)
    }
}

/// Returns the initial default entry of the table `routes`.
fn initial() -> p4::TableEntry {
    default("routes", direct("route_drop", &[]))
}

/// Returns the default entry of `routes` with its direct resources.
async fn read(c: &mut Controller) -> p4::TableEntry {
    let asking = p4::TableEntry {
        counter_data: Some(Default::default()),
        meter_config: Some(Default::default()),
        ..default("routes", None)
    };
    c.read_table(asking).await.remove(0)
}

fn counter(table_entry: p4::TableEntry, data: Option<p4::CounterData>) -> p4::DirectCounterEntry {
    p4::DirectCounterEntry {
        table_entry: Some(table_entry),
        data,
    }
}

fn meter(table_entry: p4::TableEntry, config: Option<p4::MeterConfig>) -> p4::DirectMeterEntry {
    p4::DirectMeterEntry {
        table_entry: Some(table_entry),
        config,
        counter_data: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_resources_are_written_and_read_with_default_entry() {
    let (_switch, mut c) = TestSwitch::with_features(0, &[]).await;
    let none = p4::TableEntry {
        counter_data: Some(Default::default()),
        ..initial()
    };
    assert_eq!(read(&mut c).await, none);
    let full = p4::TableEntry {
        metadata: "m".into(),
        counter_data: Some(COUNT),
        meter_config: Some(RATES),
        ..default("routes", direct("route", &[9, 2]))
    };
    c.modify(full.clone()).await.unwrap();
    assert_eq!(read(&mut c).await, full);
    // They are returned only on request.
    let plain = p4::TableEntry {
        counter_data: None,
        meter_config: None,
        ..full.clone()
    };
    let unasked = c.read_table(default("routes", None)).await;
    assert_eq!(unasked, std::slice::from_ref(&plain));
    // A modification without them keeps the counter, and makes all packets green.
    c.modify(plain).await.unwrap();
    let green = p4::TableEntry {
        meter_config: None,
        ..full.clone()
    };
    assert_eq!(read(&mut c).await, green);
    // Without an action, the entry returns to its initial state, except for the given resources.
    c.modify(full.clone()).await.unwrap();
    c.modify(default("routes", None)).await.unwrap();
    assert_eq!(read(&mut c).await, none);
    let reset = p4::TableEntry {
        action: None,
        ..full
    };
    c.modify(reset).await.unwrap();
    let counted = p4::TableEntry {
        counter_data: Some(COUNT),
        meter_config: Some(RATES),
        ..initial()
    };
    assert_eq!(read(&mut c).await, counted);
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_resources_are_written_and_read_on_their_own() {
    let (_switch, mut c) = TestSwitch::with_features(0, &[]).await;
    let of = || default("routes", None);
    c.modify(counter(of(), Some(COUNT))).await.unwrap();
    c.modify(meter(of(), Some(RATES))).await.unwrap();
    // Without data, the counter stays.
    c.modify(counter(of(), None)).await.unwrap();
    let counted = counter(initial(), Some(COUNT)).entity();
    let metered = meter(initial(), Some(RATES)).entity();
    assert_eq!(c.read_one(counter(of(), None)).await, counted);
    assert_eq!(c.read_one(meter(of(), None)).await, metered);
    // A wildcard selects either entries with a key or default entries.
    c.insert(route(0x0a00_0000, 8, 1)).await.unwrap();
    let of_entry = |entity: &p4::Entity| !format!("{entity:?}").contains("is_default_action: true");
    // Another table has counters for its two constant entries.
    for (all, counted) in [
        (p4::TableEntry::default(), 3),
        (entry("routes", &[], None), 1),
    ] {
        let counters = c.read(counter(all.clone(), None)).await.unwrap();
        let meters = c.read(meter(all, None)).await.unwrap();
        assert_eq!((counters.len(), meters.len()), (counted, 1));
        assert!(counters.iter().chain(&meters).all(of_entry));
    }
    let all_defaults = p4::TableEntry {
        is_default_action: true,
        ..Default::default()
    };
    let counters = c.read(counter(all_defaults.clone(), None)).await.unwrap();
    assert_eq!((counters.len(), &counters[0]), (2, &counted));
    let meters = c.read(meter(all_defaults, None)).await.unwrap();
    assert_eq!(meters, [metered]);
    // Unset, every packet is green.
    c.modify(meter(of(), None)).await.unwrap();
    assert_eq!(read(&mut c).await.meter_config, None);
}

#[tokio::test(flavor = "multi_thread")]
#[allow(deprecated)]
async fn reads_of_default_entries_are_filtered() {
    let (_switch, mut c) = TestSwitch::with_features(0, &[]).await;
    let written = p4::TableEntry {
        metadata: "m".into(),
        controller_metadata: 7,
        ..initial()
    };
    c.modify(written.clone()).await.unwrap();
    let asking = |action, metadata: &str, controller_metadata| p4::TableEntry {
        metadata: metadata.to_owned().into(),
        controller_metadata,
        ..default("routes", action)
    };
    for taking in [
        asking(direct("route_drop", &[]), "", 0),
        asking(None, "m", 0),
        asking(None, "m", 7),
    ] {
        let read = c.read_table(taking.clone()).await;
        assert_eq!(read, std::slice::from_ref(&written), "{taking:?}");
    }
    for other in [
        asking(direct("route", &[0, 0]), "", 0),
        asking(None, "n", 0),
        asking(None, "m", 8),
    ] {
        assert_eq!(c.read_table(other.clone()).await, [], "{other:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_direct_resources_are_refused() {
    let (_switch, mut c) = TestSwitch::with_features(0, &[]).await;
    let of = || default("routes", None);
    let with_match = p4::TableEntry {
        r#match: features::matches(&[lpm(0x0a00_0000, 8)]),
        ..of()
    };
    let with_priority = p4::TableEntry {
        priority: 1,
        ..of()
    };
    let slower_peak = p4::MeterConfig { pir: 999, ..RATES };
    let less = p4::CounterData {
        byte_count: -1,
        packet_count: 0,
    };
    let acl = p4::TableEntry {
        counter_data: Some(COUNT),
        ..default("acl", direct("drop", &[]))
    };
    for wrong in [
        counter(with_match.clone(), Some(COUNT)).entity(),
        meter(with_match, Some(RATES)).entity(),
        counter(with_priority, Some(COUNT)).entity(),
        meter(of(), Some(slower_peak)).entity(),
        counter(of(), Some(less)).entity(),
        counter(default("acl", None), Some(COUNT)).entity(),
        meter(default("acl", None), Some(RATES)).entity(),
        acl.entity(),
    ] {
        let error = c.modify(wrong.clone()).await.unwrap_err();
        assert_eq!(error.0, Code::InvalidArgument, "{wrong:?}");
    }
    let inserted = c.insert(counter(of(), Some(COUNT))).await.unwrap_err();
    assert_eq!(inserted.0, Code::InvalidArgument);
    let by_color = p4::TableEntry {
        meter_counter_data: Some(Default::default()),
        ..initial()
    };
    let counted = c.read_table(by_color.clone()).await.remove(0);
    let zero = Some(Default::default());
    let colors = counted.meter_counter_data.unwrap();
    assert_eq!(
        (colors.green, colors.yellow, colors.red),
        (zero, zero, zero)
    );
    c.modify(by_color).await.unwrap();
    assert_eq!(read(&mut c).await.counter_data, Some(Default::default()));
}

/// As for the entries of constant tables.
#[tokio::test(flavor = "multi_thread")]
async fn direct_resources_of_constant_default_entry_are_writable() {
    let switch = TestSwitch::start(0, &[]).await;
    let mut c = switch.controller().await;
    let mut config = features::config();
    let tables = &mut config.p4info.as_mut().unwrap().tables;
    let is_routes = |t: &&mut Table| t.preamble.as_ref().unwrap().id == features::table("routes");
    let routes = tables.iter_mut().find(is_routes).unwrap();
    routes.const_default_action_id = features::action("route_drop");
    c.set_pipeline(config).await.unwrap();
    let with_entry = p4::TableEntry {
        counter_data: Some(COUNT),
        ..initial()
    };
    let error = c.modify(with_entry).await.unwrap_err();
    assert_eq!(error.0, Code::PermissionDenied);
    let of = || default("routes", None);
    c.modify(counter(of(), Some(COUNT))).await.unwrap();
    c.modify(meter(of(), Some(RATES))).await.unwrap();
    let now = read(&mut c).await;
    assert!(now.is_const);
    assert_eq!(
        (now.counter_data, now.meter_config),
        (Some(COUNT), Some(RATES))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn misses_are_counted() {
    let (switch, mut c) = TestSwitch::with_features(2, &[]).await;
    let via = default("routes", direct("route", &[9, 2]));
    c.modify(via).await.unwrap();
    let mut ipv4 = [0; 20];
    ipv4[0] = 0x45;
    ipv4[16] = 10;
    let frame = features::frame(1, 1, 0x0800, &ipv4);
    for packets in 1..=3 {
        switch.wires[0].send(&frame);
        switch.wires[1].receive();
        let expected = p4::CounterData {
            byte_count: packets * frame.len() as i64,
            packet_count: packets,
        };
        assert_eq!(read(&mut c).await.counter_data, Some(expected));
    }
    // Hits are not counted there.
    c.insert(route(0x0a00_0000, 8, 2)).await.unwrap();
    switch.wires[0].send(&frame);
    switch.wires[1].receive();
    assert_eq!(read(&mut c).await.counter_data.unwrap().packet_count, 3);
    // A new program starts at 0.
    c.set_pipeline(features::config()).await.unwrap();
    assert_eq!(read(&mut c).await.counter_data, Some(Default::default()));
}

#[tokio::test(flavor = "multi_thread")]
async fn default_entry_differs_from_match_all_entry() {
    let (_switch, mut c) = TestSwitch::with_features(0, &[]).await;
    let any = entry("routes", &[], direct("route_drop", &[]));
    c.insert(any.clone()).await.unwrap();
    c.modify(counter(default("routes", None), Some(COUNT)))
        .await
        .unwrap();
    let read = c.read_one(counter(any.clone(), None)).await;
    assert_eq!(read, counter(any, Some(Default::default())).entity());
}
