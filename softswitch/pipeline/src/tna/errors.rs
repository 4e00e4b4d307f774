// SPDX-License-Identifier: Apache-2.0
//! The flags in `parser_err`.

use crate::program::Compiled;

const NO_MATCH: u64 = 1;
const PARTIAL_HEADER: u64 = 1 << 1;
const COUNTER_RANGE: u64 = 1 << 2;
const TIMEOUT_BY_PROGRAM: u64 = 1 << 3;
const TIMEOUT_BY_CHIP: u64 = 1 << 4;
const EXTRACTION_SOURCE: u64 = 1 << 5;
const EXTRACTION_DESTINATION: u64 = 1 << 6;
const OWNER: u64 = 1 << 7;
const MULTIPLE_WRITES: u64 = 1 << 8;

/// Returns the flags of an error. Errors that the architecture does not know count as a missing match.
pub(super) fn flags(c: &Compiled, error: u64) -> u64 {
    if error == c.parser.errors.no_error {
        return 0;
    }
    let known = c.info.errors.iter().find(|e| e.1 == error);
    match known.map_or("", |e| &e.0) {
        "PacketTooShort" => PARTIAL_HEADER,
        "CounterRange" => COUNTER_RANGE,
        "Timeout" => TIMEOUT_BY_PROGRAM,
        "ParserTimeout" => TIMEOUT_BY_CHIP,
        "HeaderTooShort" => EXTRACTION_SOURCE,
        "StackOutOfBounds" => EXTRACTION_DESTINATION,
        "PhvOwner" => OWNER,
        "MultiWrite" => MULTIPLE_WRITES,
        _ => NO_MATCH,
    }
}
