// SPDX-License-Identifier: Apache-2.0
//! A client of the record store's HTTP interface (`docs/records.md`): writes a record, and subscribes to its changes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Time until a server answers. A moved machine should not wait for an answer to its former address.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Time without an event after which a subscription counts as broken. Servers send a comment every 15 s.
const SUBSCRIPTION_SILENCE: Duration = Duration::from_secs(30);
/// Bytes of the longest answer, and of the longest line of a subscription.
const MAX_ANSWER: usize = 1 << 20;
/// Characters of the longest name.
const MAX_NAME: usize = 128;

/// A record's name (GUID).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl std::str::FromStr for Name {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || "._~-".contains(c);
        ensure!(
            (1..=MAX_NAME).contains(&text.len()) && text.chars().all(is_valid),
            "invalid name: use 1 to {MAX_NAME} of A-Z a-z 0-9 . _ ~ -"
        );
        Ok(Self(text.to_owned()))
    }
}

/// The URL of a record server, such as `http://[2001:db8::8]:8480`.
#[derive(Clone, Debug)]
pub struct ServerUrl {
    host: String,
    port: u16,
    is_https: bool,
}

impl std::str::FromStr for ServerUrl {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        const FIX: &str = "write a URL such as http://127.0.0.1:8480";
        let uri: Uri = text
            .parse()
            .with_context(|| format!("invalid URL: {FIX}"))?;
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => bail!("invalid URL: {FIX}"),
        };
        let host = uri.host().unwrap_or_default();
        let has_path = !matches!(uri.path(), "" | "/") || uri.query().is_some();
        ensure!(!host.is_empty() && !has_path, "invalid URL: {FIX}");
        Ok(Self {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
            is_https,
        })
    }
}

impl ServerUrl {
    fn host_without_brackets(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }
}

impl std::fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// The record servers, in the order of preference.
#[derive(Clone)]
pub struct Records {
    servers: Arc<[ServerUrl]>,
    authorization: Option<HeaderValue>,
    tls: TlsConnector,
    /// Index of the server that answered last.
    preferred: Arc<AtomicUsize>,
}

/// The store's answer to a write.
#[derive(Debug, Deserialize)]
pub struct Written {
    /// True if the write is the record's present state. Otherwise a write with a later stamp is.
    pub applied: bool,
    /// Stamp of the present state, in microseconds since the Unix epoch.
    pub stamp: i64,
}

impl Records {
    /// Create a client. `token`: file with the bearer token. `authorities`: PEM file with trusted authorities, for https.
    ///
    /// # Errors
    /// If a file cannot be read or is invalid, or if an https server is given without authorities.
    pub fn new(
        servers: &[ServerUrl],
        token: Option<&Path>,
        authorities: Option<&Path>,
    ) -> Result<Self> {
        let needs_authorities = servers.iter().any(|server| server.is_https);
        ensure!(
            authorities.is_some() || !needs_authorities,
            "--authorities: missing: https needs a PEM file with trusted authorities"
        );
        Ok(Self {
            servers: servers.into(),
            authorization: token.map(read_token).transpose()?,
            tls: TlsConnector::from(Arc::new(tls(authorities)?)),
            preferred: Arc::default(),
        })
    }

    /// Write an eventual record. `stamp` is in microseconds since the Unix epoch.
    ///
    /// # Errors
    /// If no server answers, or the first that answers refuses. The write may have been done.
    pub async fn put(&self, name: &Name, document: &str, stamp: i64) -> Result<Written> {
        let path = format!("/records/{}?consistency=eventual", name.0);
        let request = Request::builder()
            .method(Method::PUT)
            .uri(path)
            .header("Frontage-Stamp", stamp);
        let response = self.ask(request, document.to_owned()).await?;
        let body = Limited::new(response.into_body(), MAX_ANSWER);
        let body = timeout(ANSWER_TIMEOUT, body.collect()).await?;
        let body = body.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
        serde_json::from_slice(&body).context("invalid answer of the record server")
    }

    /// Subscribe to a record: its present state if it exists, then later ones.
    ///
    /// # Errors
    /// If no server answers, or the first that answers refuses.
    pub async fn subscribe(&self, name: &Name) -> Result<Subscription> {
        let request = Request::builder().uri(format!("/records/{}/changes", name.0));
        let body = self.ask(request, String::new()).await?.into_body();
        Ok(Subscription {
            body,
            buffer: Vec::new(),
        })
    }

    /// Ask one server after the other until one answers.
    async fn ask(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Result<Response<Incoming>> {
        let mut request = request.body(Full::new(Bytes::from(body)))?;
        if let Some(authorization) = &self.authorization {
            let headers = request.headers_mut();
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let (count, first) = (self.servers.len(), self.preferred.load(Relaxed));
        let mut failure = anyhow::anyhow!("no record server");
        for index in (0..count).map(|n| (first + n) % count) {
            let server = &self.servers[index];
            let answer = timeout(ANSWER_TIMEOUT, self.send(server, request.clone())).await;
            match answer.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer"))) {
                // Another server may be able to answer.
                Ok(response) if response.status() == StatusCode::SERVICE_UNAVAILABLE => {
                    failure = refusal(server, response).await;
                }
                Ok(response) => {
                    self.preferred.store(index, Relaxed);
                    if response.status().is_success() {
                        return Ok(response);
                    }
                    return Err(refusal(server, response).await);
                }
                Err(error) => failure = error.context(server.to_string()),
            }
        }
        Err(failure)
    }

    async fn send(
        &self,
        server: &ServerUrl,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>> {
        let host = format!("{}:{}", server.host, server.port).parse()?;
        request.headers_mut().insert(HOST, host);
        let address = server.host_without_brackets();
        let stream = TcpStream::connect((address, server.port)).await?;
        stream.set_nodelay(true)?;
        if !server.is_https {
            return exchange(stream, request).await;
        }
        let name = ServerName::try_from(address.to_owned())?;
        exchange(self.tls.connect(name, stream).await?, request).await
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Its errors also reach the reader of the response.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

async fn refusal(server: &ServerUrl, response: Response<Incoming>) -> anyhow::Error {
    let status = response.status();
    let body = timeout(
        ANSWER_TIMEOUT,
        Limited::new(response.into_body(), MAX_ANSWER).collect(),
    );
    let body = match body.await {
        Ok(Ok(body)) => body.to_bytes(),
        _ => Bytes::new(),
    };
    anyhow::anyhow!("{server}: {status}: {}", String::from_utf8_lossy(&body))
}

fn read_token(path: &Path) -> Result<HeaderValue> {
    let place = path.display();
    let token =
        std::fs::read_to_string(path).with_context(|| format!("{place}: cannot read the token"))?;
    let mut value =
        HeaderValue::try_from(format!("Bearer {}", token.trim())).with_context(|| {
            format!("{place}: invalid token: create one with `frontage records token`")
        })?;
    value.set_sensitive(true);
    Ok(value)
}

fn tls(authorities: Option<&Path>) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = authorities {
        let place = || format!("{}: cannot read the authorities", path.display());
        for certificate in CertificateDer::pem_file_iter(path).with_context(place)? {
            roots
                .add(certificate.with_context(place)?)
                .with_context(place)?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}

/// A stream of a record's states (server-sent events).
pub struct Subscription {
    body: Incoming,
    /// Received bytes of incomplete lines.
    buffer: Vec<u8>,
}

/// A state of a record.
#[derive(Debug, Deserialize)]
pub struct State {
    /// Version, which increases.
    pub version: i64,
    /// The document; none after deletion.
    pub value: Option<serde_json::Value>,
}

impl Subscription {
    /// Return the next state, or none at the end.
    ///
    /// # Errors
    /// If the connection is lost, the server is silent, or an event is invalid or reports an error.
    pub async fn next(&mut self) -> Result<Option<State>> {
        loop {
            if let Some(line) = self.take_line()? {
                if let Some(data) = line.strip_prefix("data: ") {
                    // An event `error` is not a state.
                    let state = serde_json::from_str(data);
                    return Ok(Some(
                        state.with_context(|| format!("invalid event {data:.200}"))?,
                    ));
                }
                continue;
            }
            let frame = timeout(SUBSCRIPTION_SILENCE, self.body.frame()).await?;
            match frame.transpose()? {
                None => return Ok(None),
                Some(frame) => self.buffer.extend(frame.data_ref().into_iter().flatten()),
            }
        }
    }

    fn take_line(&mut self) -> Result<Option<String>> {
        let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') else {
            ensure!(
                self.buffer.len() <= MAX_ANSWER,
                "an event of more than {MAX_ANSWER} bytes"
            );
            return Ok(None);
        };
        let line = self.buffer.drain(..=end).collect();
        Ok(Some(String::from_utf8(line)?.trim_end().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_scheme_host_and_port() {
        for (text, printed) in [
            ("http://[2001:db8::8]:8480", "http://[2001:db8::8]:8480"),
            ("http://records.example/", "http://records.example:80"),
            ("https://records.example", "https://records.example:443"),
        ] {
            assert_eq!(text.parse::<ServerUrl>().unwrap().to_string(), printed);
        }
        for invalid in [
            "",
            "records.example:8480",
            "ftp://a",
            "http://a/records",
            "http://a?b",
        ] {
            assert!(invalid.parse::<ServerUrl>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn names_are_guids() {
        assert!("films.example".parse::<Name>().is_ok());
        for invalid in ["", "a/b", "a?b", &"x".repeat(129)] {
            assert!(invalid.parse::<Name>().is_err(), "{invalid}");
        }
    }
}
