// SPDX-License-Identifier: Apache-2.0
//! Responses that the balancer can resume from another server if this one dies.

use bytes::Bytes;
use frontage_handoff::message::Resumable;
use http::{HeaderValue, Method, Response, StatusCode, header};

/// Return the description of a response to `method` with a body of `size` bytes, without the head; `None` if the rest
/// of it cannot be requested as a range (RFC 9110, section 14), which needs a strong entity tag.
pub fn describe<B>(
    method: &Method,
    response: &Response<B>,
    size: Option<u64>,
) -> Option<Resumable> {
    let size = size.filter(|size| *size > 0 && *method == Method::GET)?;
    let headers = response.headers();
    let tag = headers.get(header::ETAG)?.as_bytes();
    let from = match response.status() {
        StatusCode::OK => 0,
        StatusCode::PARTIAL_CONTENT => first_byte(headers.get(header::CONTENT_RANGE)?)?,
        _ => return None,
    };
    tag.starts_with(b"\"").then(|| Resumable {
        tag: Bytes::copy_from_slice(tag),
        from,
        size,
        head: Bytes::new(),
    })
}

/// Return the first position of a `Content-Range` field.
fn first_byte(range: &HeaderValue) -> Option<u64> {
    let range = range.to_str().ok()?.strip_prefix("bytes ")?;
    range.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(method: &Method, status: u16, fields: &[(&str, &str)]) -> Option<(u64, u64)> {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        let resumable = describe(method, &response.body(()).unwrap(), Some(9))?;
        Some((resumable.from, resumable.size))
    }

    #[test]
    fn only_responses_with_strong_tags_are_resumable() {
        let (get, head) = (&Method::GET, &Method::HEAD);
        let tag = ("etag", "\"a\"");
        assert_eq!(described(get, 200, &[tag]), Some((0, 9)));
        assert_eq!(described(head, 200, &[tag]), None);
        assert_eq!(described(&Method::POST, 200, &[tag]), None);
        assert_eq!(described(get, 404, &[tag]), None);
        assert_eq!(described(get, 200, &[]), None);
        assert_eq!(described(get, 200, &[("etag", "W/\"a\"")]), None);
        let range = |range| described(get, 206, &[tag, ("content-range", range)]);
        assert_eq!(range("bytes 5-13/20"), Some((5, 9)));
        assert_eq!(range("bytes */20"), None);
        assert_eq!(described(get, 206, &[tag]), None);
    }
}
