// SPDX-License-Identifier: Apache-2.0
//! Retry packets (RFC 9000, 17.2.5), by which a server validates a client's address. Only a host that has seen the
//! client's Initial can compute their tag (RFC 9001, 5.8; version 2: RFC 9369, 3.3.3).

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::packet::{Kind, Packet};
use crate::{Initial, Version};

/// Length of the tag in bytes.
const TAG: usize = 16;

/// A Retry packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry<'a> {
    version: Version,
    /// Destination connection id, the client's own.
    pub dcid: &'a [u8],
    /// Source connection id, which becomes the next destination connection id.
    pub scid: &'a [u8],
    /// Token that the client must return.
    pub token: &'a [u8],
    /// The packet without its tag.
    packet: &'a [u8],
    tag: [u8; TAG],
}

impl<'a> Retry<'a> {
    /// Parse a server's `datagram`. Return `None` if it is not a Retry.
    pub fn read(datagram: &'a [u8]) -> Option<Self> {
        let (packet, _) = Packet::parse(datagram).ok()?;
        if packet.kind != Kind::Retry {
            return None;
        }
        let (token, tag) = packet.token.split_last_chunk()?;
        Some(Self {
            version: packet.version,
            dcid: packet.dcid,
            scid: packet.scid,
            token,
            packet: &datagram[..datagram.len() - TAG],
            tag: *tag,
        })
    }

    /// Return whether a host that has seen `initial` made this packet, and a client would accept it (RFC 9000,
    /// 17.2.5.2).
    pub fn answers(&self, initial: &Initial) -> bool {
        self.version == initial.version
            && self.dcid == initial.scid
            && !self.token.is_empty()
            && tag(self.version, &initial.dcid, self.packet) == self.tag
    }
}

/// Return the tag of the Retry `packet` (without tag) that responds to an Initial to `original_dcid`.
///
/// # Panics
/// If `original_dcid` has more than 255 bytes.
pub fn tag(version: Version, original_dcid: &[u8], packet: &[u8]) -> [u8; TAG] {
    let (key, nonce): (u128, u128) = match version {
        Version::V1 => (
            0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e,
            0x4615_99d3_5d63_2bf2_2398_25bb,
        ),
        Version::V2 => (
            0x8fb4_b01b_56ac_48e2_60fb_cbce_ad7c_cc92,
            0xd869_69bc_2d7c_6d99_90ef_b04a,
        ),
    };
    let fits = "the length matches the algorithm";
    let key = UnboundKey::new(&AES_128_GCM, &key.to_be_bytes()).expect(fits);
    let nonce = Nonce::try_assume_unique_for_key(&nonce.to_be_bytes()[4..]).expect(fits);
    let length =
        u8::try_from(original_dcid.len()).expect("the connection id has at most 255 bytes");
    let pseudo_packet = [&[length], original_dcid, packet].concat();
    let sealed = LessSafeKey::new(key)
        .seal_in_place_separate_tag(nonce, Aad::from(pseudo_packet), &mut [])
        .expect("an empty plaintext can be sealed");
    sealed.as_ref().try_into().expect(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001, A.4, and RFC 9369, A.4.
    #[test]
    fn tags_match_the_rfcs() {
        for (version, first, expected) in [
            (
                Version::V1,
                0xff,
                0x04a2_65ba_2eff_4d82_9058_fb3f_0f24_96ba_u128,
            ),
            (Version::V2, 0xcf, 0xc864_6ce8_bfe3_3952_d955_5436_65dc_c7b6),
        ] {
            let packet = [
                &[first][..],
                &version.number().to_be_bytes(),
                &[0, 8],
                &0xf067_a550_2a42_62b5_u64.to_be_bytes(),
                b"token",
            ]
            .concat();
            let dcid = 0x8394_c8f0_3e51_5708_u64.to_be_bytes();
            assert_eq!(tag(version, &dcid, &packet), expected.to_be_bytes());
        }
    }
}
