//! A client's connection, of which paths and streams are lent to real servers.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use frontage_handoff::http3;
use frontage_handoff::lend::End;
use frontage_handoff::message::{MAX_REQUEST, Reason, ToServer};
use h3::error::Code;
use http::Request;
use noq::VarInt;
use tokio::sync::mpsc::UnboundedReceiver;

use super::counts::Kept;
use super::owner::Owner;
use super::servers::{Pool, Server, Servers, key};
use super::sessions::Sessions;
use super::streams::News;
use crate::body::{Error, RequestBody};

/// Most bytes of a request's body that goes to a real server; what is longer is passed on as it comes, by the balancer.
const MAX_BODY: usize = 64 << 10;

/// What a real server did with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its name.
    pub server: String,
    /// Of the answer; 0 if there is none that anybody knows of.
    pub status: u16,
    /// Of its body.
    pub bytes: u64,
    /// Whether the client has all of it.
    pub whole: bool,
}

impl Given {
    /// As long as nobody knows of more.
    fn nothing(server: &Server) -> Self {
        Self {
            server: server.name.clone(),
            status: 0,
            bytes: 0,
            whole: false,
        }
    }
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handed {
    /// A real server has dealt with it; noq's half of the stream is to be finished, or reset by [`frontage_handoff::lend::RESET`] if the answer
    /// is not whole.
    Over(Given),
    /// Nothing was sent: it is the balancer's to answer.
    Kept,
}

/// One connection's.
pub struct Lending {
    owner: Owner,
    servers: Arc<Servers>,
    sessions: Sessions,
}

impl Lending {
    /// Of one owner's connection.
    pub fn new(owner: Owner, servers: Arc<Servers>) -> Self {
        Self {
            sessions: Sessions::new(owner.clone(), servers.clone()),
            owner,
            servers,
        }
    }

    /// Updates the connection's keys while nothing is on its way that would be lost by that.
    pub async fn renew_keys(&self) {
        let owner = &self.owner;
        owner.lender.renew_keys(&owner.connection).await;
    }

    /// Has a real server of `pool` answer `request` on `stream`, which is complete but for what of its body was not read yet.
    ///
    /// # Errors
    /// If the client does not send its body.
    pub async fn hand_over(
        &self,
        pool: &Pool,
        stream: u64,
        request: &mut Request<RequestBody>,
    ) -> Result<Handed, Error> {
        let body = request.body_mut().collect_up_to(MAX_BODY).await?;
        let http3 = body.map(|body| http3::request(request, &body));
        let handed = match http3.filter(|http3| http3.len() <= MAX_REQUEST) {
            Some(http3) => self.hand(pool, stream, key(request), http3).await,
            None => Err(Kept::Large),
        };
        Ok(match handed {
            Ok(given) => Handed::Over(given),
            Err(why) => {
                self.servers.keeps(why);
                Handed::Kept
            }
        })
    }

    async fn hand(&self, pool: &Pool, stream: u64, key: u64, http3: Bytes) -> Result<Given, Kept> {
        let session = self.sessions.choose(pool, key).await;
        let session = session.ok_or(Kept::Unlent)?;
        let lent = self.owner.lender.lend_stream(session.loan, stream);
        let max_stream_data = lent.map_err(|_| Kept::Unlent)?;
        let message = ToServer::Request {
            stream,
            max_stream_data,
            http3,
        };
        let server = &self.servers.list()[session.server];
        let Some(news) = session.request(stream, &message) else {
            return self.keep(server, stream, Kept::Unlent);
        };
        let load = server.begin();
        let handed = self.follow(server, stream, news).await;
        session.forget(stream);
        drop(load);
        handed
    }

    /// Nothing was sent on the stream, nor will be: it is the balancer's.
    fn keep(&self, server: &Server, stream: u64, why: Kept) -> Result<Given, Kept> {
        match self.owner.lender.keep_stream(stream) {
            Ok(()) => Err(why),
            Err(error) => {
                self.give_up(&error);
                Ok(Given::nothing(server))
            }
        }
    }

    /// What becomes of the stream.
    async fn follow(
        &self,
        server: &Server,
        stream: u64,
        mut news: UnboundedReceiver<News>,
    ) -> Result<Given, Kept> {
        let counts = &server.counts;
        let mut given = Given::nothing(server);
        let mut size = 0;
        let end = loop {
            match news.recv().await {
                Some(News::Refused(reason)) => {
                    count_refusal(server, reason);
                    return self.keep(server, stream, Kept::Refused);
                }
                Some(News::Sent {
                    final_size,
                    status,
                    bytes,
                }) => {
                    size = final_size;
                    (given.status, given.bytes) = (status, bytes);
                    counts.body_bytes.fetch_add(bytes, Relaxed);
                }
                Some(News::Done) => {
                    counts.whole.fetch_add(1, Relaxed);
                    given.whole = true;
                    break End::Whole { final_size: size };
                }
                Some(News::Broken { code, final_size }) => {
                    counts.broken.fetch_add(1, Relaxed);
                    break End::Reset {
                        code,
                        final_size: Some(final_size),
                    };
                }
                None => {
                    counts.broken.fetch_add(1, Relaxed);
                    break End::Reset {
                        code: Code::H3_INTERNAL_ERROR.value(),
                        final_size: None,
                    };
                }
            }
        };
        if let Err(error) = self.owner.lender.take_back_stream(stream, end) {
            self.give_up(&error);
        }
        Ok(given)
    }

    /// A stream's end cannot be what the real server says, and the client would wait for another for ever.
    fn give_up(&self, error: &frontage_handoff::lend::Error) {
        tracing::warn!("real server: invalid end of a stream: {error}");
        let code = VarInt::from_u64(Code::H3_INTERNAL_ERROR.value()).expect("a small number");
        self.owner
            .connection
            .close(code, b"a stream cannot be ended");
    }
}

fn count_refusal(server: &Server, reason: Reason) {
    let reasons = Reason::ALL.iter().zip(&server.counts.refused);
    for (_, counter) in reasons.filter(|(known, _)| **known == reason) {
        counter.fetch_add(1, Relaxed);
    }
}
