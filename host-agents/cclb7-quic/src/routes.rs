//! Which route answers a request: of those whose host and header are its, the one with the longest prefix of its path.

use std::cmp::Reverse;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, Uri};

use crate::body::{RequestBody, ResponseBody};
use crate::config::{Field, Route};
use crate::files::Files;
use crate::handoff::{Pool, Servers, key};
use crate::proxy::{Proxy, status};

/// The routes, that with the longest prefix first.
pub struct Routes {
    routes: Vec<Rule>,
    proxy: Proxy,
}

struct Rule {
    /// Without the last `/`.
    prefix: String,
    host: Option<String>,
    header: Option<Field>,
    target: Target,
}

/// What answers.
pub enum Target {
    /// A folder's files.
    Files(Files),
    /// Another server, through this one.
    Origin(Uri),
    /// One of several, by itself.
    RealServers(Pool),
}

impl Routes {
    /// The routes of a configuration that was loaded, hence right, and the real servers that it names.
    pub fn new<'a>(
        routes: impl IntoIterator<Item = &'a Route>,
        servers: Option<&Arc<Servers>>,
    ) -> Self {
        let rules = routes.into_iter().map(|route| Rule::new(route, servers));
        let mut rules: Vec<_> = rules.collect();
        let strict = |rule: &Rule| (rule.host.is_some(), rule.header.is_some());
        rules.sort_by_key(|rule| Reverse((rule.prefix.len(), strict(rule))));
        Self {
            routes: rules,
            proxy: Proxy::default(),
        }
    }

    /// What is to answer `request`.
    pub fn target<B>(&self, request: &Request<B>) -> Option<&Target> {
        if request.method() == Method::CONNECT {
            return None;
        }
        let rule = self.routes.iter().find(|rule| rule.covers(request));
        rule.map(|rule| &rule.target)
    }

    /// What `target` answers to `request` of `client`. Of real servers, the origin of one.
    pub async fn answer(
        &self,
        target: Option<&Target>,
        client: SocketAddr,
        request: Request<RequestBody>,
    ) -> Response<ResponseBody> {
        match target {
            Some(Target::Files(files)) => files.serve(&request),
            Some(Target::Origin(origin)) => self.proxy.pass(origin, client, request).await,
            Some(Target::RealServers(pool)) => {
                let server = pool.choose_origin(key(&request));
                self.proxy.pass(&server.origin, client, request).await
            }
            None if request.method() == Method::CONNECT => status(StatusCode::NOT_IMPLEMENTED),
            None => status(StatusCode::NOT_FOUND),
        }
    }
}

impl Rule {
    fn new(route: &Route, servers: Option<&Arc<Servers>>) -> Self {
        let prefix = route.path.trim_end_matches('/').to_owned();
        let target = match (&route.directory, &route.origin, &route.real_servers) {
            (Some(directory), ..) => Target::Files(Files::new(directory, &prefix)),
            (None, Some(origin), _) => Target::Origin(origin.clone()),
            (None, None, Some(chosen)) => {
                let servers =
                    servers.expect("config::load refuses real servers that are not listed");
                Target::RealServers(Pool::new(servers.clone(), chosen))
            }
            (None, None, None) => unreachable!("config::load refuses such a route"),
        };
        Self {
            prefix,
            host: route.host.clone(),
            header: route.header.clone(),
            target,
        }
    }

    fn covers<B>(&self, request: &Request<B>) -> bool {
        let host = |host: &String| {
            let asked = request.uri().host();
            asked.is_some_and(|asked| asked.eq_ignore_ascii_case(host))
        };
        let header = |field: &Field| {
            let mut values = request.headers().get_all(&field.name).iter();
            values.any(|value| value == field.value)
        };
        covers(&self.prefix, request.uri().path())
            && self.host.as_ref().is_none_or(host)
            && self.header.as_ref().is_none_or(header)
    }
}

/// Prefixes end where a segment of the path ends: `/a` covers `/a` and `/a/b`, not `/ab`.
fn covers(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_of_whole_segments() {
        assert!(covers("", "/") && covers("", "/x") && covers("/a", "/a") && covers("/a", "/a/b"));
        assert!(!covers("/a", "/ab") && !covers("/a", "/"));
    }

    #[test]
    fn host_and_header_decide_between_equal_prefixes() {
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
            None,
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
                panic!("{host} {kind} has no route");
            };
            assert_eq!(origin.port_u16(), Some(port));
        }
    }
}
