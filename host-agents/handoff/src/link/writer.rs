// SPDX-License-Identifier: Apache-2.0
//! Writer of all streams of a link. A single task writes them, so that messages of one turn leave in few packets. With a task
//! per stream, noq would send a packet for each.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use noq::{SendStream, VarInt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::yield_now;

use super::queue::{Action, Shared};

/// Handle of the task that writes streams until each has ended.
#[derive(Clone, Debug)]
pub(super) struct Writer(UnboundedSender<(SendStream, Arc<Shared>)>);

impl Writer {
    /// Start the task. Must be called within a Tokio runtime.
    pub(super) fn new() -> Self {
        let (add, mut added) = unbounded_channel();
        tokio::spawn(async move {
            let mut streams = FuturesUnordered::new();
            let mut open = true;
            while open || !streams.is_empty() {
                tokio::select! {
                    stream = added.recv(), if open => match stream {
                        Some((stream, shared)) => streams.push(write(stream, shared)),
                        None => open = false,
                    },
                    Some(()) = streams.next() => {}
                }
            }
        });
        Self(add)
    }

    /// Add a stream whose messages are in `shared`.
    pub(super) fn add(&self, stream: SendStream, shared: Arc<Shared>) {
        // The task lives as long as the handle.
        let _ = self.0.send((stream, shared));
    }
}

async fn write(mut stream: SendStream, shared: Arc<Shared>) {
    loop {
        match shared.next() {
            Action::Write(wire) => {
                if stream.write_chunk(wire).await.is_err() {
                    shared.fail();
                    return;
                }
            }
            Action::Wait => {
                shared.wait().await;
                // Other tasks may have messages for other streams.
                yield_now().await;
            }
            Action::End => {
                // Fails only if the stream was finished before or the link is down.
                let _ = stream.finish();
                return;
            }
            Action::Reset => {
                let _ = stream.reset(VarInt::from_u32(0));
                return;
            }
        }
    }
}
