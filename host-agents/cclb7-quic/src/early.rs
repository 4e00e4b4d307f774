// SPDX-License-Identifier: Apache-2.0
//! Requests before the handshake is complete: early data (RFC 9001, section 4.6), which an attacker can replay.
//!
//! - A session ticket is accepted once, and only by the server that issued it (RFC 8446, section 8.1). A copy of early data is
//!   therefore only processed if it arrives instead of the original.
//! - Requests with unsafe methods wait for the end of the handshake (RFC 8470, section 3), which no attacker can complete.
//! - A real server does not know how much may be sent to an address that is not validated (RFC 9000, section 8.1), so
//!   requests are delegated only to validated addresses until then.

use futures_util::FutureExt as _;
use http::Method;
use noq::{Connection, ConnectionError, Incoming};
use tokio::sync::{OwnedSemaphorePermit, watch};

/// The progress of a connection's handshake.
#[derive(Clone, Debug)]
pub struct HandshakeProgress {
    /// The connection, if its handshake was not complete at first.
    connection: Option<Connection>,
    is_complete: watch::Receiver<bool>,
    /// True if the client's first packet had a token of this server, of a Retry or of an earlier connection.
    is_validated: bool,
}

impl HandshakeProgress {
    /// Accept `incoming` and wait until its handshake is complete. `permit` counts it as unvalidated until then.
    ///
    /// # Errors
    /// If the handshake fails.
    pub async fn complete(
        incoming: Incoming,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<(Connection, Self), ConnectionError> {
        let connection = incoming.await?;
        drop(permit);
        let (_, is_complete) = watch::channel(true);
        let handshake = Self {
            connection: None,
            is_complete,
            is_validated: true,
        };
        Ok((connection, handshake))
    }

    /// Accept `incoming` and return once the server can respond, before the handshake is complete. `permit` counts it as
    /// unvalidated until it is complete or has failed.
    ///
    /// # Errors
    /// If the handshake has failed already.
    pub async fn begin(
        incoming: Incoming,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<(Connection, Self), ConnectionError> {
        let is_validated = permit.is_none();
        let mut connecting = incoming.accept()?;
        connecting.handshake_data().await?;
        let Ok((connection, _)) = connecting.into_0rtt() else {
            unreachable!("a server's connection can respond before the handshake is complete");
        };
        let (complete, is_complete) = watch::channel(false);
        let handshaking = connection.clone();
        tokio::spawn(async move {
            // For a server, the completed handshake is confirmed (RFC 9001, section 4.1.2).
            let confirmed = handshaking.handshake_confirmed().await;
            drop(permit);
            if confirmed.is_ok() {
                complete.send_replace(true);
            }
        });
        let handshake = Self {
            connection: Some(connection.clone()),
            is_complete,
            is_validated,
        };
        Ok((connection, handshake))
    }

    /// Return whether the handshake is complete.
    pub fn is_complete(&self) -> bool {
        let is_confirmed = |connection: &Connection| {
            // The task that waits for it may not have run yet.
            matches!(
                connection.handshake_confirmed().now_or_never(),
                Some(Ok(()))
            )
        };
        *self.is_complete.borrow() || self.connection.as_ref().is_some_and(is_confirmed)
    }

    /// Return an error if the handshake of `connection`, which is closed, has failed.
    ///
    /// # Errors
    /// Why the connection was closed.
    pub fn outcome(&self, connection: &Connection) -> anyhow::Result<()> {
        match connection.close_reason() {
            Some(reason) if !self.is_complete() => Err(reason.into()),
            _ => Ok(()),
        }
    }

    /// Wait until the handshake is complete. Returns false if it has failed.
    pub async fn completed(&self) -> bool {
        let mut is_complete = self.is_complete.clone();
        is_complete.wait_for(|complete| *complete).await.is_ok()
    }

    /// Wait until a request with `method` may be processed. Returns false if the handshake has failed.
    pub async fn admits(&self, method: &Method) -> bool {
        method.is_safe() || self.completed().await
    }

    /// Wait until the client's address is validated. Returns false if the handshake has failed.
    pub async fn validates_address(&self) -> bool {
        self.is_validated || self.completed().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake(is_validated: bool) -> (watch::Sender<bool>, HandshakeProgress) {
        let (complete, is_complete) = watch::channel(false);
        let handshake = HandshakeProgress {
            connection: None,
            is_complete,
            is_validated,
        };
        (complete, handshake)
    }

    #[test]
    fn unsafe_requests_wait_for_the_end_of_the_handshake() {
        let (complete, handshake) = handshake(true);
        let admits = |method| handshake.admits(method).now_or_never();
        assert_eq!(
            (admits(&Method::GET), admits(&Method::POST)),
            (Some(true), None)
        );
        complete.send_replace(true);
        assert_eq!(admits(&Method::POST), Some(true));
    }

    #[test]
    fn failed_handshake_refuses_unsafe_requests() {
        let (complete, handshake) = handshake(true);
        drop(complete);
        let admits = handshake.admits(&Method::POST).now_or_never();
        assert_eq!(admits, Some(false));
    }

    #[test]
    fn only_a_token_validates_an_address_before_the_end_of_the_handshake() {
        let (_waiting, known) = handshake(true);
        let (complete, unknown) = handshake(false);
        let validates =
            |handshake: &HandshakeProgress| handshake.validates_address().now_or_never();
        assert_eq!((validates(&known), validates(&unknown)), (Some(true), None));
        complete.send_replace(true);
        assert_eq!(validates(&unknown), Some(true));
    }
}
