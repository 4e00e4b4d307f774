// SPDX-License-Identifier: Apache-2.0
//! Both proxies over real TCP connections on this machine, while carriers break and both ends move.

mod attacks;
mod bed;
mod ends;
mod moves;
