use super::*;
use frontage_quic_wire::PacketNumberSet;

mod incoming;
mod nonces;
mod outgoing;
mod shared_numbers;
