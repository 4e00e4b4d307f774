// SPDX-License-Identifier: Apache-2.0
use super::*;

/// noq sends a packet on a path. Returns the number on the wire.
fn send(path: &mut Path, number: u64, header: &mut [u8], is_ack_eliciting: bool) -> Option<u64> {
    let mut outgoing = Outgoing {
        path: path.id,
        number,
        generation: 0,
        header,
        payload: &mut [],
        needs_long_number: false,
        longer_payload: None,
    };
    Some(path.seal(&mut outgoing, is_ack_eliciting)?.number)
}

fn validated_path() -> Path {
    let mut path = Path::new(1);
    path.on_path_challenge([7; 8]);
    assert_eq!(send(&mut path, 0, &mut [0x40, 9, 9, 0], false), Some(0));
    assert!(!path.is_free());
    path.on_path_response([7; 8]);
    path.on_ack(0, None);
    path
}

#[test]
fn path_is_free_once_all_data_is_acknowledged() {
    let mut path = validated_path();
    assert!(path.is_free());
    assert_eq!(path.connection_id(), Some(ConnectionId::new(&[9, 9])));
    // noq could not detect the loss of this packet while the path is delegated.
    assert_eq!(send(&mut path, 1, &mut [0x40, 9, 9, 1], true), Some(1));
    assert!(!path.is_free());
    path.on_ack(1, None);
    assert!(path.is_free());
    for number in 2..=2 + MAX_HANDOVER_GAP {
        assert!(path.is_free());
        send(&mut path, number, &mut [0x40, 9, 9, 0], false);
    }
    assert!(!path.is_free());
}

#[test]
fn returned_path_resumes_close_above_acknowledged_numbers() {
    let mut path = validated_path();
    let (first, _) = path.delegate(100).expect("free path");
    assert_eq!(first, 1);
    assert_eq!(send(&mut path, 1, &mut [0x40, 9, 9, 1], true), None);
    path.return_from(1000).expect("valid number");
    assert!(matches!(path.holder, Holder::Settling { next: 1000 }));
    path.on_ack(999 - MAX_HANDOVER_GAP - 1, None);
    assert_eq!(send(&mut path, 2, &mut [0x40, 9, 9, 2], true), None);
    path.on_ack(999 - MAX_HANDOVER_GAP, None);
    let mut header = [0x41, 9, 9, 0, 3];
    assert_eq!(send(&mut path, 3, &mut header, false), Some(1000));
    assert_eq!(header, [0x41, 9, 9, 0x03, 0xe8]);
    assert!(!path.is_free());
    path.on_ack(1000, None);
    assert!(path.is_free());
}

#[test]
fn retired_connection_id_is_replaced() {
    let mut path = validated_path();
    let ids: Vec<_> = (0..3u8).map(|i| ConnectionId::new(&[9, 9 + i])).collect();
    for (sequence, id) in (0..).zip(&ids[..2]) {
        path.on_new_connection_id(sequence, 0, *id);
    }
    assert_eq!(path.connection_id(), Some(ids[0]));
    path.on_new_connection_id(2, 1, ids[2]);
    assert_eq!(path.connection_id(), Some(ids[1]));
}

#[test]
fn lowest_balancer_path_is_never_free() {
    let mut paths = Paths::default();
    for id in [1, 0] {
        let path = paths.get_or_new(id).expect("new path");
        *path = validated_path();
        path.id = id;
    }
    assert_eq!((paths.own(), paths.free()), (Some(0), Some(1)));
    paths.get(0).expect("known path").on_abandoned();
    assert_eq!((paths.own(), paths.free()), (Some(1), None));
}

#[test]
fn forgotten_path_is_not_created_again() {
    let mut paths = Paths::default();
    for id in 0..MAX_PATHS as u32 + 3 {
        assert!(paths.get_or_new(id).is_some());
    }
    assert!(paths.get_or_new(1).is_none() && paths.get_or_new(3).is_none());
    assert!(paths.get_or_new(0).is_some() && paths.get_or_new(4).is_some());
    assert_eq!(paths.iter().count(), MAX_PATHS);
}
