// SPDX-License-Identifier: Apache-2.0
//! The encoding of gRPC messages.

use std::marker::PhantomData;

use prost::Message;
use prost::bytes::Buf;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

/// As [`tonic_prost::ProstCodec`], but decodes from [`Bytes`](prost::bytes::Bytes): they advance and share their content at
/// less cost than the buffer of the connection, which matters for messages of many small fields.
#[derive(Debug)]
pub struct BytesCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for BytesCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for BytesCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BytesDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(BufferSettings::default())
    }

    fn decoder(&mut self) -> Self::Decoder {
        BytesDecoder(PhantomData)
    }
}

/// Decodes messages of one type.
#[derive(Debug)]
pub struct BytesDecoder<U>(PhantomData<U>);

impl<U: Message + Default> Decoder for BytesDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let bytes = buf.copy_to_bytes(buf.remaining());
        let message = U::decode(bytes);
        message
            .map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}
