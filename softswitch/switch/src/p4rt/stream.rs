// SPDX-License-Identifier: Apache-2.0
//! A controller's stream: receives arbitration, packet-out and acknowledgements, and sends all other messages.

use std::sync::Arc;

use tokio::task::block_in_place;
use tokio_stream::StreamExt;
use tonic::{Code, Status, Streaming};

use super::arbitration::ClientId;
use super::device::{Device, StreamSender, response};
use super::error::{NO_PIPELINE, P4Error, P4Result};
use super::role::Role;
use crate::proto::p4::v1::{
    DigestListAck, DigestListAckError, PacketOut, PacketOutError, StreamError,
    StreamMessageRequest, StreamOtherError, stream_error::Details,
    stream_message_request::Update as Request, stream_message_response::Update as Message,
};
use crate::tls::{Access, Client};

/// Serves a stream until the controller closes it or an error ends it. `peer` is the controller's end of a connection with
/// TLS.
pub async fn serve(
    device: Arc<Device>,
    (client, peer): (ClientId, Option<Client>),
    sender: StreamSender,
    mut requests: Streaming<StreamMessageRequest>,
) {
    while let Some(Ok(request)) = requests.next().await {
        let permitted = peer.as_ref().map_or(Ok(()), |p| p.check(needed(&request)));
        let handled =
            permitted.and_then(|()| block_in_place(|| handle(&device, client, &sender, request)));
        if let Err(status) = handled {
            // It fails if the stream has already ended.
            let _ = sender.control.send(Err(status));
            break;
        }
    }
    device.close_stream(client);
}

/// Returns the access that a message needs. A controller without an election id remains a backup, which only listens.
fn needed(request: &StreamMessageRequest) -> Access {
    match &request.update {
        Some(Request::Arbitration(update)) if update.election_id.is_none() => Access::Read,
        _ => Access::Write,
    }
}

/// Handles a message; sends errors that do not end the stream to the controller.
///
/// # Errors
/// The status with which the stream must end.
pub fn handle(
    device: &Device,
    client: ClientId,
    sender: &StreamSender,
    request: StreamMessageRequest,
) -> Result<(), Status> {
    let (error, details) = match request.update {
        Some(Request::Arbitration(update)) => return device.arbitrate(client, &update),
        Some(Request::Packet(packet)) => match packet_out(device, client, &packet) {
            Ok(()) => return Ok(()),
            Err(error) => {
                let packet_out = Some(packet);
                (error, Details::PacketOut(PacketOutError { packet_out }))
            }
        },
        Some(Request::DigestAck(ack)) => match acknowledge(device, client, &ack) {
            Ok(()) => return Ok(()),
            Err(error) => {
                let digest_list_ack = Some(ack);
                (
                    error,
                    Details::DigestListAck(DigestListAckError { digest_list_ack }),
                )
            }
        },
        Some(Request::Other(other)) => (
            P4Error::unimplemented(format!(
                "messages of type '{}' are not supported",
                other.type_url
            )),
            Details::Other(StreamOtherError { other: Some(other) }),
        ),
        None => return Err(Status::invalid_argument("the stream message is empty")),
    };
    let error = StreamError {
        canonical_code: error.code as i32,
        message: error.message,
        details: Some(details),
        ..Default::default()
    };
    // It fails if the stream has already ended.
    let _ = sender.control.send(Ok(response(Message::Error(error))));
    Ok(())
}

/// Returns the role of which the client is the primary.
fn primary_role(device: &Device, client: ClientId) -> P4Result<Role> {
    let role = device.arbitration.lock().primary_role(client);
    role.ok_or_else(|| P4Error::permission_denied("only the primary may send this"))
}

fn packet_out(device: &Device, client: ClientId, packet: &PacketOut) -> P4Result<()> {
    let role = primary_role(device, client)?;
    let deployment = device.committed().ok_or_else(|| P4Error {
        code: Code::FailedPrecondition,
        message: NO_PIPELINE.into(),
    })?;
    if let Some(header) = &deployment.schema().packet_out {
        deployment.access(&role).check_object(header.id)?;
    }
    let frame = match &deployment.schema().packet_out {
        Some(header) => header.encode(&packet.metadata, &packet.payload)?,
        None if packet.metadata.is_empty() => packet.payload.to_vec(),
        None => {
            return Err(P4Error::invalid(
                "the program does not have a packet_out header: send packets without metadata",
            ));
        }
    };
    device
        .dataplane
        .packet_out(frame)
        .map_err(|reason| P4Error {
            code: reason.code(),
            message: reason.to_string(),
        })
}

fn acknowledge(device: &Device, client: ClientId, ack: &DigestListAck) -> P4Result<()> {
    let role = primary_role(device, client)?;
    let deployment = device.committed();
    let deployment = deployment.filter(|d| d.schema().digests.get(ack.digest_id).is_some());
    let deployment = deployment.ok_or_else(|| {
        P4Error::invalid(format!(
            "unknown digest id {:#010x}: it is not in P4Info",
            ack.digest_id
        ))
    })?;
    deployment.access(&role).check_object(ack.digest_id)?;
    device
        .digests
        .lock()
        .acknowledge(ack.digest_id, ack.list_id);
    Ok(())
}
