// SPDX-License-Identifier: Apache-2.0
//! Handshakes over real connections, with peers that have the wrong key or repeat a recording.

use std::pin::Pin;

use tokio::net::TcpListener;

use super::*;

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connecting = TcpStream::connect(listener.local_addr().unwrap());
    let (client, accepted) = tokio::join!(connecting, listener.accept());
    (client.unwrap(), accepted.unwrap().0)
}

/// Run `client`, and return its result with the request that the server reads.
async fn requested<T, F: Future<Output = T> + Send + 'static>(
    client: impl FnOnce(TcpStream) -> F,
) -> (Request, TcpStream, tokio::task::JoinHandle<T>)
where
    T: Send + 'static,
{
    let (near, mut far) = pair().await;
    let client = tokio::spawn(client(near));
    (read_request(&mut far).await.unwrap(), far, client)
}

type Resuming = Pin<Box<dyn Future<Output = Result<(TransportState, u64)>> + Send>>;

fn resuming(
    key: &Secret,
    id: Id,
    secret: &Secret,
    counter: u64,
) -> impl FnOnce(TcpStream) -> Resuming {
    let (key, secret) = (key.clone(), secret.clone());
    move |mut stream| {
        Box::pin(async move { resume(&mut stream, &key, (id, &secret), counter, 7).await })
    }
}

#[tokio::test]
async fn both_ends_agree_on_a_new_session() {
    let key = Secret::random();
    let theirs = key.clone();
    let create = |mut stream: TcpStream| async move { create(&mut stream, &theirs, 1000).await };
    let (request, mut stream, client) = requested(create).await;
    let Request::New(opening) = request else {
        panic!("not a new session");
    };
    let request = opening.verify(&key).unwrap();
    let (message, mut near, granted) = request.grant([5; ID_LEN], 2000).unwrap();
    stream.write_all(&message).await.unwrap();
    let (mut far, created) = client.await.unwrap().unwrap();
    assert_eq!((created.id, created.window), ([5; ID_LEN], 1000));
    assert_eq!((granted.id, granted.window), ([5; ID_LEN], 1000));
    assert_eq!(created.secret.0, granted.secret.0);
    let (mut sealed, mut opened) = ([0; 32], [0; 32]);
    let length = near.write_message(b"hello", &mut sealed).unwrap();
    let length = far.read_message(&sealed[..length], &mut opened).unwrap();
    assert_eq!(&opened[..length], b"hello");
}

#[tokio::test]
async fn wrong_key_opens_no_session() {
    let wrong = Secret::random();
    let create = |mut stream: TcpStream| async move { create(&mut stream, &wrong, 1000).await };
    let (request, _stream, _client) = requested(create).await;
    let Request::New(opening) = request else {
        panic!("not a new session");
    };
    let error = opening.verify(&Secret::random()).err().unwrap();
    assert!(matches!(error, HandshakeError::Authentication));
}

#[tokio::test]
async fn session_id_and_service_key_do_not_resume_a_session() {
    let (key, secret, id) = (Secret::random(), Secret::random(), [9; ID_LEN]);
    let (request, ..) = requested(resuming(&key, id, &key, 1)).await;
    let Request::Resume(named, opening) = request else {
        panic!("not a resumption");
    };
    assert_eq!(named, id);
    let mut last = 0;
    let error = opening.verify(&secret, &mut last).err().unwrap();
    assert!(matches!(error, HandshakeError::Authentication));
    assert_eq!(last, 0, "a forged counter must not lock out the client");
}

#[tokio::test]
async fn repeated_and_older_resumptions_are_rejected() {
    let (key, secret, mut last) = (Secret::random(), Secret::random(), 0);
    for (counter, accepted) in [(2, true), (1, false), (3, true)] {
        let (request, mut stream, client) =
            requested(resuming(&key, [9; ID_LEN], &secret, counter)).await;
        let Request::Resume(_, opening) = request else {
            panic!("not a resumption");
        };
        let verified = opening.verify(&secret, &mut last);
        assert_eq!(verified.is_ok(), accepted, "{counter}");
        let again = opening.verify(&secret, &mut last);
        assert!(matches!(again, Err(HandshakeError::Repeated)), "{counter}");
        if let Ok(resumption) = verified {
            assert_eq!(resumption.received, 7);
            stream
                .write_all(&resumption.accept(4).unwrap().0)
                .await
                .unwrap();
            assert_eq!(client.await.unwrap().unwrap().1, 4);
        }
    }
}

#[tokio::test]
async fn only_the_service_can_refuse_a_session() {
    let (key, secret) = (Secret::random(), Secret::random());
    for signed in [true, false] {
        let (request, mut stream, client) =
            requested(resuming(&key, [9; ID_LEN], &secret, 1)).await;
        let Request::Resume(_, opening) = request else {
            panic!("not a resumption");
        };
        let by = if signed {
            key.clone()
        } else {
            Secret::random()
        };
        let refusal = opening.refusal(&by, Refusal::UnknownSession);
        stream.write_all(&refusal).await.unwrap();
        match client.await.unwrap().err().unwrap() {
            HandshakeError::Refused(Refusal::UnknownSession) => assert!(signed),
            HandshakeError::Authentication => assert!(!signed),
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn other_protocol_versions_are_named() {
    let (mut near, mut far) = pair().await;
    near.write_all(&[7; HEADER_LEN]).await.unwrap();
    let error = read_request(&mut far).await.err().unwrap();
    assert!(
        error.to_string().starts_with("unknown protocol version 7"),
        "{error}"
    );
}
