// SPDX-License-Identifier: Apache-2.0
//! The packet replication engine: multicast groups and clone sessions.

use std::collections::{BTreeMap, BTreeSet, HashSet};
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
    groups: BTreeMap<u32, Group>,
    sessions: BTreeMap<u32, Session>,
}

#[derive(Debug, Clone)]
struct Group {
    replicas: Vec<Replica>,
    backups: Vec<Vec<Replica>>,
    /// The replicas to make. Shared, so that a packet can keep them while the pipeline changes.
    active: Arc<[Replica]>,
}

#[derive(Debug, Clone)]
struct Session {
    written: CloneSession,
    backups: Vec<Vec<Replica>>,
    /// The copies to make.
    active: Arc<CloneSession>,
}

/// Largest clone session id: `simple_switch` uses 15 bits.
pub const MAX_CLONE_SESSION: u32 = (1 << 15) - 1;
/// Largest multicast group id: `mcast_grp` has 16 bits; 0 means no multicast.
pub const MAX_MULTICAST_GROUP: u32 = (1 << 16) - 1;

/// Checks that the replicas of `what`, a group or a session, are different.
///
/// # Errors
/// [`StateError::Invalid`], which names a replica that is listed twice.
pub fn check_replicas(what: &str, replicas: &[Replica]) -> Result<(), StateError> {
    let mut seen = HashSet::with_capacity(replicas.len());
    let mut copies = replicas.iter().map(|r| (r.port, r.instance));
    match copies.find(|copy| !seen.insert(*copy)) {
        None => Ok(()),
        Some((port, instance)) => Err(StateError::Invalid {
            what: what.to_owned(),
            reason: format!("port {port} instance {instance} is listed twice"),
        }),
    }
}

/// Returns each replica, or its first backup whose port is up while its own port is down.
fn active(replicas: &[Replica], backups: &[Vec<Replica>], down: &BTreeSet<u32>) -> Vec<Replica> {
    let is_up = |replica: &&Replica| !down.contains(&replica.port);
    let choose = |(index, replica): (usize, &Replica)| {
        let backups = backups.get(index).into_iter().flatten();
        let mut preferred = std::iter::once(replica).chain(backups);
        preferred.find(is_up).copied().unwrap_or(*replica)
    };
    replicas.iter().enumerate().map(choose).collect()
}

impl Group {
    fn select(&mut self, down: &BTreeSet<u32>) {
        self.active = active(&self.replicas, &self.backups, down).into();
    }
}

impl Session {
    fn select(&mut self, down: &BTreeSet<u32>) {
        let replicas = active(&self.written.replicas, &self.backups, down);
        self.active = Arc::new(CloneSession {
            replicas,
            ..self.written
        });
    }
}

impl Pre {
    pub(crate) fn group(&self, id: u32) -> Option<Arc<[Replica]>> {
        self.groups.get(&id).map(|group| Arc::clone(&group.active))
    }

    pub(crate) fn session(&self, id: u32) -> Option<Arc<CloneSession>> {
        self.sessions
            .get(&id)
            .map(|session| Arc::clone(&session.active))
    }

    /// Returns true if there is a session with this id.
    pub(crate) fn has_session(&self, id: u32) -> bool {
        self.sessions.contains_key(&id)
    }

    /// Returns the replicas of a group as they were written.
    pub(crate) fn replicas(&self, id: u32) -> Option<&[Replica]> {
        self.groups.get(&id).map(|group| &group.replicas[..])
    }

    /// Returns a session as it was written.
    pub(crate) fn written_session(&self, id: u32) -> Option<&CloneSession> {
        self.sessions.get(&id).map(|session| &session.written)
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = (u32, &[Replica])> {
        self.groups.iter().map(|(&id, g)| (id, &g.replicas[..]))
    }

    pub(crate) fn sessions(&self) -> impl Iterator<Item = (u32, &CloneSession)> {
        self.sessions.iter().map(|(&id, s)| (id, &s.written))
    }

    /// Sets the backups of each replica of a group.
    pub(crate) fn set_group_backups(
        &mut self,
        id: u32,
        backups: Vec<Vec<Replica>>,
        down: &BTreeSet<u32>,
    ) -> Result<(), StateError> {
        let group = self.groups.get_mut(&id);
        let group = group.ok_or_else(|| StateError::NotFound {
            what: format!("multicast group {id}"),
        })?;
        group.backups = backups;
        group.select(down);
        Ok(())
    }

    /// Sets the backups of each replica of a session.
    pub(crate) fn set_session_backups(
        &mut self,
        id: u32,
        backups: Vec<Vec<Replica>>,
        down: &BTreeSet<u32>,
    ) -> Result<(), StateError> {
        let session = self.sessions.get_mut(&id);
        let session = session.ok_or_else(|| StateError::NotFound {
            what: format!("clone session {id}"),
        })?;
        session.backups = backups;
        session.select(down);
        Ok(())
    }

    /// Chooses replicas and backups after a change of a port's state.
    pub(crate) fn reselect(&mut self, down: &BTreeSet<u32>) {
        let has_backups = |backups: &[Vec<Replica>]| backups.iter().any(|b| !b.is_empty());
        let groups = self.groups.values_mut();
        groups
            .filter(|group| has_backups(&group.backups))
            .for_each(|group| group.select(down));
        let sessions = self.sessions.values_mut();
        sessions
            .filter(|session| has_backups(&session.backups))
            .for_each(|session| session.select(down));
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
        let group = Group {
            active: replicas.clone().into(),
            replicas,
            backups: vec![],
        };
        self.groups.insert(id, group);
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
        let session = Session {
            active: session.clone().into(),
            written: session,
            backups: vec![],
        };
        self.sessions.insert(id, session);
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
