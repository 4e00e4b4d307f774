//! The integrity tag of Retry packets of QUIC version 1 (RFC 9001, section 5.8) and version 2 (RFC 9369, section 3.3.3).

use aes_gcm::aead::AeadInPlace as _;
use aes_gcm::{Aes128Gcm, KeyInit as _};

/// What the tags of a version are made with.
#[derive(Debug)]
pub struct Secret {
    key: [u8; 16],
    nonce: [u8; 12],
}

/// Version 1's.
pub const V1: Secret = Secret {
    key: 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes(),
    nonce: [
        0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
    ],
};

/// Version 2's.
pub const V2: Secret = Secret {
    key: 0x8fb4_b01b_56ac_48e2_60fb_cbce_ad7c_cc92_u128.to_be_bytes(),
    nonce: [
        0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a,
    ],
};

/// The tag of the Retry `packet` (without tag) that answers an Initial packet to `orig_dst_cid`.
pub fn tag(secret: &Secret, orig_dst_cid: &[u8], packet: &[u8]) -> [u8; 16] {
    let mut pseudo_packet = vec![orig_dst_cid.len() as u8];
    pseudo_packet.extend(orig_dst_cid);
    pseudo_packet.extend(packet);
    let cipher = Aes128Gcm::new(&secret.key.into());
    let tag = cipher.encrypt_in_place_detached(&secret.nonce.into(), &pseudo_packet, &mut []);
    tag.expect("an empty text is not too long").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001, appendix A.4, and RFC 9369, appendix A.4.
    #[test]
    fn vectors_of_the_rfcs() {
        let orig_dst_cid = 0x8394_c8f0_3e51_5708_u64.to_be_bytes();
        for (secret, head, expected) in [
            (
                V1,
                [0xff, 0, 0, 0, 1, 0, 8],
                0x04a2_65ba_2eff_4d82_9058_fb3f_0f24_96ba_u128,
            ),
            (
                V2,
                [0xcf, 0x6b, 0x33, 0x43, 0xcf, 0, 8],
                0xc864_6ce8_bfe3_3952_d955_5436_65dc_c7b6_u128,
            ),
        ] {
            let packet = [
                &head[..],
                &0xf067_a550_2a42_62b5_u64.to_be_bytes(),
                b"token",
            ]
            .concat();
            assert_eq!(tag(&secret, &orig_dst_cid, &packet), expected.to_be_bytes());
        }
    }
}
