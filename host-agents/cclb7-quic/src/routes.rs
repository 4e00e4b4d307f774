//! Which route answers a request: the one with the longest prefix of its path.

use std::net::SocketAddr;

use http::{Method, Request, Response, StatusCode, Uri};

use crate::body::{RequestBody, ResponseBody};
use crate::config::Route;
use crate::files::Files;
use crate::proxy::{Proxy, status};

/// The routes, the longest prefix first.
pub struct Routes {
    routes: Vec<(String, Target)>,
    proxy: Proxy,
}

enum Target {
    Files(Files),
    Origin(Uri),
}

impl Routes {
    /// The routes of a configuration that was loaded, hence right.
    pub fn new<'a>(routes: impl IntoIterator<Item = &'a Route>) -> Self {
        let mut routes: Vec<_> = routes.into_iter().map(target).collect();
        routes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Self {
            routes,
            proxy: Proxy::default(),
        }
    }

    /// The answer to `request` of `client`.
    pub async fn answer(
        &self,
        client: SocketAddr,
        request: Request<RequestBody>,
    ) -> Response<ResponseBody> {
        if request.method() == Method::CONNECT {
            return status(StatusCode::NOT_IMPLEMENTED);
        }
        let path = request.uri().path();
        match self.routes.iter().find(|(prefix, _)| covers(prefix, path)) {
            Some((_, Target::Files(files))) => files.serve(&request),
            Some((_, Target::Origin(origin))) => self.proxy.pass(origin, client, request).await,
            None => status(StatusCode::NOT_FOUND),
        }
    }
}

fn target(route: &Route) -> (String, Target) {
    let prefix = route.path.trim_end_matches('/').to_owned();
    let target = match (&route.directory, &route.origin) {
        (Some(directory), _) => Target::Files(Files::new(directory, &prefix)),
        (None, Some(origin)) => Target::Origin(origin.clone()),
        (None, None) => unreachable!("config::load refuses such a route"),
    };
    (prefix, target)
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
}
