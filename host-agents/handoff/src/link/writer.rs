//! What writes the streams of an auxiliary connection: one task for all, so that what it finds to write in one turn leaves in few packets. A task for each
//! stream would have noq send a packet for each, as soon as it has the first.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use noq::{SendStream, VarInt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::yield_now;

use super::streams::{Next, Shared};

/// Writes streams until each has ended.
#[derive(Clone, Debug)]
pub(super) struct Writer(UnboundedSender<(SendStream, Arc<Shared>)>);

impl Writer {
    /// Must be called within a Tokio runtime.
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

    /// Writes what is `shared`, too.
    pub(super) fn add(&self, stream: SendStream, shared: Arc<Shared>) {
        // Its task lives as long as this.
        let _ = self.0.send((stream, shared));
    }
}

async fn write(mut stream: SendStream, shared: Arc<Shared>) {
    loop {
        match shared.next() {
            Next::Write(wire) => {
                if stream.write_chunk(wire).await.is_err() {
                    shared.fail();
                    return;
                }
            }
            Next::Wait => {
                shared.wait().await;
                // Whoever runs now may have something for other streams.
                yield_now().await;
            }
            Next::End => {
                // It fails only if it was finished before, or the link is down.
                let _ = stream.finish();
                return;
            }
            Next::Reset => {
                let _ = stream.reset(VarInt::from_u32(0));
                return;
            }
        }
    }
}
