// SPDX-License-Identifier: Apache-2.0
//! The switch's own events in the log. Those of libraries stay out.

use std::fmt::{Debug, Write};
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::Log;
use super::LogLevel;

/// Events of this and the other crates of softswitch.
const OWN: &str = "softswitch";

/// The layer that writes events to a log.
pub struct Events(pub Arc<Log>);

impl<S: Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target().starts_with(OWN) {
            let mut message = Message(String::new());
            event.record(&mut message);
            self.0.line(level(*metadata.level()), message.0);
        }
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::TRACE => LogLevel::Trace,
        Level::DEBUG => LogLevel::Debug,
        Level::INFO => LogLevel::Info,
        Level::WARN => LogLevel::Warn,
        Level::ERROR => LogLevel::Error,
    }
}

/// The text of an event, without its other fields, of which own events have none.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // A String takes everything.
            let _ = write!(self.0, "{value:?}");
        }
    }
}
