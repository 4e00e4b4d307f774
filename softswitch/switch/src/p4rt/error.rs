// SPDX-License-Identifier: Apache-2.0
//! Errors of P4Runtime operations, and their encoding in gRPC statuses.

use prost::{Message, length_delimiter_len};
use softswitch_pipeline::StateError;
use tonic::{Code, Status};

use crate::proto::{google::rpc, p4::v1 as p4};

/// The space of softswitch's own error codes in `p4.v1.Error`.
const SPACE: &str = "softswitch-v1model-frontage";

/// Most bytes of a status's details. gRPC's C core rejects a response whose metadata exceed the client's limit, which
/// controllers raise to 64 KiB; in base64, the details need a third more than here.
const MAX_DETAILS: usize = 44 << 10;

/// The message by which clients recognize a device without a program.
pub const NO_PIPELINE: &str = "No forwarding pipeline config set for this device";

/// Why one update or one read request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct P4Error {
    /// The canonical code.
    pub code: Code,
    /// The object, the fault and the fix.
    pub message: String,
}

/// The result of one update or one read request.
pub type P4Result<T> = Result<T, P4Error>;

macro_rules! constructors {
    ($($name:ident, $code:ident);* $(;)?) => {
        impl P4Error {$(
            #[doc = concat!("An error with code `", stringify!($code), "`.")]
            pub fn $name(message: impl Into<String>) -> Self {
                Self { code: Code::$code, message: message.into() }
            }
        )*}
    };
}

constructors! {
    aborted, Aborted;
    already_exists, AlreadyExists;
    failed_precondition, FailedPrecondition;
    invalid, InvalidArgument;
    not_found, NotFound;
    out_of_range, OutOfRange;
    permission_denied, PermissionDenied;
    resource_exhausted, ResourceExhausted;
    unimplemented, Unimplemented;
}

impl From<StateError> for P4Error {
    fn from(error: StateError) -> Self {
        let code = match error {
            StateError::NoSuchObject { .. } | StateError::NotFound { .. } => Code::NotFound,
            StateError::Full { .. } => Code::ResourceExhausted,
            StateError::AlreadyExists { .. } => Code::AlreadyExists,
            StateError::InUse { .. } => Code::FailedPrecondition,
            StateError::Constant { .. } => Code::PermissionDenied,
            StateError::TooWide { .. } | StateError::IndexOutOfRange { .. } => Code::OutOfRange,
            _ => Code::InvalidArgument,
        };
        Self {
            code,
            message: error.to_string(),
        }
    }
}

impl From<P4Error> for Status {
    fn from(error: P4Error) -> Self {
        Status::new(error.code, error.message)
    }
}

/// The status of a batch: OK if every element succeeded, else UNKNOWN with one `p4.v1.Error` per element in
/// `google.rpc.Status.details`, as far as [`MAX_DETAILS`] permits.
///
/// # Errors
/// If any element failed.
pub fn batch_status(what: &str, results: &[P4Result<()>]) -> Result<(), Status> {
    let failed = results.iter().filter(|r| r.is_err()).count();
    let mut numbered = (1..).zip(results);
    let Some((number, first)) = numbered.find_map(|(n, r)| Some((n, r.as_ref().err()?))) else {
        return Ok(());
    };
    let all = results.len();
    let message = format!("{failed} of {all} {what} failed; the first is number {number}: {first}");
    let status = rpc::Status {
        code: Code::Unknown as i32,
        message: message.clone(),
        details: details(results),
    };
    Err(Status::with_details(
        Code::Unknown,
        message,
        status.encode_to_vec().into(),
    ))
}

/// Returns one error per element. Messages that do not fit are left out, and all errors if even their codes do not fit.
fn details(results: &[P4Result<()>]) -> Vec<prost_types::Any> {
    let mut details: Vec<_> = results.iter().map(|result| detail(result, false)).collect();
    let needed: usize = details.iter().map(size).sum();
    let Some(mut room) = MAX_DETAILS.checked_sub(needed) else {
        return Vec::new();
    };
    for (short, result) in details.iter_mut().zip(results) {
        let long = detail(result, true);
        let Some(rest) = room.checked_sub(size(&long) - size(short)) else {
            break;
        };
        (*short, room) = (long, rest);
    }
    details
}

fn detail(result: &P4Result<()>, with_message: bool) -> prost_types::Any {
    let mut error = p4::Error::default();
    if let Err(P4Error { code, message }) = result {
        error.canonical_code = *code as i32;
        if with_message {
            error.message.clone_from(message);
            error.space = SPACE.into();
        }
    }
    prost_types::Any {
        type_url: "type.googleapis.com/p4.v1.Error".into(),
        value: error.encode_to_vec(),
    }
}

/// Returns the length of an element of the details in bytes, with its tag and the length of its length.
fn size(detail: &prost_types::Any) -> usize {
    let length = detail.encoded_len();
    1 + length_delimiter_len(length) + length
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the message of a batch's status, and the code and message of each error in its details.
    fn status(results: &[P4Result<()>]) -> (String, Vec<(i32, String)>) {
        let status = batch_status("updates", results).expect_err("some failed");
        let inner = rpc::Status::decode(status.details()).expect("a status");
        assert_eq!(inner.message, status.message());
        assert!(status.details().len() <= MAX_DETAILS + 1_000);
        let errors = inner.details.iter().map(|any| {
            let error = p4::Error::decode(&any.value[..]).expect("an error");
            (error.canonical_code, error.message)
        });
        (status.message().to_owned(), errors.collect())
    }

    /// Returns the results of a batch whose elements failed from one on.
    fn results(all: usize, first_failed: usize) -> Vec<P4Result<()>> {
        let result = |n| match n < first_failed {
            true => Ok(()),
            false => Err(P4Error::not_found(format!("entry {n}: {}", "x".repeat(90)))),
        };
        (0..all).map(result).collect()
    }

    #[test]
    fn status_of_a_batch_has_an_error_per_element() {
        assert!(batch_status("updates", &results(3, 3)).is_ok());
        let (message, errors) = status(&results(3, 1));
        assert!(message.starts_with("2 of 3 updates failed; the first is number 2: entry 1: x"));
        assert_eq!(errors[0], (0, String::new()));
        assert_eq!(errors[2].0, Code::NotFound as i32);
        assert!(errors[2].1.starts_with("entry 2: x"));
    }

    #[test]
    fn messages_that_do_not_fit_into_the_metadata_are_left_out() {
        let (_, errors) = status(&results(600, 10));
        assert_eq!(errors.len(), 600);
        assert!(errors[10].1.starts_with("entry 10:"));
        assert_eq!(errors[599], (Code::NotFound as i32, String::new()));
    }

    #[test]
    fn errors_that_do_not_fit_into_the_metadata_are_left_out() {
        let (message, errors) = status(&results(2_000, 1_500));
        assert!(message.starts_with("500 of 2000 updates failed; the first is number 1501:"));
        assert!(errors.is_empty());
    }
}
