//! Files of a directory: `tower-http`'s `ServeDir` (types, ranges, HEAD, dates, no way out of the directory), and entity tags on top.

use std::path::Path;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty};
use tower::ServiceExt as _;
use tower_http::services::ServeDir;

use crate::body::ResponseBody;

/// Serves one directory.
#[derive(Clone, Debug)]
pub struct Files {
    directory: ServeDir,
    /// What of a path is no name of a file, without the last `/`.
    prefix: String,
}

impl Files {
    /// Serves `directory` at the paths that begin with `prefix`.
    pub fn new(directory: &Path, prefix: &str) -> Self {
        Self {
            directory: ServeDir::new(directory),
            prefix: prefix.to_owned(),
        }
    }

    /// The answer to `request`, whose body is not looked at.
    pub async fn serve<B>(&self, request: &Request<B>) -> Response<ResponseBody> {
        let uri = self.stripped(request.uri());
        let headers = request.headers().clone();
        let Some(tag) = self.tag(&uri).await else {
            return self.call(request.method().clone(), uri, headers).await;
        };
        match decide(&headers, &tag) {
            Decision::Answer(status) => {
                let mut response = Response::new(ResponseBody::default());
                *response.status_mut() = status;
                response.headers_mut().insert(header::ETAG, tag);
                response
            }
            Decision::Serve(headers) => {
                let mut response = self.call(request.method().clone(), uri, headers).await;
                response.headers_mut().insert(header::ETAG, tag);
                response
            }
        }
    }

    fn stripped(&self, uri: &Uri) -> Uri {
        let whole = uri.path_and_query().map_or("/", |path| path.as_str());
        let rest = &whole[self.prefix.len()..];
        let rest = if rest.starts_with('/') {
            rest.to_owned()
        } else {
            format!("/{rest}")
        };
        rest.parse().unwrap_or_default()
    }

    /// From length and date, as servers do that keep no digests; `None` if this is no file.
    async fn tag(&self, uri: &Uri) -> Option<HeaderValue> {
        let response = self.call(Method::HEAD, uri.clone(), HeaderMap::new()).await;
        let value = |name: HeaderName| response.headers().get(name)?.to_str().ok();
        let modified = httpdate::parse_http_date(value(header::LAST_MODIFIED)?).ok()?;
        let seconds = modified
            .duration_since(std::time::UNIX_EPOCH)
            .ok()?
            .as_secs();
        let length: u64 = value(header::CONTENT_LENGTH)?.parse().ok()?;
        HeaderValue::from_str(&format!("\"{seconds:x}-{length:x}\"")).ok()
    }

    async fn call(&self, method: Method, uri: Uri, headers: HeaderMap) -> Response<ResponseBody> {
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let Ok(response) = self.directory.clone().oneshot(request).await;
        let mut response = response.map(|body| body.map_err(Into::into).boxed_unsync());
        // The way to a folder's "/" must lead through the prefix.
        if let Some(location) = response.headers_mut().get_mut(header::LOCATION)
            && let Ok(path) = location.to_str()
            && let Ok(prefixed) = HeaderValue::from_str(&format!("{}{path}", self.prefix))
        {
            *location = prefixed;
        }
        response
    }
}

enum Decision {
    Answer(StatusCode),
    /// With the conditions that are still open: those of dates, and a range.
    Serve(HeaderMap),
}

/// Evaluates the preconditions that have to do with `tag`, in the order of RFC 9110, section 13.2.2. Where a condition on the tag stands, the one on
/// the date beside it does not count.
fn decide(headers: &HeaderMap, tag: &HeaderValue) -> Decision {
    let mut open = headers.clone();
    if let Some(wanted) = open.remove(header::IF_MATCH) {
        open.remove(header::IF_UNMODIFIED_SINCE);
        if !lists(&wanted, tag) {
            return Decision::Answer(StatusCode::PRECONDITION_FAILED);
        }
    }
    if let Some(known) = open.remove(header::IF_NONE_MATCH) {
        open.remove(header::IF_MODIFIED_SINCE);
        if lists(&known, tag) {
            return Decision::Answer(StatusCode::NOT_MODIFIED);
        }
    }
    // A date is as good here as the tag that is made of it, but only the tag is compared: a false "changed" costs the range, no more.
    if open
        .remove(header::IF_RANGE)
        .is_some_and(|known| known != tag)
    {
        open.remove(header::RANGE);
    }
    Decision::Serve(open)
}

/// Whether a list of entity tags is `*` or holds `tag`, weak or strong.
fn lists(list: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(list), Ok(tag)) = (list.to_str(), tag.to_str()) else {
        return false;
    };
    list.split(',')
        .map(str::trim)
        .any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: HeaderValue = HeaderValue::from_static("\"5-a\"");

    fn status(headers: &[(HeaderName, &str)]) -> Result<usize, StatusCode> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()));
        match decide(&headers.collect(), &TAG) {
            Decision::Answer(status) => Err(status),
            Decision::Serve(open) => Ok(open.len()),
        }
    }

    #[test]
    fn preconditions() {
        let (date, range) = (
            "Mon, 01 Jan 2024 00:00:00 GMT",
            (header::RANGE, "bytes=0-1"),
        );
        let (none, some) = (
            Err(StatusCode::NOT_MODIFIED),
            Err(StatusCode::PRECONDITION_FAILED),
        );
        assert_eq!(status(&[]), Ok(0));
        assert_eq!(status(&[(header::IF_NONE_MATCH, "\"x\", W/\"5-a\"")]), none);
        assert_eq!(status(&[(header::IF_NONE_MATCH, "*")]), none);
        assert_eq!(
            status(&[
                (header::IF_NONE_MATCH, "\"x\""),
                (header::IF_MODIFIED_SINCE, date)
            ]),
            Ok(0)
        );
        assert_eq!(status(&[(header::IF_MODIFIED_SINCE, date)]), Ok(1));
        assert_eq!(status(&[(header::IF_MATCH, "\"x\"")]), some);
        assert_eq!(
            status(&[
                (header::IF_MATCH, "\"5-a\""),
                (header::IF_UNMODIFIED_SINCE, date)
            ]),
            Ok(0)
        );
        assert_eq!(
            status(&[(header::IF_RANGE, "\"5-a\""), range.clone()]),
            Ok(1)
        );
        assert_eq!(status(&[(header::IF_RANGE, "\"x\""), range]), Ok(0));
    }
}
