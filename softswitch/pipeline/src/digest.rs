// SPDX-License-Identifier: Apache-2.0
//! Digests: values that a program sends to the control plane.

use crate::info::DigestId;
use crate::value::Value;

/// One digest message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// The digest that the message belongs to.
    pub id: DigestId,
    /// The number of its program, if pipes have different ones.
    pub program: usize,
    /// The values of its fields at the end of the pipeline, in order.
    pub fields: Vec<Value>,
}
