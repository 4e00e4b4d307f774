// SPDX-License-Identifier: Apache-2.0
//! A client of the services.

use std::net::{TcpStream, ToSocketAddrs};

use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType,
    TOutputProtocol,
};
use thrift::transport::{TBufferedReadTransport, TBufferedWriteTransport};

use crate::service::{Code, Returned, read_reply};
use crate::wire::write_record;

/// A connection to a server.
pub struct Client {
    input: TBinaryInputProtocol<TBufferedReadTransport<TcpStream>>,
    output: TBinaryOutputProtocol<TBufferedWriteTransport<TcpStream>>,
    sequence: i32,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError<E> {
    /// The server refused the call with this code.
    #[error("the server refused the call")]
    Refused(E),
    /// The connection failed, or the server does not know the function.
    #[error(transparent)]
    Failed(#[from] thrift::Error),
}

impl Client {
    /// Connects to a server.
    ///
    /// # Errors
    /// If the connection cannot be established.
    pub fn connect(address: impl ToSocketAddrs) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let reader = TBufferedReadTransport::new(stream.try_clone()?);
        let writer = TBufferedWriteTransport::new(stream);
        Ok(Self {
            input: TBinaryInputProtocol::new(reader, true),
            output: TBinaryOutputProtocol::new(writer, true),
            sequence: 0,
        })
    }

    /// Calls a function with the arguments that `arguments` writes.
    pub(crate) fn call<T: Returned, E: Code>(
        &mut self,
        name: &str,
        arguments: impl FnOnce(&mut dyn TOutputProtocol) -> thrift::Result<()>,
    ) -> Result<T, CallError<E>> {
        self.sequence += 1;
        let message = TMessageIdentifier::new(name, TMessageType::Call, self.sequence);
        self.output.write_message_begin(&message)?;
        write_record(&mut self.output, arguments)?;
        self.output.write_message_end()?;
        self.output.flush()?;
        let answer = self.input.read_message_begin()?;
        if answer.message_type == TMessageType::Exception {
            let error = thrift::Error::read_application_error_from_in_protocol(&mut self.input)?;
            self.input.read_message_end()?;
            return Err(thrift::Error::Application(error).into());
        }
        thrift::protocol::verify_expected_sequence_number(self.sequence, answer.sequence_number)?;
        let result = read_reply(&mut self.input)?;
        self.input.read_message_end()?;
        result.map_err(CallError::Refused)
    }
}
