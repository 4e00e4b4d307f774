// SPDX-License-Identifier: Apache-2.0
//! `programs/tofino_parsers.p4`: ports with different parsers.

use super::common::through;
use super::compiled;

#[test]
fn port_selects_the_parser() {
    let mut p = compiled("tofino_parsers");
    for port in [0, 3] {
        assert_eq!(
            through(&mut p, port, &[9, 8, 7], 0),
            [(port, vec![1, 8, 7])]
        );
    }
    for port in [4, 7] {
        assert_eq!(
            through(&mut p, port, &[2, 9, 8, 7], 0),
            [(port, vec![2, 8, 7])]
        );
    }
}

#[test]
fn ports_without_a_parser_drop_packets() {
    let mut p = compiled("tofino_parsers");
    assert_eq!(through(&mut p, 8, &[9, 8, 7], 0), []);
}
