// SPDX-License-Identifier: Apache-2.0
//! Errors of P4Runtime operations, and their encoding in gRPC statuses.

use prost::Message;
use softswitch_pipeline::StateError;
use tonic::{Code, Status};

use crate::proto::{google::rpc, p4::v1 as p4};

/// The space of softswitch's own error codes in `p4.v1.Error`.
const SPACE: &str = "softswitch-v1model-frontage";

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

/// The status of a batch: OK if every element succeeded, else UNKNOWN with one `p4.v1.Error` per
/// element in `google.rpc.Status.details`.
///
/// # Errors
/// If any element failed.
pub fn batch_status(what: &str, results: &[P4Result<()>]) -> Result<(), Status> {
    let failed = results.iter().filter(|r| r.is_err()).count();
    let Some(first) = results.iter().find_map(|r| r.as_ref().err()) else {
        return Ok(());
    };
    let message = format!(
        "{failed} of {} {what} failed; the first: {first}",
        results.len()
    );
    let details = results.iter().map(|result| {
        let error = match result {
            Ok(()) => p4::Error::default(),
            Err(error) => p4::Error {
                canonical_code: error.code as i32,
                message: error.message.clone(),
                space: SPACE.into(),
                ..Default::default()
            },
        };
        prost_types::Any {
            type_url: "type.googleapis.com/p4.v1.Error".into(),
            value: error.encode_to_vec(),
        }
    });
    let status = rpc::Status {
        code: Code::Unknown as i32,
        message: message.clone(),
        details: details.collect(),
    };
    Err(Status::with_details(
        Code::Unknown,
        message,
        status.encode_to_vec().into(),
    ))
}
