// SPDX-License-Identifier: Apache-2.0
//! The errors of the library: those of `enum fqs_result`.

use std::io;

use frontage_quicsocks_client::Error;
use frontage_quicsocks_client::socks::Reply;
use libc::c_int;

/// Why a function failed. The header documents each reason.
#[derive(Debug)]
pub enum Failure {
    Again,
    Invalid,
    System(io::Error),
    Busy,
    ProxyClosed,
    NotAllowed,
    NoAddress,
    Refused,
    Proxy,
}

impl Failure {
    /// Return the value of `enum fqs_result`, and set `errno` for a system error.
    pub fn into_code(self) -> c_int {
        if let Self::System(error) = &self {
            // SAFETY: the C library's errno of this thread.
            unsafe { *libc::__errno_location() = errno(error) };
        }
        match self {
            Self::Again => -1,
            Self::Invalid => -2,
            Self::System(_) => -3,
            Self::Busy => -4,
            Self::ProxyClosed => -5,
            Self::NotAllowed => -6,
            Self::NoAddress => -7,
            Self::Refused => -8,
            Self::Proxy => -9,
        }
    }
}

/// Errors without a number come from name resolution and from the time limit of the SOCKS handshake.
fn errno(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::TimedOut => libc::ETIMEDOUT,
        _ => libc::EHOSTUNREACH,
    })
}

impl From<Reply> for Failure {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::NotAllowed => Self::NotAllowed,
            Reply::HostUnreachable => Self::NoAddress,
            Reply::Refused => Self::Refused,
            Reply::Succeeded | Reply::Failure | Reply::Command | Reply::AddressType => Self::Proxy,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock => Self::Again,
            io::ErrorKind::InvalidInput => Self::Invalid,
            io::ErrorKind::UnexpectedEof => Self::ProxyClosed,
            _ => Self::System(error),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Rejected(reply) => reply.into(),
            Error::ProxyClosed => Self::ProxyClosed,
            Error::Io(error) => error.into(),
            // Errors of noq, which this library does not use.
            Error::Connect(_) | Error::Handshake(_) => Self::Proxy,
        }
    }
}

/// Return the description of a result, which ends with NUL.
pub const fn text(code: c_int) -> &'static std::ffi::CStr {
    match code {
        0.. => c"success",
        -1 => c"nothing to receive, or no room to send",
        -2 => c"invalid argument",
        -3 => c"system error",
        -4 => c"the association carries a connection already",
        -5 => c"the proxy closed the association",
        -6 => c"not allowed by the proxy",
        -7 => c"the name has no reachable address",
        -8 => c"connection refused by the server",
        -9 => c"the proxy failed",
        _ => c"unknown result",
    }
}
