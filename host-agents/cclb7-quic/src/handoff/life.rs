//! How long a real server keeps a path.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::watch;

use super::session::Session;

/// Of a session.
pub struct Life {
    stage: watch::Sender<Stage>,
    /// Requests that are on it or about to be.
    held: AtomicUsize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Live,
    /// It is given no streams any more.
    Ending,
    /// The path is the balancer's again, or nobody's.
    Over,
}

impl Default for Life {
    fn default() -> Self {
        Self {
            stage: watch::Sender::new(Stage::Live),
            held: AtomicUsize::new(0),
        }
    }
}

impl Life {
    /// Whether it can be given no streams any more.
    pub fn has_ended(&self) -> bool {
        *self.stage.borrow() != Stage::Live
    }

    /// Whether some request is on it or about to be.
    pub fn is_held(&self) -> bool {
        self.held.load(Relaxed) > 0
    }

    /// It is to be given no more. Whether that is news.
    pub fn end(&self) -> bool {
        self.stage.send_if_modified(|stage| {
            let was_live = *stage == Stage::Live;
            if was_live {
                *stage = Stage::Ending;
            }
            was_live
        })
    }

    /// The path is not the real server's any more.
    pub fn over(&self) {
        self.stage.send_replace(Stage::Over);
    }

    /// Ready once that is so.
    pub async fn wait_until_over(&self) {
        let mut stage = self.stage.subscribe();
        // The sender is here: this does not fail.
        let _ = stage.wait_for(|stage| *stage == Stage::Over).await;
    }
}

/// Keeps a session from being idle.
pub struct Held(Arc<Session>);

impl Held {
    /// For one more request.
    pub fn new(session: Arc<Session>) -> Self {
        session.life.held.fetch_add(1, Relaxed);
        Self(session)
    }
}

impl Deref for Held {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.life.held.fetch_sub(1, Relaxed);
    }
}
