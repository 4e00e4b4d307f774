// SPDX-License-Identifier: Apache-2.0
use super::*;

const A: ClientId = ClientId(1);
const B: ClientId = ClientId(2);
const C: ClientId = ClientId(3);

fn mau(election: Option<u128>) -> MasterArbitrationUpdate {
    MasterArbitrationUpdate {
        device_id: 1,
        election_id: election.map(|id| Uint128 {
            high: (id >> 64) as u64,
            low: id as u64,
        }),
        ..Default::default()
    }
}

fn with_role(name: &str, election: u128) -> MasterArbitrationUpdate {
    MasterArbitrationUpdate {
        role: Some(named_role(name, None)),
        ..mau(Some(election))
    }
}

/// Receivers, codes and election ids.
fn brief(notices: Vec<Notice>) -> Vec<(ClientId, Code, u64)> {
    let briefs = notices.into_iter().map(|(to, update)| {
        let code = Code::from(update.status.unwrap().code);
        (to, code, update.election_id.map_or(0, |id| id.low))
    });
    briefs.collect()
}

fn may_write(arbitration: &Arbitration, election: u128) -> bool {
    let election = mau(Some(election)).election_id;
    arbitration.check_primary(1, "", 0, election).is_ok()
}

#[test]
fn highest_election_id_becomes_primary_and_all_are_notified() {
    let mut arb = Arbitration::new(1);
    assert_eq!(
        brief(arb.update(A, &mau(Some(5))).unwrap()),
        [(A, Code::Ok, 5)]
    );
    assert!(may_write(&arb, 5) && !may_write(&arb, 4));
    let lower = brief(arb.update(B, &mau(Some(3))).unwrap());
    assert_eq!(lower, [(B, Code::AlreadyExists, 5)]);
    let higher = brief(arb.update(C, &mau(Some(7))).unwrap());
    assert_eq!(
        higher,
        [
            (A, Code::AlreadyExists, 7),
            (B, Code::AlreadyExists, 7),
            (C, Code::Ok, 7)
        ]
    );
    assert!(may_write(&arb, 7) && !may_write(&arb, 5));
}

#[test]
fn election_ids_have_128_bits() {
    let mut arb = Arbitration::new(1);
    arb.update(A, &mau(Some(1 << 64))).unwrap();
    arb.update(B, &mau(Some(u64::MAX.into()))).unwrap();
    assert!(arb.is_primary(A) && !arb.is_primary(B));
}

#[test]
fn after_primary_leaves_only_its_election_id_or_higher_becomes_primary() {
    let mut arb = Arbitration::new(1);
    arb.update(A, &mau(Some(5))).unwrap();
    arb.update(B, &mau(Some(3))).unwrap();
    assert_eq!(brief(arb.disconnect(A)), [(B, Code::NotFound, 5)]);
    assert!(!may_write(&arb, 5) && !may_write(&arb, 3));
    let too_low = brief(arb.update(B, &mau(Some(4))).unwrap());
    assert_eq!(too_low, [(B, Code::NotFound, 5)]);
    assert_eq!(
        brief(arb.update(B, &mau(Some(5))).unwrap()),
        [(B, Code::Ok, 5)]
    );
}

#[test]
fn primary_can_step_down() {
    let mut arb = Arbitration::new(1);
    arb.update(A, &mau(Some(5))).unwrap();
    arb.update(B, &mau(None)).unwrap();
    let down = brief(arb.update(A, &mau(Some(2))).unwrap());
    assert_eq!(down, [(A, Code::NotFound, 5), (B, Code::NotFound, 5)]);
}

#[test]
fn unset_election_id_never_becomes_primary_but_zero_can() {
    let mut arb = Arbitration::new(1);
    assert_eq!(
        brief(arb.update(A, &mau(None)).unwrap()),
        [(A, Code::NotFound, 0)]
    );
    arb.update(B, &mau(None)).unwrap();
    assert_eq!(arb.update(A, &mau(Some(0))).unwrap().len(), 2);
    assert!(arb.is_primary(A));
}

#[test]
fn roles_are_independent() {
    let mut arb = Arbitration::new(1);
    arb.update(A, &with_role("x", 5)).unwrap();
    arb.update(B, &with_role("y", 5)).unwrap();
    arb.update(C, &mau(Some(1))).unwrap();
    assert_eq!(arb.primaries().len(), 3);
    let id = mau(Some(5)).election_id;
    assert!(arb.check_primary(1, "x", 0, id).is_ok());
    assert_eq!(
        arb.check_primary(1, "z", 0, id).unwrap_err().code(),
        Code::NotFound
    );
}

#[test]
fn invalid_updates_are_errors() {
    let mut arb = Arbitration::new(1);
    let other_device = MasterArbitrationUpdate {
        device_id: 2,
        ..mau(Some(1))
    };
    let code = |r: Result<Vec<Notice>, Status>| r.unwrap_err().code();
    assert_eq!(code(arb.update(A, &other_device)), Code::NotFound);
    arb.update(A, &mau(Some(1))).unwrap();
    assert_eq!(code(arb.update(A, &other_device)), Code::FailedPrecondition);
    assert_eq!(
        code(arb.update(A, &with_role("x", 1))),
        Code::FailedPrecondition
    );
    assert_eq!(code(arb.update(B, &mau(Some(1)))), Code::InvalidArgument);
    let mut configured = mau(Some(9));
    configured.role = Some(proto::Role {
        config: Some(prost_types::Any::default()),
        ..Default::default()
    });
    assert_eq!(code(arb.update(B, &configured)), Code::InvalidArgument);
}
