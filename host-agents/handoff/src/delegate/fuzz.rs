// SPDX-License-Identifier: Apache-2.0
//! A real server that sends nothing, for fuzzers.

use std::ops::Range;
use std::sync::Arc;

use super::Error;
use super::feedback::{Numbers, translate};
use super::number_pool::NumberPool;

/// Reads the feedback that a balancer forwards.
pub struct FeedbackReader {
    /// The client's stream ids, in the order of noq's own.
    streams: Vec<u64>,
    numbers: OwnNumbers,
}

/// Packet numbers of the real server.
enum OwnNumbers {
    From(u64),
    Pool { pool: Box<NumberPool>, next: u64 },
}

impl FeedbackReader {
    /// Create a reader for a path whose numbers start at `first`.
    pub fn with_path(first: u64, streams: &[u64]) -> Self {
        Self {
            streams: streams.into(),
            numbers: OwnNumbers::From(first),
        }
    }

    /// Create a reader for single numbers, none of which is below `first`.
    pub fn with_numbers(first: u64, streams: &[u64]) -> Self {
        Self {
            streams: streams.into(),
            numbers: OwnNumbers::Pool {
                pool: Box::new(NumberPool::new(first, Arc::new(()))),
                next: 0,
            },
        }
    }

    /// Send a packet with each of `numbers`, which are ascending ranges.
    ///
    /// # Errors
    /// If a number is not above all earlier ones, or if the reader has a path.
    pub fn send(&mut self, numbers: &[Range<u64>]) -> Result<(), Error> {
        let OwnNumbers::Pool { pool, next } = &mut self.numbers else {
            return Err(Error::Number(0));
        };
        pool.add(numbers)?;
        for number in numbers.iter().cloned().flatten() {
            if pool.take(*next) != Some(number) {
                return Err(Error::Number(number));
            }
            *next += 1;
        }
        Ok(())
    }

    /// Translate `feedback`. Returns the frames that noq gets, by packet.
    ///
    /// # Errors
    /// If the feedback is malformed or impossible.
    pub fn read(&self, feedback: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let own = |id: u64| {
            let at = self.streams.iter().position(|stream| *stream == id)?;
            Some(4 * at as u64)
        };
        let numbers = match &self.numbers {
            OwnNumbers::From(first) => Numbers::From(*first),
            OwnNumbers::Pool { pool, .. } => Numbers::Pool(pool),
        };
        translate(feedback, numbers, own).map(|translated| translated.packets)
    }
}
