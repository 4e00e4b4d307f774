// SPDX-License-Identifier: Apache-2.0
//! Errors of updates and reads, for clients.

use prost::Message;
use tonic::{Code, Status};

use crate::p4rt::error::P4Result;
use crate::proto::bfrt::Error;
use crate::proto::google::rpc;

/// The type of the details of a status.
const TYPE: &str = "type.googleapis.com/bfrt_proto.Error";

/// Encodes a result.
pub fn encode<T>(result: &P4Result<T>) -> Error {
    match result {
        Ok(_) => Error::default(),
        Err(error) => Error {
            canonical_code: error.code as i32,
            message: error.message.clone(),
            ..Default::default()
        },
    }
}

/// Returns the status of a batch: OK if every element succeeded, else UNKNOWN with an `Error` per element.
///
/// # Errors
/// If any element failed.
pub fn batch_status(message: &str, results: &[Error]) -> Result<(), Status> {
    if results.iter().all(|error| error.canonical_code == 0) {
        return Ok(());
    }
    let details = results.iter().map(|error| prost_types::Any {
        type_url: TYPE.into(),
        value: error.encode_to_vec(),
    });
    let status = rpc::Status {
        code: Code::Unknown as i32,
        message: message.into(),
        details: details.collect(),
    };
    Err(Status::with_details(
        Code::Unknown,
        message,
        status.encode_to_vec().into(),
    ))
}
