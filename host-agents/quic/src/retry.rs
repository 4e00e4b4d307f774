//! The integrity tag of Retry packets of QUIC version 1 (RFC 9001, section 5.8).

use aes_gcm::aead::AeadInPlace as _;
use aes_gcm::{Aes128Gcm, KeyInit as _};

const KEY: [u8; 16] = 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes();
const NONCE: [u8; 12] = [
    0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
];

/// The tag of the Retry `packet` (without tag) that answers an Initial packet to `orig_dst_cid`.
pub fn tag(orig_dst_cid: &[u8], packet: &[u8]) -> [u8; 16] {
    let mut pseudo_packet = vec![orig_dst_cid.len() as u8];
    pseudo_packet.extend(orig_dst_cid);
    pseudo_packet.extend(packet);
    let cipher = Aes128Gcm::new(&KEY.into());
    let tag = cipher.encrypt_in_place_detached(&NONCE.into(), &pseudo_packet, &mut []);
    tag.expect("an empty text is not too long").into()
}

#[cfg(test)]
mod tests {
    /// RFC 9001, appendix A.4.
    #[test]
    fn vector_of_the_rfc() {
        let orig_dst_cid = 0x8394_c8f0_3e51_5708_u64.to_be_bytes();
        let packet = [
            &[0xff, 0, 0, 0, 1, 0, 8],
            &0xf067_a550_2a42_62b5_u64.to_be_bytes()[..],
            b"token",
        ]
        .concat();
        let tag = 0x04a2_65ba_2eff_4d82_9058_fb3f_0f24_96ba_u128.to_be_bytes();
        assert_eq!(super::tag(&orig_dst_cid, &packet), tag);
    }
}
