// SPDX-License-Identifier: Apache-2.0
//! Conditional requests for files (RFC 9110, section 13).

use std::time::SystemTime;

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Result of a request's conditions.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Respond with this status and no body.
    Status(StatusCode),
    /// Serve the file.
    Serve {
        /// True if `Range` applies.
        ranges: bool,
    },
}

/// Return whether `headers` have conditions.
pub fn has_any(headers: &HeaderMap) -> bool {
    let conditions = [
        header::IF_MATCH,
        header::IF_UNMODIFIED_SINCE,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_RANGE,
    ];
    conditions.iter().any(|name| headers.contains_key(name))
}

/// Evaluate the conditions in `headers` for a file, in the order of section 13.2.2. A condition on the entity tag overrides the
/// one on the date. `modified` must be in whole seconds.
pub fn decide(headers: &HeaderMap, tag: &HeaderValue, modified: SystemTime) -> Outcome {
    let date = |name: HeaderName| httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok();
    let failed = match headers.get(header::IF_MATCH) {
        Some(wanted) => !contains(wanted, tag),
        None => date(header::IF_UNMODIFIED_SINCE).is_some_and(|date| modified > date),
    };
    if failed {
        return Outcome::Status(StatusCode::PRECONDITION_FAILED);
    }
    let known = match headers.get(header::IF_NONE_MATCH) {
        Some(known) => contains(known, tag),
        None => date(header::IF_MODIFIED_SINCE).is_some_and(|date| modified <= date),
    };
    if known {
        return Outcome::Status(StatusCode::NOT_MODIFIED);
    }
    // Only the tag is compared, and not the date from which it is made. A false "changed" costs no more than the range.
    let ranges = headers
        .get(header::IF_RANGE)
        .is_none_or(|known| known == tag);
    Outcome::Serve { ranges }
}

/// Return whether a list of entity tags is `*` or contains `tag`, weak or strong.
fn contains(list: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(list), Ok(tag)) = (list.to_str(), tag.to_str()) else {
        return false;
    };
    list.split(',')
        .map(str::trim)
        .any(|entry| entry == "*" || entry.strip_prefix("W/").unwrap_or(entry) == tag)
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
    fn conditions_follow_rfc_9110_order() {
        let (unmodified, modified) = (header::IF_UNMODIFIED_SINCE, header::IF_MODIFIED_SINCE);
        let (matches, other) = (header::IF_MATCH, header::IF_NONE_MATCH);
        let (whole, part) = (
            Outcome::Serve { ranges: false },
            Outcome::Serve { ranges: true },
        );
        let known = Outcome::Status(StatusCode::NOT_MODIFIED);
        let failed = Outcome::Status(StatusCode::PRECONDITION_FAILED);
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
