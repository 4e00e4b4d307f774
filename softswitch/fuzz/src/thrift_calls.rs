// SPDX-License-Identifier: Apache-2.0
//! Decodes bytes as a sequence of calls of existing Thrift functions, with arguments of their types.

use crate::{calls, thrift};

/// Makes the calls, as [`thrift`](mod@thrift) does.
pub fn run(data: &[u8]) {
    thrift::run(&calls::messages(data));
}
