// SPDX-License-Identifier: Apache-2.0
//! Entry points for fuzzers that need no connection: a balancer that receives a client's packets, and real servers that
//! receive the balancer's feedback.

pub use crate::delegate::FeedbackReader;
pub use crate::delegator::Scene;
