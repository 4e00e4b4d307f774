// SPDX-License-Identifier: Apache-2.0
//! Parameters of hashes that the control plane sets.

mod common;

use std::path::Path;

use common::{ENGINES, compile, through};
use softswitch_pipeline::{CalculationId, CrcConfig, HashKind, Options, Pipeline, StateError};

/// Returns a pipeline of each engine.
fn pipelines() -> [Pipeline; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = compile(&folder.join("hashes.p4"), &folder).expect("it compiles");
    ENGINES.map(|engine| {
        let options = Options {
            engine,
            ..Options::default()
        };
        Pipeline::new(program.clone(), options)
    })
}

fn find(pipeline: &Pipeline, kind: HashKind) -> CalculationId {
    let info = pipeline.program().info();
    let found = info.calculations.iter().position(|c| c.kind == kind);
    CalculationId(found.expect("the program has it") as u32)
}

/// Returns the two hashes of the ASCII digits 1 to 4.
fn hashes(pipeline: &mut Pipeline) -> (u16, u32) {
    let frame = [b"1234".as_slice(), &[0; 6]].concat();
    let sent = through(pipeline, 1, &frame, 0);
    let out = &sent[0].1;
    let short = u16::from_be_bytes([out[4], out[5]]);
    (short, u32::from_be_bytes([out[6], out[7], out[8], out[9]]))
}

#[test]
fn configured_crc_replaces_the_default() {
    for mut pipeline in pipelines() {
        // CRC-16/ARC and CRC-32/ISO-HDLC.
        assert_eq!(hashes(&mut pipeline), (0x14ba, 0x9be3_e0a3));
        let (short, long) = (
            find(&pipeline, HashKind::Crc16Custom),
            find(&pipeline, HashKind::Crc32Custom),
        );
        let config = CrcConfig {
            width: 16,
            polynomial: 0x1021,
            initial: 0xffff,
            final_xor: 0,
            reflect_data: false,
            reflect_remainder: false,
        };
        pipeline
            .set_crc(short, config)
            .expect("it is a CRC of 16 bits");
        // CRC-16/IBM-3740.
        assert_eq!(hashes(&mut pipeline), (0x5349, 0x9be3_e0a3));
        let wrong = pipeline.set_crc(long, config);
        assert!(
            matches!(wrong, Err(StateError::Invalid { .. })),
            "{wrong:?}"
        );
        let key = pipeline.set_toeplitz_key(long, &[0; 4]);
        assert!(matches!(key, Err(StateError::Invalid { .. })), "{key:?}");
        // The parameters are not part of the state that is reset.
        pipeline.reset_state();
        assert_eq!(hashes(&mut pipeline).0, 0x5349);
    }
}
