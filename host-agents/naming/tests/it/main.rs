// SPDX-License-Identifier: Apache-2.0
//! Tests of the public interface: test vectors, the C library, and a cache that processes share.

mod c;
mod shared;
mod vectors;
