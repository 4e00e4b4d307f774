// SPDX-License-Identifier: Apache-2.0
//! Proxying of requests to an origin over HTTP/1.1 (RFC 9110, section 7.6).

use std::net::SocketAddr;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::Authority;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::body::{RequestBody, ResponseBody};
use crate::response::status;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// Hop-by-hop header fields, besides those that `Connection` lists.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Connection pool to origins.
#[derive(Clone, Debug)]
pub struct Proxy(Client<HttpConnector, RequestBody>);

impl Default for Proxy {
    /// Create an empty pool. Connections are kept for further requests.
    fn default() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        Self(Client::builder(TokioExecutor::new()).build(connector))
    }
}

impl Proxy {
    /// Return the response of `origin` to `request` of `client`; 502 if the origin does not respond.
    pub async fn forward(
        &self,
        origin: &Uri,
        client: SocketAddr,
        request: Request<RequestBody>,
    ) -> Response<ResponseBody> {
        let Some(request) = translate(origin, client, request) else {
            return status(StatusCode::BAD_REQUEST);
        };
        match self.0.request(request).await {
            Ok(mut response) => {
                strip(response.headers_mut());
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            }
            Err(error) => {
                tracing::warn!("{origin}: {error}: responding with 502");
                status(StatusCode::BAD_GATEWAY)
            }
        }
    }
}

/// Translate a request from HTTP/3 to HTTP/1.1: the authority becomes `Host`.
fn translate<B>(origin: &Uri, client: SocketAddr, request: Request<B>) -> Option<Request<B>> {
    let (mut parts, body) = request.into_parts();
    let mut uri = origin.clone().into_parts();
    uri.path_and_query = parts.uri.path_and_query().cloned();
    let host = parts.uri.authority().map(Authority::as_str);
    let host = host.map(HeaderValue::from_str).transpose().ok()?;
    parts.uri = Uri::from_parts(uri).ok()?;
    parts.version = http::Version::HTTP_11;
    strip(&mut parts.headers);
    if let Some(host) = host {
        parts.headers.insert(header::HOST, host);
    }
    let address = HeaderValue::from_str(&client.ip().to_canonical().to_string()).ok()?;
    parts.headers.append(FORWARDED_FOR, address);
    parts
        .headers
        .insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
    parts
        .headers
        .append(header::VIA, HeaderValue::from_static("3 frontage"));
    join_cookies(&mut parts.headers);
    Some(Request::from_parts(parts, body))
}

/// Join `Cookie` fields: HTTP/3 permits several, HTTP/1.1 only one (RFC 9114, section 4.2.1).
fn join_cookies(headers: &mut HeaderMap) {
    let pieces: Vec<&[u8]> = headers
        .get_all(header::COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if pieces.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&pieces.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, joined);
    }
}

fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_translated_to_http_1_1() {
        let request = Request::get("https://frontage.test:443/a/b?c=d")
            .header(header::CONNECTION, "x-private, close")
            .header("x-private", "1")
            .header("x-forwarded-for", "192.0.2.9")
            .header(header::TE, "trailers")
            .header(header::COOKIE, "a=1")
            .header(header::COOKIE, "b=2")
            .body(());
        let origin = Uri::from_static("http://127.0.0.1:8080");
        let client = "[2001:db8::2]:5000".parse().unwrap();
        let request = translate(&origin, client, request.unwrap()).unwrap();
        assert_eq!(request.uri(), "http://127.0.0.1:8080/a/b?c=d");
        let mut fields: Vec<_> = request
            .headers()
            .iter()
            .map(|(n, v)| format!("{n}: {}", v.to_str().unwrap()))
            .collect();
        fields.sort();
        let expected = [
            "cookie: a=1; b=2",
            "host: frontage.test:443",
            "via: 3 frontage",
            "x-forwarded-for: 192.0.2.9",
            "x-forwarded-for: 2001:db8::2",
            "x-forwarded-proto: https",
        ];
        assert_eq!(fields, expected);
    }
}
