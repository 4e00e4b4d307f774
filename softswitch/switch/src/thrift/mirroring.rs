// SPDX-License-Identifier: Apache-2.0
//! Mirroring sessions.

use std::convert::Infallible;

use softswitch_pipeline::MAX_CLONE_SESSION;
use softswitch_thrift::interface::{Mirroring, MirroringError, MirroringSession, MulticastError};

use super::Services;

type Result<T> = std::result::Result<T, MirroringError>;

/// Returns the number of a session.
fn session_id(id: i32) -> Result<u32> {
    let id = u32::try_from(id).ok().filter(|id| *id <= MAX_CLONE_SESSION);
    id.ok_or(MirroringError::SessionNotFound)
}

fn not_found(_: MulticastError) -> MirroringError {
    MirroringError::SessionNotFound
}

impl Mirroring for Services {
    fn mirroring_mapping_add(&self, id: i32, port: i32) -> std::result::Result<i32, Infallible> {
        let session = MirroringSession {
            port: Some(port),
            mgid: None,
        };
        Ok(i32::from(self.mirroring_session_add(id, session).is_ok()))
    }

    fn mirroring_mapping_delete(&self, id: i32) -> std::result::Result<i32, Infallible> {
        Ok(i32::from(self.mirroring_session_delete(id).is_ok()))
    }

    fn mirroring_mapping_get_egress_port(&self, id: i32) -> std::result::Result<i32, Infallible> {
        let session = self.mirroring_session_get(id);
        Ok(session.ok().and_then(|s| s.port).unwrap_or(-1))
    }

    fn mirroring_session_add(&self, id: i32, session: MirroringSession) -> Result<()> {
        let id = session_id(id)?;
        if session.port.into_iter().chain(session.mgid).any(|n| n < 0) {
            return Err(MirroringError::SessionNotFound);
        }
        let added = self.on_replication(|pre| {
            pre.set_session(id, Some(session));
            Ok(())
        });
        added.map_err(not_found)
    }

    fn mirroring_session_delete(&self, id: i32) -> Result<()> {
        let id = session_id(id)?;
        let deleted = self.on_replication(|pre| {
            let existed = pre.session(id).is_some();
            pre.set_session(id, None);
            existed.then_some(()).ok_or(MulticastError::Error)
        });
        deleted.map_err(not_found)
    }

    fn mirroring_session_get(&self, id: i32) -> Result<MirroringSession> {
        let id = session_id(id)?;
        let session = self.on_replication(|pre| {
            let session = pre.session(id).cloned();
            session.ok_or(MulticastError::Error)
        });
        session.map_err(not_found)
    }
}
