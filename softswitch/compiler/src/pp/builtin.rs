// SPDX-License-Identifier: Apache-2.0
//! The files and macros that the compiler provides.

const CORE: &str = include_str!("../../p4include/core.p4");
const V1MODEL: &str = include_str!("../../p4include/v1model.p4");
const PSA: &str = include_str!("../../p4include/psa.p4");
const TNA: &str = include_str!("../../p4include/tna.p4");
const T2NA: &str = include_str!("../../p4include/t2na.p4");
const TOFINO_NATIVE: &str = include_str!("../../p4include/tofino_native.p4");

/// Returns the text of the built-in file that programs include by this name. The parts of which Tofino's compiler makes
/// `tna.p4` and `t2na.p4` are each the whole file.
pub(super) fn file(name: &str) -> Option<&'static str> {
    Some(match name {
        "core.p4" => CORE,
        "v1model.p4" => V1MODEL,
        "psa.p4" | "bmv2/psa.p4" => PSA,
        "tna.p4" | "tofino1_specs.p4" | "tofino1_base.p4" | "tofino1_arch.p4" => TNA,
        "t2na.p4" | "tofino2_specs.p4" | "tofino2_base.p4" | "tofino2_arch.p4" => T2NA,
        "tofino_native.p4" => TOFINO_NATIVE,
        _ => return None,
    })
}

/// Returns the macro, a name and a value, that an architecture defines before the program. As with Tofino's compiler,
/// it is the generation of the chip.
pub(super) fn macro_of(architecture: &str) -> Option<(&'static str, &'static str)> {
    match architecture {
        "tna" => Some(("__TARGET_TOFINO__", "1")),
        "t2na" => Some(("__TARGET_TOFINO__", "2")),
        _ => None,
    }
}
