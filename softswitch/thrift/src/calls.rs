// SPDX-License-Identifier: Apache-2.0
//! The calls of a client: their messages, with limits, and the replies.

use std::io::{self, Read};

use thrift::protocol::{
    TBinaryInputProtocol, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol, TType,
};
use thrift::{ApplicationError, ApplicationErrorKind, TConfiguration};

/// Maximum size in bytes of a message; the largest are programs.
pub const MAX_MESSAGE: usize = 64 << 20;

/// Maximum number of elements of a list or map.
pub const MAX_ELEMENTS: usize = 1 << 16;

/// Maximum nesting of records.
const MAX_DEPTH: usize = 16;

/// The functions of a switch, by service.
pub trait Dispatch: Send + Sync + 'static {
    /// Serves a call as [`interface`](crate::interface)'s traits do. Returns false if the function is unknown.
    ///
    /// # Errors
    /// If the connection fails, or the arguments are malformed.
    fn serve(
        &self,
        service: &str,
        function: &str,
        sequence: i32,
        input: &mut dyn TInputProtocol,
        output: &mut dyn TOutputProtocol,
    ) -> thrift::Result<bool>;
}

/// The messages that arrive from a reader.
pub struct Calls<R: Read>(TBinaryInputProtocol<Limited<R>>);

impl<R: Read> Calls<R> {
    /// Reads messages, which should be buffered.
    ///
    /// # Errors
    /// If Thrift refuses the limits.
    pub fn new(reader: R) -> thrift::Result<Self> {
        let reader = Limited {
            inner: reader,
            left: MAX_MESSAGE,
        };
        let limits = TConfiguration::builder()
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE))
            .max_string_size(Some(MAX_MESSAGE))
            .max_container_size(Some(MAX_ELEMENTS))
            .max_recursion_depth(Some(MAX_DEPTH))
            .build()?;
        // BMv2's server accepts the old form of messages, too.
        let input = TBinaryInputProtocol::with_config(reader, false, limits);
        Ok(Self(input))
    }

    /// Reads the beginning of the next message; returns `None` if there is no further message.
    pub fn next_message(&mut self) -> Option<TMessageIdentifier> {
        self.0.transport.left = MAX_MESSAGE;
        self.0.read_message_begin().ok()
    }

    /// Reads the rest of a message, calls its function and replies. After an error, the beginning of the next message is
    /// unknown.
    ///
    /// # Errors
    /// If the connection fails, or the message is not a call or malformed.
    pub fn answer(
        &mut self,
        message: &TMessageIdentifier,
        functions: &dyn Dispatch,
        output: &mut dyn TOutputProtocol,
    ) -> thrift::Result<()> {
        if !matches!(
            message.message_type,
            TMessageType::Call | TMessageType::OneWay
        ) {
            return Err("the message is not a call".into());
        }
        let input = &mut self.0;
        let (service, function) = message.name.split_once(':').unwrap_or(("", &message.name));
        if functions.serve(service, function, message.sequence_number, input, output)? {
            return Ok(());
        }
        input.skip(TType::Struct)?;
        input.read_message_end()?;
        let reason = format!("unknown function {}", message.name);
        refuse(
            message,
            ApplicationErrorKind::UnknownMethod,
            &reason,
            output,
        )
    }
}

/// Replies with an application error.
///
/// # Errors
/// If the connection fails.
pub(crate) fn refuse(
    message: &TMessageIdentifier,
    kind: ApplicationErrorKind,
    reason: &str,
    output: &mut dyn TOutputProtocol,
) -> thrift::Result<()> {
    let (name, sequence) = (&message.name[..], message.sequence_number);
    output.write_message_begin(&TMessageIdentifier::new(
        name,
        TMessageType::Exception,
        sequence,
    ))?;
    let error = ApplicationError::new(kind, reason);
    thrift::Error::write_application_error_to_out_protocol(&error, output)?;
    output.write_message_end()?;
    output.flush()
}

/// A reader that ends after a number of bytes.
struct Limited<R> {
    inner: R,
    left: usize,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            let reason = format!("the message is longer than {MAX_MESSAGE} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        let max = buffer.len().min(self.left);
        let read = self.inner.read(&mut buffer[..max])?;
        self.left -= read;
        Ok(read)
    }
}
