//! What becomes of requests, datagrams, names and flows: each outcome has a name and a counter.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An enumeration whose members are counted by name.
macro_rules! outcomes {
    ($(#[$about:meta])* $of:ident { $($(#[$doc:meta])* $member:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $of { $($(#[$doc])* $member,)* }

        impl $of {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$member,)*];

            /// As the metrics have it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$member => $name,)* }
            }
        }

        impl Outcome for $of {
            fn number(self) -> usize {
                self as usize
            }
        }
    };
}

/// A member of such an enumeration.
pub trait Outcome {
    /// Its place among them.
    fn number(self) -> usize;
}

outcomes! {
    /// Of a control connection.
    Control {
        /// It has an association.
        Associated = "associated",
        /// It did not say in time what it wants, or went away before.
        Gone = "gone",
        /// It does not speak SOCKS 5.
        Version = "version",
        /// No authentication method is common.
        Method = "method",
        /// User name or password is wrong.
        Password = "password",
        /// It wants something else than UDP ASSOCIATE.
        Command = "command",
        /// The request is malformed.
        Malformed = "malformed",
        /// There are enough associations, of this client or of all.
        Limit = "limit",
        /// No port could be opened.
        Failed = "failed",
    }
}

outcomes! {
    /// Of a client's datagram.
    FromClient {
        /// It went to the server.
        Forwarded = "forwarded",
        /// It waits for the name's address.
        Waiting = "waiting",
        /// It ended a flow.
        Released = "released",
        /// It is not from the association's client.
        Foreign = "foreign",
        /// Its header ends too early.
        Malformed = "malformed",
        /// Reserved octets are not 0.
        Reserved = "reserved",
        /// FRAG is not 0.
        Fragment = "fragment",
        /// The type of its address is unknown.
        AddressType = "address_type",
        /// The name is no host's.
        Name = "name",
        /// The port is 0.
        Port = "port",
        /// It carries nothing, and there is no such flow.
        Empty = "empty",
        /// A flow must begin with an Initial packet; this has fewer than 1200 bytes.
        Short = "short",
        /// A flow must begin with an Initial packet.
        NotInitial = "not_initial",
        /// A flow must begin with an Initial packet of a known version.
        QuicVersion = "quic_version",
        /// A flow must begin with an Initial packet; the keys do not open this.
        Forged = "forged",
        /// The address is one to which nothing is forwarded.
        Denied = "denied",
        /// The client has flows enough.
        Flows = "flows",
        /// Too many wait for the name's address.
        Queue = "queue",
        /// The client's bandwidth is used up.
        Bandwidth = "bandwidth",
        /// The kernel did not take it.
        NotSent = "not_sent",
    }
}

outcomes! {
    /// Of a server's datagram.
    FromServer {
        /// It went to the client.
        Forwarded = "forwarded",
        /// It went to the client, and was a Retry that was answered.
        RetryAnswered = "retry_answered",
        /// It went to the client, which has to answer this Retry: the answer would be too large.
        RetryTooLarge = "retry_too_large",
        /// A Retry to no first flight that waits for one.
        RetryUnknown = "retry_unknown",
        /// The client's bandwidth is used up.
        Bandwidth = "bandwidth",
        /// The kernel did not take it.
        NotSent = "not_sent",
    }
}

outcomes! {
    /// Of a name.
    Name {
        /// It has an address.
        Resolved = "resolved",
        /// There is no such name.
        NoSuchName = "no_such_name",
        /// It has no address.
        NoAddress = "no_address",
        /// No resolver answered in time.
        Timeout = "timeout",
        /// The resolvers failed.
        Failed = "failed",
        /// Its addresses are ones to which nothing is forwarded.
        Denied = "denied",
        /// No route leads to its addresses.
        Unreachable = "unreachable",
        /// The system has no more sockets or ports.
        NoSocket = "no_socket",
    }
}

outcomes! {
    /// Why a flow ended.
    End {
        /// The client gave it up, as it does when it has migrated.
        Released = "released",
        /// Nothing came for some time.
        Idle = "idle",
        /// It lasted as long as it may.
        Expired = "expired",
        /// The server's host has no such port (ICMP).
        Refused = "refused",
        /// The name has no address for it.
        Unresolved = "unresolved",
        /// It did not begin: the system has no more sockets or ports.
        NoSocket = "no_socket",
        /// Its association ended.
        Association = "association",
    }
}

/// A counter for each outcome.
#[derive(Debug)]
pub struct Counters(Box<[AtomicU64]>);

impl Counters {
    pub(crate) fn new(n: usize) -> Self {
        Self((0..n).map(|_| AtomicU64::new(0)).collect())
    }

    pub fn add(&self, outcome: impl Outcome) {
        self.0[outcome.number()].fetch_add(1, Relaxed);
    }

    pub fn get(&self, outcome: impl Outcome) -> u64 {
        self.0[outcome.number()].load(Relaxed)
    }
}
