// SPDX-License-Identifier: Apache-2.0
//! Routes: the one with the longest matching path prefix responds to a request, among those whose host and header match.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, Uri};

use crate::body::{RequestBody, ResponseBody};
use crate::config::{HeaderMatch, RealServerChoice, Route};
use crate::file_cache::{DEFAULT_CAPACITY, FileCache};
use crate::files::Files;
use crate::proxy::Proxy;
use crate::response::status;

/// Servers that can respond to clients directly, in place of this one.
pub trait OriginPool {
    /// Choose the origin from which to proxy the response to a request for `uri`.
    fn origin(&self, uri: &Uri) -> &Uri;
}

/// For agents without such servers.
impl OriginPool for Infallible {
    fn origin(&self, _: &Uri) -> &Uri {
        match *self {}
    }
}

/// Routes, those with the longest prefix first. `P` is the pool of real servers of a route.
pub struct Routes<P> {
    routes: Vec<Rule<P>>,
    proxy: Proxy,
}

struct Rule<P> {
    /// Path prefix without the last `/`.
    prefix: String,
    host: Option<String>,
    header: Option<HeaderMatch>,
    target: Target<P>,
}

/// Target of a route.
pub enum Target<P> {
    /// Files of a directory.
    Files(Files),
    /// An origin, by proxying.
    Origin(Uri),
    /// Real servers, which respond to clients directly.
    RealServers(P),
}

impl<P: OriginPool> Routes<P> {
    /// Create the routes of a checked configuration. `pool` creates the pool of a route's real servers.
    pub fn new<'a>(
        routes: impl IntoIterator<Item = &'a Route>,
        mut pool: impl FnMut(&RealServerChoice) -> P,
    ) -> Self {
        let cache = Arc::new(FileCache::new(DEFAULT_CAPACITY));
        let rules = routes.into_iter();
        let rules = rules.map(|route| Rule::new(route, &cache, &mut pool));
        let mut rules: Vec<_> = rules.collect();
        let strictness = |rule: &Rule<P>| (rule.host.is_some(), rule.header.is_some());
        rules.sort_by_key(|rule| Reverse((rule.prefix.len(), strictness(rule))));
        Self {
            routes: rules,
            proxy: Proxy::default(),
        }
    }

    /// Return the target of the route that matches `request`.
    pub fn target<B>(&self, request: &Request<B>) -> Option<&Target<P>> {
        if request.method() == Method::CONNECT {
            return None;
        }
        let rule = self.routes.iter().find(|rule| rule.matches(request));
        rule.map(|rule| &rule.target)
    }

    /// Respond to `request` of `client` from `target`. For real servers, proxy the response from the origin of one.
    pub async fn respond(
        &self,
        target: Option<&Target<P>>,
        client: SocketAddr,
        request: Request<RequestBody>,
    ) -> Response<ResponseBody> {
        // Proxying has its own memory, so that responses from files need little.
        let forward = |origin, request| Box::pin(self.proxy.forward(origin, client, request));
        match target {
            Some(Target::Files(files)) => files.serve(&request),
            Some(Target::Origin(origin)) => forward(origin, request).await,
            Some(Target::RealServers(pool)) => forward(pool.origin(request.uri()), request).await,
            None if request.method() == Method::CONNECT => status(StatusCode::NOT_IMPLEMENTED),
            None => status(StatusCode::NOT_FOUND),
        }
    }
}

impl<P> Rule<P> {
    fn new(
        route: &Route,
        cache: &Arc<FileCache>,
        pool: impl FnOnce(&RealServerChoice) -> P,
    ) -> Self {
        let prefix = route.path.trim_end_matches('/').to_owned();
        let target = match (&route.directory, &route.origin, &route.real_servers) {
            (Some(directory), ..) => Target::Files(Files::new(directory, &prefix, cache.clone())),
            (None, Some(origin), _) => Target::Origin(origin.clone()),
            (None, None, Some(choice)) => Target::RealServers(pool(choice)),
            (None, None, None) => unreachable!("check_routes rejects such a route"),
        };
        Self {
            prefix,
            host: route.host.clone(),
            header: route.header.clone(),
            target,
        }
    }

    fn matches<B>(&self, request: &Request<B>) -> bool {
        let host = |host: &String| {
            let requested = request.uri().host();
            requested.is_some_and(|requested| requested.eq_ignore_ascii_case(host))
        };
        let header = |field: &HeaderMatch| {
            let mut values = request.headers().get_all(&field.name).iter();
            values.any(|value| value == field.value)
        };
        covers(&self.prefix, request.uri().path())
            && self.host.as_ref().is_none_or(host)
            && self.header.as_ref().is_none_or(header)
    }
}

/// Return whether `prefix` covers `path`. Prefixes end at a path segment: `/a` covers `/a` and `/a/b`, but not `/ab`.
fn covers(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_covers_whole_segments_only() {
        assert!(covers("", "/") && covers("", "/x") && covers("/a", "/a") && covers("/a", "/a/b"));
        assert!(!covers("/a", "/ab") && !covers("/a", "/"));
    }

    #[test]
    fn host_and_header_break_ties_between_equal_prefixes() {
        let route = |more: &str, port: u16| {
            let text = format!("path = '/a'\norigin = 'http://127.0.0.1:{port}'\n{more}");
            toml::from_str::<Route>(&text).unwrap()
        };
        let routes = Routes::new(
            &[
                route("", 1),
                route("host = 'b.test'", 2),
                route("header = { name = 'x-kind', value = 'film' }", 3),
                route(
                    "host = 'b.test'\nheader = { name = 'x-kind', value = 'film' }",
                    4,
                ),
            ],
            |_| -> Infallible { unreachable!("no real servers") },
        );
        for (host, kind, port) in [
            ("a.test", "text", 1),
            ("B.test:443", "text", 2),
            ("a.test", "film", 3),
            ("b.test", "film", 4),
        ] {
            let request = Request::get(format!("https://{host}/a/b")).header("x-kind", kind);
            let request = request.body(()).unwrap();
            let Some(Target::Origin(origin)) = routes.target(&request) else {
                panic!("no route for {host} {kind}");
            };
            assert_eq!(origin.port_u16(), Some(port));
        }
    }
}
