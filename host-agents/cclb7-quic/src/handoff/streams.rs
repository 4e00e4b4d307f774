//! The streams that a real server was asked to answer, and what it says of each.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use frontage_handoff::message::{Reason, ToBalancer};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What a real server says about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// It leaves it to the balancer.
    Refused(Reason),
    /// All of the answer is on its way.
    Sent {
        /// Of the stream.
        final_size: u64,
        /// Of the answer.
        status: u16,
        /// Of its body.
        bytes: u64,
    },
    /// The client has all of it.
    Done,
    /// It was reset.
    Broken {
        /// The application error code.
        code: u64,
        /// Of the stream.
        final_size: u64,
    },
}

struct Stream {
    tell: UnboundedSender<News>,
    /// Some of it may have been sent.
    accepted: bool,
}

/// Those of one session.
#[derive(Default)]
pub struct Streams(Mutex<HashMap<u64, Stream>>);

impl Streams {
    fn known(&self) -> MutexGuard<'_, HashMap<u64, Stream>> {
        self.0.lock().expect("nobody panics with it")
    }

    /// One more. What is said about it; nothing more once it is forgotten or lost.
    pub fn add(&self, stream: u64) -> UnboundedReceiver<News> {
        let (tell, news) = unbounded_channel();
        let accepted = false;
        self.known().insert(stream, Stream { tell, accepted });
        news
    }

    /// Nothing more is to be said about `stream`.
    pub fn forget(&self, stream: u64) {
        self.known().remove(&stream);
    }

    /// Passes on what a message says of a stream. The others are given back.
    pub fn hear(&self, message: ToBalancer) -> Option<ToBalancer> {
        let (stream, news) = match message {
            ToBalancer::Accepted { stream } => {
                if let Some(stream) = self.known().get_mut(&stream) {
                    stream.accepted = true;
                }
                return None;
            }
            ToBalancer::Refused { stream, reason } => (stream, News::Refused(reason)),
            ToBalancer::Sent {
                stream,
                final_size,
                status,
                bytes,
            } => (
                stream,
                News::Sent {
                    final_size,
                    status,
                    bytes,
                },
            ),
            ToBalancer::Done { stream } => (stream, News::Done),
            ToBalancer::Broken {
                stream,
                code,
                final_size,
            } => (stream, News::Broken { code, final_size }),
            other => return Some(other),
        };
        if let Some(stream) = self.known().get(&stream) {
            // Nobody hears of a stream whose exchange was given up.
            let _ = stream.tell.send(news);
        }
        None
    }

    /// Those of which some may have been sent are lost.
    pub fn lose_begun(&self) {
        self.known().retain(|_, stream| !stream.accepted);
    }

    /// Nothing was sent of the others, nor will be: they are the balancer's.
    pub fn keep(&self) {
        for (_, stream) in self.known().drain().filter(|(_, stream)| !stream.accepted) {
            // As if the real server had said so, that cannot send there.
            let _ = stream.tell.send(News::Refused(Reason::Path));
        }
    }

    /// All are lost.
    pub fn lose(&self) {
        self.known().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_begun_is_kept() {
        let streams = Streams::default();
        let mut news = [0, 4, 8].map(|stream| streams.add(stream));
        for stream in [0, 4] {
            assert_eq!(streams.hear(ToBalancer::Accepted { stream }), None);
        }
        assert_eq!(streams.hear(ToBalancer::Done { stream: 0 }), None);
        let wants = ToBalancer::Wants { count: 1 };
        assert_eq!(streams.hear(wants.clone()), Some(wants));
        streams.lose_begun();
        streams.keep();
        let said = news.each_mut().map(|news| news.try_recv().ok());
        assert_eq!(
            said,
            [Some(News::Done), None, Some(News::Refused(Reason::Path))]
        );
        assert!(news.iter_mut().all(|news| news.is_closed()));
    }
}
