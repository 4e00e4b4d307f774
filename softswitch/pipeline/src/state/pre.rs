// SPDX-License-Identifier: Apache-2.0
//! The packet replication engine: multicast groups and clone sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::StateError;

/// One copy made by a multicast group or a clone session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replica {
    /// The egress port of the copy.
    pub port: u32,
    /// `standard_metadata.egress_rid` of the copy.
    pub instance: u16,
}

/// A clone session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneSession {
    /// The copies to make.
    pub replicas: Vec<Replica>,
    /// Length in bytes to which the copies are truncated on egress; 0 means whole packets.
    pub truncate_to: u32,
    /// `priority` of the copies' [`Descriptor`](crate::Descriptor)s: P4Runtime's class of service.
    pub class_of_service: u8,
}

/// Multicast groups and clone sessions, by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pre {
    // Shared, so that a packet can keep one while the pipeline changes.
    groups: BTreeMap<u32, Arc<[Replica]>>,
    sessions: BTreeMap<u32, Arc<CloneSession>>,
}

/// Largest clone session id: `simple_switch` uses 15 bits.
pub const MAX_CLONE_SESSION: u32 = (1 << 15) - 1;
/// Largest multicast group id: `mcast_grp` has 16 bits; 0 means no multicast.
pub const MAX_MULTICAST_GROUP: u32 = (1 << 16) - 1;

fn check_replicas(what: &str, replicas: &[Replica]) -> Result<(), StateError> {
    for (i, r) in replicas.iter().enumerate() {
        if replicas[..i].contains(r) {
            return Err(StateError::Invalid {
                what: what.to_owned(),
                reason: format!("port {} instance {} is listed twice", r.port, r.instance),
            });
        }
    }
    Ok(())
}

impl Pre {
    pub(crate) fn group(&self, id: u32) -> Option<Arc<[Replica]>> {
        self.groups.get(&id).cloned()
    }

    pub(crate) fn session(&self, id: u32) -> Option<Arc<CloneSession>> {
        self.sessions.get(&id).cloned()
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = (u32, &[Replica])> {
        self.groups.iter().map(|(&id, r)| (id, &**r))
    }

    pub(crate) fn sessions(&self) -> impl Iterator<Item = (u32, &CloneSession)> {
        self.sessions.iter().map(|(&id, s)| (id, &**s))
    }

    /// Inserts, or replaces if `replace`.
    pub(crate) fn set_group(
        &mut self,
        id: u32,
        replicas: Vec<Replica>,
        replace: bool,
    ) -> Result<(), StateError> {
        let what = format!("multicast group {id}");
        if id == 0 || id > MAX_MULTICAST_GROUP {
            return Err(StateError::Invalid {
                what,
                reason: format!("the id must be 1..={MAX_MULTICAST_GROUP}"),
            });
        }
        check_exists(&what, self.groups.contains_key(&id), replace)?;
        check_replicas(&what, &replicas)?;
        self.groups.insert(id, replicas.into());
        Ok(())
    }

    pub(crate) fn delete_group(&mut self, id: u32) -> Result<(), StateError> {
        self.groups
            .remove(&id)
            .map(drop)
            .ok_or_else(|| StateError::NotFound {
                what: format!("multicast group {id}"),
            })
    }

    /// Inserts, or replaces if `replace`.
    pub(crate) fn set_session(
        &mut self,
        id: u32,
        session: CloneSession,
        replace: bool,
    ) -> Result<(), StateError> {
        let what = format!("clone session {id}");
        if id > MAX_CLONE_SESSION {
            return Err(StateError::Invalid {
                what,
                reason: format!("the id must be at most {MAX_CLONE_SESSION}"),
            });
        }
        check_exists(&what, self.sessions.contains_key(&id), replace)?;
        check_replicas(&what, &session.replicas)?;
        self.sessions.insert(id, session.into());
        Ok(())
    }

    pub(crate) fn delete_session(&mut self, id: u32) -> Result<(), StateError> {
        self.sessions
            .remove(&id)
            .map(drop)
            .ok_or_else(|| StateError::NotFound {
                what: format!("clone session {id}"),
            })
    }
}

fn check_exists(what: &str, exists: bool, wanted: bool) -> Result<(), StateError> {
    match (exists, wanted) {
        (true, false) => Err(StateError::AlreadyExists {
            what: what.to_owned(),
        }),
        (false, true) => Err(StateError::NotFound {
            what: what.to_owned(),
        }),
        _ => Ok(()),
    }
}
