//! A client that knows nothing of QDSR gets streams of a connection from elsewhere, and the connection goes on.

use frontage_handoff::lend::{End, Error, Event, RESET};
use noq::{ReadError, ReadToEndError};

use lending::real_server::RealServer;
use lending::{World, bytes, soon};

mod lending;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lent_streams_come_from_elsewhere_and_others_go_on() {
    let world = World::new(2).await;
    let (grant, events) = world.lend().await;
    assert_eq!((grant.path, grant.server), (1, world.address));
    assert!(
        world
            .lender()
            .lend_path(&world.server, world.address)
            .is_none()
    );
    let mut real = RealServer::new(grant, events, &world);

    for round in 0..4 {
        let (mut answer, mut answering, id) = world.ask().await;
        assert_eq!(world.lender().lend_stream(1, id), Ok(None));
        assert_eq!(world.lender().lend_stream(1, id), Err(Error::Stream(id)));
        let content = bytes(60_000, round);
        real.write(id, &content, true);
        // What the client has is its limit: without noq's and the real server's limits, one would break the other's.
        let wanted = 60_000;
        let credit = world.lender().more_credit(1, wanted).unwrap();
        assert!(credit >= real.grant.credit);
        let (_, received, ()) = tokio::join!(
            real.deliver(),
            answer.read_to_end(60_000),
            world.carry(100_000)
        );
        assert!(received.unwrap() == content);
        let whole = End::Whole { final_size: 60_000 };
        world.lender().take_back_stream(id, whole).unwrap();
        assert_eq!(
            world.lender().take_back_stream(id, whole),
            Err(Error::Ended(id))
        );
        // noq forgets its half as soon as the client acknowledges what it does not see.
        answering.finish().unwrap();
        assert_eq!(answering.stopped().await, Ok(None));
        world.client.force_key_update();
    }
    assert!(real.grant.keys.generation > 0);
    assert!(world.client.close_reason().is_none() && world.server.close_reason().is_none());
    println!("{} datagrams in {} messages", real.acked, real.messages);
}
