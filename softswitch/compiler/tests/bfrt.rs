// SPDX-License-Identifier: Apache-2.0
//! The schema of BfRuntime.

#[path = "common/tna.rs"]
mod frame;

use frame::{Parts, list, named};
use serde_json::{Value, json};
use softswitch_p4c::diag::{Diagnostics, SourceMap};

fn schema(parser: &str, architecture: &'static str) -> Value {
    let parts = Parts {
        parser: ["", parser],
        architecture: Some(architecture),
        ..Parts::default()
    };
    parts.schema()
}

#[test]
fn port_metadata_has_the_fields_that_the_parser_reads() {
    let tables = schema("port_t p = port_metadata_unpack<port_t>(pkt);", "tna");
    let table = named(&tables, "tables", "pipe.IP.$PORT_METADATA");
    assert_eq!(table["table_type"], "PortMetadata");
    assert_eq!(table["id"].as_u64().unwrap() >> 24, 0x90);
    let key = &table["key"][0];
    assert_eq!(key["name"], "intr.ingress_port");
    assert_eq!(key["type"], json!({"type": "bytes", "width": 9}));
    let fields = list(table, "data").iter();
    let fields = fields.map(|f| &f["singleton"]);
    let fields: Vec<_> = fields.map(|f| (&f["name"], &f["type"]["width"])).collect();
    assert_eq!(
        fields,
        [(&json!("vrf"), &json!(16)), (&json!("kind"), &json!(8))]
    );
}

#[test]
fn port_metadata_without_fields_has_all_bits() {
    for (architecture, width) in [("tna", 64), ("t2na", 128)] {
        let tables = schema("", architecture);
        let table = named(&tables, "tables", "pipe.IP.$PORT_METADATA");
        let field = &table["data"][0]["singleton"];
        assert_eq!(field["name"], "$DEFAULT_FIELD");
        assert_eq!(field["type"]["width"], width, "{architecture}");
    }
}

#[test]
fn each_pipeline_has_port_metadata() {
    let text = include_str!("../../pipeline/tests/programs/tofino_pipelines.p4").to_owned();
    let options = softswitch_p4c::Options {
        bfrt: true,
        ..Default::default()
    };
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = softswitch_p4c::compile("pipelines.p4", text, &options, &sources, &diags);
    let tables = output.unwrap().bfrt.unwrap();
    for parser in ["outer.OuterIngressParser", "inner.InnerIngressParser"] {
        let table = named(&tables, "tables", &format!("{parser}.$PORT_METADATA"));
        assert_eq!(table["table_type"], "PortMetadata");
    }
}
