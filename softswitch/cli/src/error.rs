// SPDX-License-Identifier: Apache-2.0
//! Errors of commands, and the text of a P4Runtime server's statuses.

use prost::Message;
use tonic::{Code, Status};

use crate::proto::google::rpc;
use crate::proto::p4::v1 as p4;

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The arguments do not have the command's form.
    #[error("wrong number of arguments")]
    Usage,
    /// The fault and the fix, without the place.
    #[error("{0}")]
    Failed(String),
}

/// The result of a command or of a part of it.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns an error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let advice = match status.code() {
            Code::Unimplemented => {
                ": this server does not offer it over P4Runtime; use Thrift (simple_switch_CLI)"
            }
            Code::Unavailable => ": check that the switch runs, and --addr",
            _ => "",
        };
        Self::new(format!("{}{advice}", faults(&status)))
    }
}

/// Returns the faults of a status. A failed batch has one status per update in its details (P4Runtime specification,
/// section "Error reporting").
fn faults(status: &Status) -> String {
    let name = |code: i32| format!("{:?}", Code::from_i32(code));
    let details = rpc::Status::decode(status.details()).unwrap_or_default();
    let errors = details.details.iter().filter_map(|detail| {
        let error = p4::Error::decode(detail.value.as_slice()).ok()?;
        let is_fault = error.canonical_code != Code::Ok as i32;
        is_fault.then(|| format!("{} ({})", error.message, name(error.canonical_code)))
    });
    let errors: Vec<String> = errors.collect();
    match errors.is_empty() {
        true => format!("{} ({})", status.message(), name(status.code() as i32)),
        false => errors.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_status_shows_faults_of_updates() {
        let errors = [
            (Code::Ok, ""),
            (Code::NotFound, "no entry"),
            (Code::OutOfRange, "too wide"),
        ];
        let details = errors.map(|(code, message)| prost_types::Any {
            type_url: "type.googleapis.com/p4.v1.Error".into(),
            value: p4::Error {
                canonical_code: code as i32,
                message: message.into(),
                ..Default::default()
            }
            .encode_to_vec(),
        });
        let status = rpc::Status {
            code: Code::Unknown as i32,
            message: "batch".into(),
            details: details.to_vec(),
        };
        let status = Status::with_details(Code::Unknown, "batch", status.encode_to_vec().into());
        let text = Error::from(status).to_string();
        assert_eq!(text, "no entry (NotFound); too wide (OutOfRange)");
    }

    #[test]
    fn unimplemented_names_thrift() {
        let text = Error::from(Status::unimplemented("registers")).to_string();
        assert!(
            text.contains("registers") && text.contains("Thrift"),
            "{text}"
        );
    }
}
