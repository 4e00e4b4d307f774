// SPDX-License-Identifier: Apache-2.0
//! Outcomes of requests, datagrams, lookups and flows. Each outcome has a counter and a name in the metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Defines an enum whose variants are counted, with the label value of each.
macro_rules! outcomes {
    ($(#[$about:meta])* $of:ident { $($(#[$doc:meta])* $member:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $of { $($(#[$doc])* $member,)* }

        impl $of {
            /// All outcomes, in the order of their definition.
            pub const ALL: &[Self] = &[$(Self::$member,)*];

            /// Label value of this outcome in the metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$member => $name,)* }
            }
        }

        impl Outcome for $of {
            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

/// An outcome that [`Counters`] count.
pub trait Outcome {
    /// Position in the enum's `ALL`.
    fn index(self) -> usize;
}

outcomes! {
    /// Outcome of a control connection.
    Control {
        /// The association was opened.
        Associated = "associated",
        /// The client disconnected or timed out before it sent a complete request.
        Disconnected = "disconnected",
        /// The client does not speak SOCKS 5.
        Version = "version",
        /// Client and proxy have no authentication method in common.
        Method = "method",
        /// The user name or password is wrong.
        Password = "password",
        /// The command is not UDP ASSOCIATE.
        Command = "command",
        /// The request is malformed.
        Malformed = "malformed",
        /// The client, or the proxy as a whole, has reached its limit of associations.
        AssociationLimit = "association_limit",
        /// The proxy could not open a UDP port.
        Failed = "failed",
    }
}

outcomes! {
    /// Outcome of a datagram from a client.
    ClientDatagram {
        /// Forwarded to the server.
        Forwarded = "forwarded",
        /// Queued until the name is resolved.
        Queued = "queued",
        /// Ended a flow.
        Released = "released",
        /// Not from the association's client.
        WrongSource = "wrong_source",
        /// The header is truncated.
        Malformed = "malformed",
        /// Reserved bytes are not 0.
        Reserved = "reserved",
        /// FRAG is not 0.
        Fragment = "fragment",
        /// The address type is unknown.
        AddressType = "address_type",
        /// The name is not a valid host name.
        InvalidName = "invalid_name",
        /// The port is 0.
        InvalidPort = "invalid_port",
        /// The payload is empty, and there is no such flow to release.
        Empty = "empty",
        /// The first datagram of a flow is shorter than 1200 bytes.
        TooShort = "too_short",
        /// The first datagram of a flow is not an Initial packet.
        NotInitial = "not_initial",
        /// The first datagram of a flow has an unknown QUIC version.
        QuicVersion = "quic_version",
        /// The first datagram of a flow cannot be decrypted with the Initial keys.
        Undecryptable = "undecryptable",
        /// The policy denies the destination address.
        Denied = "denied",
        /// The association has reached its limit of flows.
        FlowLimit = "flow_limit",
        /// The queue for datagrams that wait for the name is full.
        QueueFull = "queue_full",
        /// The client has used up its bandwidth.
        BandwidthLimit = "bandwidth_limit",
        /// The kernel did not accept the datagram.
        SendFailed = "send_failed",
    }
}

outcomes! {
    /// Outcome of a datagram from a server.
    ServerDatagram {
        /// Forwarded to the client.
        Forwarded = "forwarded",
        /// A Retry that the proxy answered, forwarded to the client.
        RetryAnswered = "retry_answered",
        /// A Retry whose answer would be too large, forwarded to the client, which must answer.
        RetryTooLarge = "retry_too_large",
        /// A Retry that matches no first flight, forwarded to the client.
        RetryUnknown = "retry_unknown",
        /// The client has used up its bandwidth.
        BandwidthLimit = "bandwidth_limit",
        /// The kernel did not accept the datagram.
        SendFailed = "send_failed",
    }
}

outcomes! {
    /// Outcome of resolving a name and opening a socket to its address.
    Lookup {
        /// The name was resolved and a socket to its address opened.
        Resolved = "resolved",
        /// The name does not exist.
        NoSuchName = "no_such_name",
        /// The name has no address.
        NoAddress = "no_address",
        /// No resolver answered in time.
        Timeout = "timeout",
        /// The resolvers failed.
        Failed = "failed",
        /// The policy denies all addresses of the name.
        Denied = "denied",
        /// There is no route to any address of the name.
        Unreachable = "unreachable",
        /// The system is out of sockets or ports.
        NoSocket = "no_socket",
    }
}

outcomes! {
    /// Why a flow ended.
    FlowEnd {
        /// The client released it, as it does after migration.
        Released = "released",
        /// The flow was idle for too long.
        Idle = "idle",
        /// The flow reached its maximum lifetime.
        Expired = "expired",
        /// The server's host reported an unreachable port (ICMP).
        Refused = "refused",
        /// The name could not be resolved.
        Unresolved = "unresolved",
        /// The system is out of sockets or ports.
        NoSocket = "no_socket",
        /// The association ended.
        Association = "association",
    }
}

/// One counter for each outcome of an enum.
#[derive(Debug)]
pub struct Counters(Box<[AtomicU64]>);

impl Counters {
    pub(crate) fn new(n: usize) -> Self {
        Self((0..n).map(|_| AtomicU64::new(0)).collect())
    }

    pub fn add(&self, outcome: impl Outcome) {
        self.0[outcome.index()].fetch_add(1, Relaxed);
    }

    pub fn get(&self, outcome: impl Outcome) -> u64 {
        self.0[outcome.index()].load(Relaxed)
    }
}
