// SPDX-License-Identifier: Apache-2.0
//! The P4 programs that the targets run, compiled once.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use softswitch::proto::p4::config::v1::P4Info;
use softswitch::proto::p4::v1::ForwardingPipelineConfig;
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_p4c::{Options, compile};
use softswitch_pipeline::{Info, Program};

/// Source of a program with every kind of table and extern.
pub const EVERYTHING: &str = include_str!("../../pipeline/tests/programs/everything.p4");
/// Source of a small IPv4 router.
pub const ROUTER: &str = include_str!("../../pipeline/tests/programs/router.p4");
/// Source of a program with every kind of P4Runtime entity.
pub const FEATURES: &str = include_str!("../../switch/tests/programs/features.p4");

/// Compiles one of the programs above and returns its BMv2 JSON and its P4Info in text form.
///
/// # Panics
/// If the program has an error.
pub fn compiled(source: &str) -> (String, String) {
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = compile(
        "program.p4",
        source.to_owned(),
        &Options::default(),
        &sources,
        &diags,
    );
    let both = output.and_then(|o| Some((o.json?.to_string(), o.p4info)));
    both.unwrap_or_else(|| panic!("{}", diags.render(&sources)))
}

/// The loaded programs, for targets that send packets.
pub static PROGRAMS: LazyLock<[Program; 3]> = LazyLock::new(|| {
    [EVERYTHING, ROUTER, FEATURES].map(|source| {
        let (json, _) = compiled(source);
        Program::load(&json).expect("the compiler's programs load")
    })
});

/// The names, widths and sizes of [`FEATURES`].
pub static FEATURES_INFO: LazyLock<Info> = LazyLock::new(|| {
    let json = String::from_utf8_lossy(&FEATURES_CONFIG.p4_device_config);
    let program = Program::load(&json).expect("the compiler's programs load");
    program.info().clone()
});

/// [`FEATURES`] as a P4Runtime config.
pub static FEATURES_CONFIG: LazyLock<ForwardingPipelineConfig> = LazyLock::new(|| {
    let (json, text) = compiled(FEATURES);
    ForwardingPipelineConfig {
        p4info: Some(p4info(&text)),
        p4_device_config: json.into(),
        cookie: None,
    }
});

/// Parses P4Info in text form.
fn p4info(text: &str) -> P4Info {
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../switch/proto");
    let files =
        protox::compile(["p4/config/v1/p4info.proto"], [proto]).expect("the definitions compile");
    let pool =
        DescriptorPool::from_file_descriptor_set(files).expect("the definitions are complete");
    let kind = pool
        .get_message_by_name("p4.config.v1.P4Info")
        .expect("it is defined");
    let message =
        DynamicMessage::parse_text_format(kind, text).expect("the compiler writes P4Info");
    P4Info::decode(message.encode_to_vec().as_slice()).expect("the same message")
}
