// SPDX-License-Identifier: Apache-2.0
//! Follows one packet through the pipeline: the data plane's side of `packet_trace.rs`.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use softswitch_pipeline::{Named, Pass, Step, Trace};
use tokio::sync::mpsc;

use super::StreamPacket;

/// Maximum number of passes of a packet that wait for the client; further ones are left out.
const BACKLOG: usize = 256;

/// The packet that a capture looks for.
#[derive(Debug)]
pub enum Sought {
    /// The first packet with these values of parsed fields.
    Fields(Vec<(String, u128)>),
    /// A frame that the data plane receives now.
    Injected(StreamPacket),
}

/// The capture in progress, if any.
#[derive(Debug, Default)]
pub struct Captures {
    active: AtomicBool,
    state: Mutex<Option<Capture>>,
}

#[derive(Debug)]
struct Capture {
    sought: Option<Sought>,
    /// The number of the packet, once it is known.
    packet: Option<u64>,
    passes: mpsc::Sender<Trace>,
}

impl Captures {
    /// Starts a capture; returns `None` if there is another one.
    pub(super) fn start(&self, sought: Sought) -> Option<mpsc::Receiver<Trace>> {
        let mut state = self.state.lock();
        if state.is_some() {
            return None;
        }
        let (passes, receiver) = mpsc::channel(BACKLOG);
        *state = Some(Capture {
            sought: Some(sought),
            packet: None,
            passes,
        });
        self.active.store(true, Ordering::Release);
        Some(receiver)
    }

    /// Ends the capture.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        *state = None;
        // Under the lock, so that it does not end the next capture.
        self.active.store(false, Ordering::Release);
    }

    /// Returns true during a capture.
    pub(super) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// Takes the frame to inject. Afterwards, the capture looks for the next packet that enters ingress.
    pub(super) fn take_frame(&self) -> Option<StreamPacket> {
        let mut state = self.state.lock();
        let capture = state.as_mut()?;
        let Some(Sought::Injected(_)) = &capture.sought else {
            return None;
        };
        match capture.sought.replace(Sought::Fields(Vec::new())) {
            Some(Sought::Injected(frame)) => Some(frame),
            _ => None,
        }
    }

    /// Passes on the traces of the packet.
    pub(super) fn offer(&self, traces: &[Trace]) {
        if !self.is_active() {
            return;
        }
        let mut state = self.state.lock();
        let Some(capture) = state.as_mut() else {
            return;
        };
        for trace in traces {
            if capture.packet.is_none()
                && trace.pass == Pass::Ingress
                && let Some(Sought::Fields(fields)) = &capture.sought
                && fields.iter().all(|(name, value)| has(trace, name, *value))
            {
                capture.packet = Some(trace.packet);
            }
            if capture.packet == Some(trace.packet) {
                // A client that does not read has no use for further passes.
                let _ = capture.passes.try_send(trace.clone());
            }
        }
    }
}

/// Returns true if the parser extracted this value into the field.
fn has(trace: &Trace, name: &str, value: u128) -> bool {
    let Some((wanted, field)) = name.rsplit_once('.') else {
        return false;
    };
    trace.steps.iter().any(|step| match step {
        Step::Extract { header, fields } if header == wanted => {
            let Named(fields) = fields;
            let mut found = fields.iter().filter(|(name, _)| name == field);
            found.any(|(_, text)| parse(text) == Some(value))
        }
        _ => false,
    })
}

/// Reads a number in the notation of traces: decimal, or hexadecimal with `0x`.
pub fn parse(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
