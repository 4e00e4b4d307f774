// SPDX-License-Identifier: Apache-2.0
//! The headers for packet metadata between data plane and controller.

use prost::bytes::Bytes;
use softswitch_pipeline::{HeaderTypeInfo, Value};

use super::error::{P4Error, P4Result};
use super::translation::{Codec, Translations};
use crate::proto::p4::config::v1::ControllerPacketMetadata;
use crate::proto::p4::config::v1::controller_packet_metadata::Metadata;
use crate::proto::p4::v1::PacketMetadata;

/// The layout of a `@controller_header`.
#[derive(Debug)]
pub struct PacketHeader {
    /// P4Info id.
    pub id: u32,
    fields: Vec<HeaderField>,
    bytes: usize,
}

#[derive(Debug)]
struct HeaderField {
    id: u32,
    name: String,
    codec: Codec,
}

/// Returns the widths of a header's fields in the data plane. P4Info does not contain the widths of translated types;
/// then they are taken from the program's header type whose fields have the same names. If the program does not use this
/// header, P4Info's widths count, as in BMv2, where translated strings have no bits.
///
/// # Errors
/// If a width is negative.
pub fn widths(
    metadata: &ControllerPacketMetadata,
    translations: &Translations,
    types: &[HeaderTypeInfo],
) -> Result<Vec<u32>, String> {
    let fields = &metadata.metadata;
    let translated = |f: &Metadata| f.type_name.as_ref().and_then(|n| translations.of(n));
    let names = || fields.iter().map(|f| f.name.as_str());
    if fields.iter().any(|f| translated(f).is_some())
        && let Some(found) = types
            .iter()
            .find(|t| t.fields.iter().map(|f| f.0.as_str()).eq(names()))
    {
        return Ok(found.fields.iter().map(|f| f.1).collect());
    }
    let widths = fields.iter().map(|f| u32::try_from(f.bitwidth));
    widths.collect::<Result<_, _>>().map_err(|e| e.to_string())
}

impl PacketHeader {
    /// Creates the layout from P4Info and the fields' [`widths`]. If its length is not a multiple of 8 bits, zero bits
    /// follow the last field.
    ///
    /// # Errors
    /// If P4Info and the program differ.
    pub fn new(
        metadata: &ControllerPacketMetadata,
        translations: &Translations,
        widths: &[u32],
    ) -> Result<Self, String> {
        let name = metadata.preamble.as_ref().map_or("", |p| p.name.as_str());
        let fields = metadata.metadata.iter().zip(widths).map(|(field, width)| {
            let what = || format!("{name} header, field {}", field.name);
            let codec = translations.codec(field.type_name.as_ref(), field.bitwidth, *width);
            Ok(HeaderField {
                id: field.id,
                name: field.name.clone(),
                codec: codec.map_err(|e| format!("{}: {e}", what()))?,
            })
        });
        let fields = fields.collect::<Result<Vec<_>, String>>()?;
        let bits: u64 = fields.iter().map(|f| u64::from(f.codec.width)).sum();
        let bytes = usize::try_from(bits.div_ceil(8)).map_err(|e| e.to_string())?;
        let id = metadata.preamble.as_ref().map_or(0, |p| p.id);
        Ok(Self { id, fields, bytes })
    }

    /// Splits a packet from the data plane into metadata and payload.
    ///
    /// # Errors
    /// The packet's length, if it is shorter than the header.
    pub fn decode(&self, packet: &Bytes) -> Result<(Vec<PacketMetadata>, Bytes), usize> {
        if packet.len() < self.bytes {
            return Err(packet.len());
        }
        let mut at = 0;
        let metadata = self.fields.iter().map(|field| {
            let width = field.codec.width as usize;
            let value = read_bits(packet, at, width);
            at += width;
            PacketMetadata {
                metadata_id: field.id,
                value: field.codec.encode(&value),
            }
        });
        Ok((metadata.collect(), packet.slice(self.bytes..)))
    }

    /// Prepends the header with the metadata to the payload. As in BMv2, fields without metadata are zero.
    ///
    /// # Errors
    /// If metadata are given twice or do not belong to the header, or a value does not fit.
    pub fn encode(&self, metadata: &[PacketMetadata], payload: &[u8]) -> P4Result<Vec<u8>> {
        let mut packet = vec![0; self.bytes];
        let mut at = 0;
        for field in &self.fields {
            let what = || format!("packet-out metadata {} ({})", field.id, field.name);
            let mut given = metadata.iter().filter(|m| m.metadata_id == field.id);
            let width = field.codec.width as usize;
            if let Some(one) = given.next() {
                let value = field.codec.decode(&one.value, what);
                // The specification demands one code for all errors here ("Stream Error Reporting").
                let value = value.map_err(|e| P4Error::invalid(e.message))?;
                write_bits(&mut packet, at, width, &value);
            }
            if given.next().is_some() {
                return Err(P4Error::invalid(format!("{} is given twice", what())));
            }
            at += width;
        }
        let unknown = |m: &&PacketMetadata| self.fields.iter().all(|f| f.id != m.metadata_id);
        if let Some(extra) = metadata.iter().find(unknown) {
            return Err(P4Error::invalid(format!(
                "packet-out metadata {} is not in P4Info",
                extra.metadata_id
            )));
        }
        packet.extend_from_slice(payload);
        Ok(packet)
    }
}

fn read_bits(packet: &[u8], start: usize, width: usize) -> Value {
    let mut out = vec![0; width.div_ceil(8)];
    let shift = out.len() * 8 - width;
    for i in 0..width {
        let bit = packet[(start + i) / 8] >> (7 - (start + i) % 8) & 1;
        out[(shift + i) / 8] |= bit << (7 - (shift + i) % 8);
    }
    Value::from_be_bytes(&out)
}

fn write_bits(packet: &mut [u8], start: usize, width: usize, value: &Value) {
    let bytes = value.as_bytes();
    for i in 0..width.min(bytes.len() * 8) {
        let bit = bytes[bytes.len() - 1 - i / 8] >> (i % 8) & 1;
        let to = start + width - 1 - i;
        packet[to / 8] |= bit << (7 - to % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::widths as widths_of;
    use super::*;

    fn header(widths: &[i32]) -> PacketHeader {
        let metadata = widths.iter().zip(1..).map(|(w, id)| Metadata {
            id,
            bitwidth: *w,
            ..Default::default()
        });
        let metadata = ControllerPacketMetadata {
            metadata: metadata.collect(),
            ..Default::default()
        };
        let translations = Translations::default();
        let widths = widths_of(&metadata, &translations, &[]).unwrap();
        PacketHeader::new(&metadata, &translations, &widths).unwrap()
    }

    fn meta(values: &[(u32, &'static [u8])]) -> Vec<PacketMetadata> {
        let pairs = values.iter().map(|(id, value)| PacketMetadata {
            metadata_id: *id,
            value: Bytes::from_static(value),
        });
        pairs.collect()
    }

    #[test]
    fn header_bits_round_trip() {
        let header = header(&[9, 7, 48]);
        let metadata = meta(&[
            (1, b"\x01\x05"),
            (2, b"\x42"),
            (3, b"\x12\x34\x56\x78\x9a\xbc"),
        ]);
        let packet = Bytes::from(header.encode(&metadata, b"payload").unwrap());
        assert_eq!(&packet[..8], b"\x82\xc2\x12\x34\x56\x78\x9a\xbc");
        assert_eq!(header.decode(&packet), Ok((metadata, "payload".into())));
        assert_eq!(header.decode(&packet.slice(..7)), Err(7));
    }

    #[test]
    fn length_is_rounded_up_to_bytes() {
        let header = header(&[9]);
        let packet = header
            .encode(&meta(&[(1, b"\x01\x05")]), b"payload")
            .unwrap();
        assert_eq!(packet, b"\x82\x80payload");
        let (metadata, payload) = header.decode(&packet.into()).unwrap();
        assert_eq!(
            (metadata, &payload[..]),
            (meta(&[(1, b"\x01\x05")]), &b"payload"[..])
        );
    }

    #[test]
    fn missing_metadata_are_zero() {
        let header = header(&[9, 7]);
        let packet = header.encode(&meta(&[(2, b"\x42")]), b"").unwrap();
        assert_eq!(packet, b"\x00\x42");
        assert_eq!(header.encode(&[], b"x").unwrap(), b"\x00\x00x");
    }

    #[test]
    fn fields_of_no_bits_are_empty() {
        let header = header(&[0, 8]);
        let packet = header
            .encode(&meta(&[(1, b"\x00"), (2, b"\x42")]), b"")
            .unwrap();
        assert_eq!(packet, b"\x42");
        let metadata = meta(&[(1, b"\x00"), (2, b"\x42")]);
        assert_eq!(header.decode(&packet.into()), Ok((metadata, Bytes::new())));
    }

    #[test]
    fn metadata_must_match_header_fields() {
        let header = header(&[9, 7]);
        for metadata in [
            meta(&[(1, b"\x01"), (1, b"\x01"), (2, b"\x00")]),
            meta(&[(1, b"\x01"), (2, b"\x00"), (3, b"\x00")]),
            meta(&[(1, b"\x02\x00"), (2, b"\x00")]),
            meta(&[(1, b""), (2, b"\x00")]),
        ] {
            assert!(header.encode(&metadata, b"").is_err(), "{metadata:?}");
        }
    }
}
