use frontage_quic::session::Outgoing;
use noq::ConnectionId;

use super::*;
use crate::lend::path::SLACK;

/// noq sends a packet on a path; by which nonce.
fn send(path: &mut Path, number: u64, header: &mut [u8], weighty: bool) -> Option<u64> {
    let mut outgoing = Outgoing {
        path: path.id,
        number,
        generation: 0,
        header,
        payload: &mut [],
        needs_long_number: false,
    };
    Some(path.seal(&mut outgoing, weighty)?.number)
}

fn ready() -> Path {
    let mut path = Path::new(1);
    path.challenge([7; 8]);
    assert_eq!(send(&mut path, 0, &mut [0x40, 9, 9, 0], false), Some(0));
    assert!(!path.free());
    path.response([7; 8]);
    path.acked(0, None);
    path
}

#[test]
fn a_path_is_free_once_nothing_can_be_missing() {
    let mut path = ready();
    assert!(path.free());
    assert_eq!(path.ids.used, Some(ConnectionId::new(&[9, 9])));
    // What is lost there noq would never learn if the path was lent.
    assert_eq!(send(&mut path, 1, &mut [0x40, 9, 9, 1], true), Some(1));
    assert!(!path.free());
    path.acked(1, None);
    assert!(path.free());
    for number in 2..=2 + SLACK {
        assert!(path.free());
        send(&mut path, number, &mut [0x40, 9, 9, 0], false);
    }
    assert!(!path.free());
}

#[test]
fn numbers_go_on_close_to_what_the_client_has() {
    let mut path = ready();
    let (first, _) = path.lend(100).expect("it is free");
    assert_eq!(first, 1);
    assert_eq!(send(&mut path, 1, &mut [0x40, 9, 9, 1], true), None);
    path.give_back(1000);
    assert!(matches!(path.holder, Holder::Settling { next: 1000 }));
    path.acked(999 - SLACK - 1, None);
    assert_eq!(send(&mut path, 2, &mut [0x40, 9, 9, 2], true), None);
    path.acked(999 - SLACK, None);
    let mut header = [0x41, 9, 9, 0, 3];
    assert_eq!(send(&mut path, 3, &mut header, false), Some(1000));
    assert_eq!(header, [0x41, 9, 9, 0x03, 0xe8]);
    assert!(!path.free());
    path.acked(1000, None);
    assert!(path.free());
}

#[test]
fn a_connection_id_that_ends_is_replaced() {
    let mut path = ready();
    let ids: Vec<_> = (0..3u8).map(|i| ConnectionId::new(&[9, 9 + i])).collect();
    for (sequence, id) in (0..).zip(&ids[..2]) {
        path.identify(sequence, 0, *id);
    }
    assert_eq!(path.ids.used, Some(ids[0]));
    path.identify(2, 1, ids[2]);
    assert_eq!(path.ids.used, Some(ids[1]));
}

#[test]
fn noq_keeps_a_path() {
    let mut paths = Paths::default();
    for id in [1, 0] {
        let path = paths.get_or_new(id).expect("it is new");
        *path = ready();
        path.id = id;
    }
    assert_eq!((paths.own(), paths.free()), (Some(0), Some(1)));
    paths.get(0).expect("it is known").abandon();
    assert_eq!((paths.own(), paths.free()), (Some(1), None));
}

#[test]
fn a_forgotten_path_is_nobodys() {
    let mut paths = Paths::default();
    for id in 0..PATHS as u32 + 3 {
        assert!(paths.get_or_new(id).is_some());
    }
    assert!(paths.get_or_new(1).is_none() && paths.get_or_new(3).is_none());
    assert!(paths.get_or_new(0).is_some() && paths.get_or_new(4).is_some());
    assert_eq!(paths.iter().count(), PATHS);
}
