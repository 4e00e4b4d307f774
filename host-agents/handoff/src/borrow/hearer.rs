//! A real server that sends nothing, for fuzzers.

use std::ops::Range;
use std::sync::Arc;

use super::Error;
use super::feedback::{Numbers, translate};
use super::pool::Pool;

/// Hears what a balancer passes on.
pub struct Hearer {
    /// The client's, as noq has them in a row.
    streams: Vec<u64>,
    own: Own,
}

/// Its packets.
enum Own {
    From(u64),
    OneByOne { pool: Box<Pool>, next: u64 },
}

impl Hearer {
    /// It has a path from the number `first` on.
    pub fn of_path(first: u64, streams: &[u64]) -> Self {
        Self {
            streams: streams.into(),
            own: Own::From(first),
        }
    }

    /// Its numbers are to come, and `first` at least.
    pub fn of_numbers(first: u64, streams: &[u64]) -> Self {
        Self {
            streams: streams.into(),
            own: Own::OneByOne {
                pool: Box::new(Pool::new(first, Arc::new(()))),
                next: 0,
            },
        }
    }

    /// Sends a packet by each of these.
    ///
    /// # Errors
    /// If they are not above all that it had, or it has a path.
    pub fn send(&mut self, numbers: Range<u64>) -> Result<(), Error> {
        let Own::OneByOne { pool, next } = &mut self.own else {
            return Err(Error::Number(numbers.start));
        };
        pool.give(numbers.clone())?;
        for number in numbers {
            if pool.take(*next) != Some(number) {
                return Err(Error::Number(number));
            }
            *next += 1;
        }
        Ok(())
    }

    /// Hears `feedback`; the frames that noq gets, packet by packet.
    ///
    /// # Errors
    /// If that is malformed or cannot be.
    pub fn hear(&self, feedback: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let own = |id: u64| {
            let at = self.streams.iter().position(|of| *of == id)?;
            Some(4 * at as u64)
        };
        let numbers = match &self.own {
            Own::From(first) => Numbers::From(*first),
            Own::OneByOne { pool, .. } => Numbers::OneByOne(pool),
        };
        translate(feedback, numbers, own).map(|translated| translated.packets)
    }
}
