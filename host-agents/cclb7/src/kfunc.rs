// SPDX-License-Identifier: Apache-2.0
//! The kernel function that creates a connection from a SYN cookie. The loader cannot resolve kernel functions, so the
//! call in the object has a placeholder number.

use aya::Btf;
use aya_obj::btf::BtfKind;

/// The kernel's function, since Linux 6.9.
const FUNCTION: &str = "bpf_sk_assign_tcp_reqsk";
/// The number in `bpf/syncookie.h`.
const PLACEHOLDER: i32 = 0x5c00_c1e5;
const INSTRUCTION: usize = 8;
/// `call helper`, `call kernel function`, and `r0 = number`.
const CALL_HELPER: [u8; 4] = [0x85, 0, 0, 0];
const CALL_FUNCTION: [u8; 4] = [0x85, 0x20, 0, 0];
const SET_RESULT: [u8; 4] = [0xb7, 0, 0, 0];

/// Return whether the running kernel has the function.
pub fn is_available() -> bool {
    btf_id().is_some()
}

/// Return the object with the call to the kernel's function; if the kernel lacks it, the call becomes a failure.
pub fn resolve(object: &[u8]) -> Vec<u8> {
    let (code, number) = match btf_id() {
        Some(id) => (CALL_FUNCTION, id),
        None => (SET_RESULT, -1),
    };
    replace(object, code, number)
}

fn btf_id() -> Option<i32> {
    let btf = Btf::from_sys_fs().ok()?;
    let id = btf.id_by_type_name_kind(FUNCTION, BtfKind::Func).ok()?;
    i32::try_from(id).ok()
}

fn replace(object: &[u8], code: [u8; 4], number: i32) -> Vec<u8> {
    let placeholder = instruction(CALL_HELPER, PLACEHOLDER);
    let new = instruction(code, number);
    let mut result = object.to_vec();
    for at in 0..=result.len().saturating_sub(INSTRUCTION) {
        if result[at..].starts_with(&placeholder) {
            result[at..at + INSTRUCTION].copy_from_slice(&new);
        }
    }
    result
}

fn instruction(code: [u8; 4], number: i32) -> [u8; INSTRUCTION] {
    let mut bytes = [0; INSTRUCTION];
    bytes[..4].copy_from_slice(&code);
    bytes[4..].copy_from_slice(&number.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::OBJECT;

    #[test]
    fn object_has_one_call_to_replace() {
        let count = |object: &[u8], wanted: [u8; INSTRUCTION]| {
            object
                .windows(INSTRUCTION)
                .filter(|window| *window == wanted)
                .count()
        };
        let call = instruction(CALL_HELPER, PLACEHOLDER);
        let failure = instruction(SET_RESULT, -1);
        let before = count(OBJECT, failure);
        assert_eq!(count(OBJECT, call), 1);
        let replaced = replace(OBJECT, SET_RESULT, -1);
        assert_eq!(count(&replaced, call), 0);
        assert_eq!(count(&replaced, failure), before + 1);
    }
}
