// SPDX-License-Identifier: Apache-2.0
//! The exchanges of a connection: requests that arrived and whose responses are not acknowledged yet.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use frontage_quic::h3::Connection;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use h3::server::RequestResolver;

/// Exchanges, and the function that begins one. All run in the connection's task, so that what they write in one turn leaves
/// in one batch.
pub(super) struct Exchanges<B, E> {
    begin: B,
    active: FuturesUnordered<E>,
    /// True until the client sends no more requests, or is gone.
    pub is_open: bool,
    /// True once this server accepts no more requests.
    pub is_draining: bool,
    /// True once the client has sent a request.
    pub has_had_any: bool,
}

impl<T, B, E> Exchanges<B, E>
where
    B: Fn(RequestResolver<Connection, Bytes>) -> E,
    E: Future<Output = T>,
{
    /// Create the exchanges of a connection without requests. `begin` returns the exchange of a request.
    pub(super) fn new(begin: B) -> Self {
        Self {
            begin,
            active: FuturesUnordered::new(),
            is_open: true,
            is_draining: false,
            has_had_any: false,
        }
    }

    /// Return whether all exchanges have ended, and none will begin.
    pub(super) fn has_ended(&self) -> bool {
        (self.is_draining || !self.is_open) && self.active.is_empty()
    }

    /// Accept requests and respond to them until the first one has arrived, the last one has, or all exchanges have ended.
    pub(super) async fn run(&mut self, h3: &mut h3::server::Connection<Connection, Bytes>) {
        poll_fn(|cx| {
            let before = (self.is_open, self.has_had_any);
            self.accept(h3, cx);
            // The access log has the outcome.
            while let Poll::Ready(Some(_)) = self.active.poll_next_unpin(cx) {}
            if before != (self.is_open, self.has_had_any) || self.has_ended() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Begin the exchanges of all requests that have arrived.
    fn accept(&mut self, h3: &mut h3::server::Connection<Connection, Bytes>, cx: &mut Context<'_>) {
        while self.is_open {
            match pin!(h3.accept()).poll(cx) {
                Poll::Ready(Ok(Some(resolver))) => {
                    self.has_had_any = true;
                    self.active.push((self.begin)(resolver));
                }
                Poll::Ready(Ok(None) | Err(_)) => self.is_open = false,
                Poll::Pending => return,
            }
        }
    }
}
