//! Conditions of requests for files (RFC 9110, section 13).

use std::time::SystemTime;

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// What a request's conditions come to.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This status without a body.
    Answer(StatusCode),
    /// The file; the part of it that is asked for, if `ranges`.
    Serve {
        /// Whether `Range` counts.
        ranges: bool,
    },
}

/// Evaluates the conditions that `headers` put on a file, in the order of section 13.2.2: where one on the entity tag stands, the one on
/// the date beside it does not count. `modified` has whole seconds.
pub fn decide(headers: &HeaderMap, tag: &HeaderValue, modified: SystemTime) -> Outcome {
    let date = |name: HeaderName| httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok();
    let failed = match headers.get(header::IF_MATCH) {
        Some(wanted) => !lists(wanted, tag),
        None => date(header::IF_UNMODIFIED_SINCE).is_some_and(|date| modified > date),
    };
    if failed {
        return Outcome::Answer(StatusCode::PRECONDITION_FAILED);
    }
    let known = match headers.get(header::IF_NONE_MATCH) {
        Some(known) => lists(known, tag),
        None => date(header::IF_MODIFIED_SINCE).is_some_and(|date| modified <= date),
    };
    if known {
        return Outcome::Answer(StatusCode::NOT_MODIFIED);
    }
    // A date is as good here as the tag that is made of it, but only the tag is compared: a false "changed" costs the range, no more.
    let ranges = headers
        .get(header::IF_RANGE)
        .is_none_or(|known| known == tag);
    Outcome::Serve { ranges }
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
    const BEFORE: &str = "Mon, 01 Jan 2024 00:00:00 GMT";
    const THEN: &str = "Tue, 02 Jan 2024 00:00:00 GMT";

    fn outcome(headers: &[(HeaderName, &str)]) -> Outcome {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()));
        decide(
            &headers.collect(),
            &TAG,
            httpdate::parse_http_date(THEN).unwrap(),
        )
    }

    #[test]
    fn preconditions() {
        let (unmodified, modified) = (header::IF_UNMODIFIED_SINCE, header::IF_MODIFIED_SINCE);
        let (matches, other) = (header::IF_MATCH, header::IF_NONE_MATCH);
        let (whole, part) = (
            Outcome::Serve { ranges: false },
            Outcome::Serve { ranges: true },
        );
        let known = Outcome::Answer(StatusCode::NOT_MODIFIED);
        let failed = Outcome::Answer(StatusCode::PRECONDITION_FAILED);
        assert_eq!(outcome(&[]), part);
        assert_eq!(outcome(&[(other.clone(), "\"x\", W/\"5-a\"")]), known);
        assert_eq!(outcome(&[(other.clone(), "*")]), known);
        assert_eq!(outcome(&[(other, "\"x\""), (modified.clone(), THEN)]), part);
        assert_eq!(outcome(&[(modified.clone(), BEFORE)]), part);
        assert_eq!(outcome(&[(modified.clone(), "yesterday")]), part);
        assert_eq!(outcome(&[(modified, THEN)]), known);
        assert_eq!(outcome(&[(unmodified.clone(), BEFORE)]), failed);
        assert_eq!(outcome(&[(unmodified.clone(), THEN)]), part);
        assert_eq!(outcome(&[(matches.clone(), "\"x\"")]), failed);
        assert_eq!(outcome(&[(matches, "\"5-a\""), (unmodified, BEFORE)]), part);
        assert_eq!(outcome(&[(header::IF_RANGE, "\"5-a\"")]), part);
        assert_eq!(outcome(&[(header::IF_RANGE, "\"x\"")]), whole);
    }
}
