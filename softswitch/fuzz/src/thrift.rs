// SPDX-License-Identifier: Apache-2.0
//! Sends calls of BMv2's Thrift services.

use softswitch::proto::p4::v1::Entity;
use softswitch::thrift::Services;
use softswitch_thrift::calls::{Calls, Dispatch};
use softswitch_thrift::interface::Multicast;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageType, TOutputProtocol,
};

use crate::calls::MAX_CALLS;
use crate::seeds;
use crate::server::{Server, block_on};

/// Sends the bytes of a connection to a server that has an entity of every kind. It must not panic, as it may in the switch,
/// where a panic only ends the connection. A call that reads, or that is refused or malformed, must not change anything.
pub fn run(data: &[u8]) {
    let mut calls = Calls::new(data).expect("the limits are valid");
    let Some(mut message) = calls.next_message() else {
        return;
    };
    block_on(async {
        let mut server = seeds::server_with_every_entity().await;
        let functions = Isolated(server.thrift());
        let mut before = snapshot(&mut server, &functions).await;
        for _ in 0..MAX_CALLS {
            let mut reply = Vec::new();
            let mut output = TBinaryOutputProtocol::new(&mut reply, true);
            let answered = calls.answer(&message, &functions, &mut output);
            let is_refused = answered.is_err() || is_refusal(&reply);
            let after = snapshot(&mut server, &functions).await;
            assert!(
                before == after || !is_refused && !is_read(&message.name),
                "the call of {} changed something (refused: {is_refused})",
                message.name
            );
            before = after;
            let next = answered.ok().and_then(|()| calls.next_message());
            match next {
                Some(next) => message = next,
                None => break,
            }
        }
    });
}

/// The state that calls can change: the entities of P4Runtime, unless a program without P4Info runs, and multicast nodes.
async fn snapshot(server: &mut Server, functions: &Isolated) -> (Option<Vec<Entity>>, String) {
    let entities = server.read(crate::server::wildcards()).await.ok();
    let nodes = functions.0.bm_mc_get_entries(0);
    (entities, nodes.unwrap_or_default())
}

/// The services without the function that opens interfaces of this machine.
struct Isolated(Services);

impl Dispatch for Isolated {
    fn serve(
        &self,
        service: &str,
        function: &str,
        sequence: i32,
        input: &mut dyn TInputProtocol,
        output: &mut dyn TOutputProtocol,
    ) -> thrift::Result<bool> {
        if function == "bm_dev_mgr_add_port" {
            return Ok(false);
        }
        Dispatch::serve(&self.0, service, function, sequence, input, output)
    }
}

/// Returns true if a function of this name only reads.
fn is_read(function: &str) -> bool {
    ["get_", "_get", "read", "show"]
        .iter()
        .any(|verb| function.contains(verb))
}

/// Returns true if a reply is an exception.
///
/// # Panics
/// If the reply is not a message of Thrift.
fn is_refusal(reply: &[u8]) -> bool {
    let mut input = TBinaryInputProtocol::new(reply, true);
    let message = input.read_message_begin().expect("a reply");
    if message.message_type == TMessageType::Exception {
        return true;
    }
    assert_eq!(message.message_type, TMessageType::Reply);
    input.read_struct_begin().expect("a result");
    // The number of a result is 0, and of an exception 1.
    input.read_field_begin().expect("a field").id == Some(1)
}
