// SPDX-License-Identifier: Apache-2.0
//! Over any path that loses, delays, reorders, duplicates or marks: every byte arrives, both ends close, and the application reads
//! only data that arrived.

mod common;

use common::{Direction, Testbed, plain};
use frontage_transport::congestion::Congestion;
use frontage_transport::tcp::{Config, Ecn, Model, Segment, State};
use frontage_transport::{MILLISECOND, SECOND};
use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::RngCore;

fn configs() -> impl Strategy<Value = Config> {
    let algorithms = prop_oneof![
        Just(Congestion::NewReno),
        Just(Congestion::Cubic),
        Just(Congestion::Dctcp)
    ];
    let numbers = (
        2u32..3000,
        1u32..20,
        prop_oneof![Just(None), Just(Some(40 * MILLISECOND))],
        0u64..200_000,
    );
    (algorithms, numbers, any::<[bool; 3]>()).prop_map(
        |(congestion, (mss, initial_window, delayed_ack, window), flags)| Config {
            mss,
            initial_window,
            congestion,
            delayed_ack,
            sack: flags[0],
            timestamps: flags[1],
            ecn: flags[2],
            receive_window: u64::from(mss) + window,
            max_rto: 3 * SECOND,
            ..plain()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn all_bytes_arrive_over_any_path(
        client in configs(),
        server in configs(),
        model in prop_oneof![Just(Model::Rfc), Just(Model::NetBench)],
        (request, response) in (1u64..20, 1u64..150),
        (loss, delay, duplication, mark) in (0u32..300, 0u32..200, 0u32..100, 0u32..300),
        isns: (u32, u32),
        seed: u128,
    ) {
        let (client, server) = (Config { model, ..client }, Config { model, ..server });
        let (request, response) = (request * u64::from(client.mss) / 2, response * u64::from(server.mss) * 2 / 3);
        let mut random = Pcg64Mcg::new(seed);
        // Limit consecutive losses, so that no end gives up.
        let mut lost = [0; 2];
        let channel = move |direction: Direction, number, segment: &mut Segment| {
            let mut hits = |per_mille: u32| number < 1000 && random.next_u32() % 1000 < per_mille;
            let mut fate = vec![];
            let lost = &mut lost[direction as usize];
            if *lost < 5 && hits(loss) {
                *lost += 1;
            } else {
                *lost = 0;
                fate.push(10 * MILLISECOND + if hits(delay) { 7 * MILLISECOND } else { 0 });
            }
            if hits(duplication) {
                fate.push(25 * MILLISECOND);
            }
            if segment.ecn == Ecn::Ect0 && hits(mark) {
                segment.ecn = Ecn::Ce;
            }
            fate
        };
        let mut testbed = Testbed::with_isns(&client, &server, response, isns, channel);
        testbed.client.write(request);
        testbed.client.finish();
        testbed.run_while(4000 * SECOND, |testbed| {
            !(testbed.client.is_closed() && testbed.server.as_ref().is_some_and(|server| server.is_closed()))
        });
        prop_assert!(!testbed.client.is_aborted(), "{:?}", testbed.client);
        prop_assert_eq!(testbed.client.readable(), response);
        prop_assert_eq!(testbed.client.acknowledged(), request);
        let server = testbed.server.as_ref().expect("the server has accepted");
        prop_assert!(!server.is_aborted());
        prop_assert_eq!(server.readable(), request);
        prop_assert_eq!((server.sent(), server.acknowledged()), (response, response));
        prop_assert!(matches!(testbed.client.state(), State::TimeWait | State::Closed));
        prop_assert!(matches!(server.state(), State::TimeWait | State::Closed));
        prop_assert_eq!(testbed.arrived_in_order(Direction::ToClient), response);
    }
}
