// SPDX-License-Identifier: Apache-2.0
//! A connection whose client has been handed over to another server.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::moves::HandOver;

/// The end of a connection after its hand-over. The client should close it with the last response.
pub(super) struct Leaving<'a> {
    hand_over: Option<HandOver<'a>>,
    drain_timeout: Duration,
    /// When the server stops accepting requests.
    deadline: Option<Instant>,
    has_said_goodbye: bool,
}

impl<'a> Leaving<'a> {
    /// Create the state of a connection that was not handed over. After a hand-over, the client has `drain_timeout` to leave.
    pub(super) const fn new(drain_timeout: Duration) -> Self {
        Self {
            hand_over: None,
            drain_timeout,
            deadline: None,
            has_said_goodbye: false,
        }
    }

    /// Begin the end.
    pub(super) fn begin(&mut self, hand_over: HandOver<'a>) {
        self.hand_over = Some(hand_over);
        self.deadline = Some(Instant::now() + self.drain_timeout);
    }

    /// Return true once, when GOAWAY must be sent: after the client has sent a request. Before, h3 can only send a GOAWAY that
    /// rejects all requests, even those that the client has sent already.
    pub(super) fn should_say_goodbye(&mut self, has_request: bool) -> bool {
        let should = self.deadline.is_some() && has_request && !self.has_said_goodbye;
        self.has_said_goodbye |= should;
        should
    }

    /// Wait until the server must stop accepting requests.
    pub(super) async fn expired(&self) {
        match self.deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Count the hand-over, if there was one. `is_completed` says whether the client has left by itself.
    pub(super) fn end(self, is_completed: bool) {
        if let Some(hand_over) = self.hand_over {
            hand_over.end(is_completed);
        }
    }
}
