// SPDX-License-Identifier: Apache-2.0
//! A connection and its successors at the servers to which its server hands it over (docs/moves.md).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::sync::Mutex;

use super::{Client, Session, Target};
use crate::Error;

/// The connection for new requests. Requests in progress stay on the connection on which they began.
pub struct Roaming {
    client: Client,
    current: RefCell<(Target, Rc<Session>)>,
    /// Held while a successor is opened.
    opening: Mutex<()>,
}

impl Roaming {
    /// Connects to `target`.
    ///
    /// # Errors
    /// Returns why the handshake failed.
    pub async fn connect(client: &Client, target: &Target) -> Result<Self, Error> {
        let session = client.connect(target).await?;
        Ok(Self {
            client: client.clone(),
            current: RefCell::new((target.clone(), Rc::new(session))),
            opening: Mutex::new(()),
        })
    }

    /// Returns the connection for the next request: at the next server, if the current one has announced it.
    ///
    /// If the next server cannot be reached, the current connection stays in use. Its server closes it in the end.
    pub async fn session(&self) -> Rc<Session> {
        let _opening = self.opening.lock().await;
        let (target, session) = self.current.borrow().clone();
        let Some(address) = session.successor().filter(|next| *next != target.address) else {
            return session;
        };
        let next = Target { address, ..target };
        match self.client.connect(&next).await {
            Ok(opened) => {
                let opened = Rc::new(opened);
                self.client.moves.handed_over.fetch_add(1, Relaxed);
                // The previous connection is closed with its last request.
                *self.current.borrow_mut() = (next, opened.clone());
                opened
            }
            Err(_) => session,
        }
    }

    /// Closes the current connection and waits until the close was sent. Does nothing while a request is in progress.
    pub async fn close(self) {
        let (_, session) = self.current.into_inner();
        if let Some(session) = Rc::into_inner(session) {
            session.close().await;
        }
    }

    /// Returns true if the current connection is closed, by either side.
    pub fn is_closed(&self) -> bool {
        self.current.borrow().1.is_closed()
    }
}
