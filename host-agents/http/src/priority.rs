// SPDX-License-Identifier: Apache-2.0
//! Priorities of responses (RFC 9218).

use http::HeaderMap;

/// Header field with a priority, in requests and responses.
const FIELD: &str = "priority";
/// Urgency without a field (RFC 9218, section 4.1).
const DEFAULT_URGENCY: u8 = 3;
/// The least urgent value.
const MAX_URGENCY: u8 = 7;
/// Responses of clients that do not prioritize share the connection from this size on. Shorter ones go first.
const LONG_RESPONSE: u64 = 1 << 20;
/// Responses whose sizes in bytes have the same quotient by this number share the connection.
const SIZE_UNIT: u64 = 64;
/// Bits of a send order for the position within an urgency.
const POSITION_BITS: u32 = 24;

/// Priority of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7.
    pub urgency: u8,
    /// True if the client can use parts of the response, so that responses of this urgency share the connection.
    pub is_incremental: bool,
    /// True if neither the request nor the response has a priority.
    is_default: bool,
}

impl Default for Priority {
    /// Return the priority of a response without fields. RFC 9218 permits any order between responses of clients that do
    /// not prioritize; here short responses go first, and long ones share the connection.
    fn default() -> Self {
        Self {
            urgency: DEFAULT_URGENCY,
            is_incremental: true,
            is_default: true,
        }
    }
}

impl Priority {
    /// Return the priority that a client requests.
    pub fn requested(request: &HeaderMap) -> Self {
        let mut priority = Self::default();
        if request.contains_key(FIELD) {
            priority.is_incremental = false;
        }
        priority.merged(request)
    }

    /// Return the priority with the changes that the server's `response` requests (RFC 9218, section 8).
    pub fn merged(mut self, response: &HeaderMap) -> Self {
        for value in response.get_all(FIELD) {
            self.is_default = false;
            if let Ok(dictionary) = value.to_str() {
                self.apply(dictionary);
            }
        }
        self
    }

    /// Apply the members of a dictionary (RFC 9651, section 3.2). Unknown members and invalid values are ignored.
    fn apply(&mut self, dictionary: &str) {
        for member in dictionary.split(',') {
            let member = member.split(';').next().unwrap_or_default().trim();
            match member.split_once('=') {
                Some(("u", value)) => match value.parse::<u8>() {
                    Ok(urgency) if urgency <= MAX_URGENCY => self.urgency = urgency,
                    _ => {}
                },
                Some(("i", "?1")) => self.is_incremental = true,
                Some(("i", "?0")) => self.is_incremental = false,
                None if member == "i" => self.is_incremental = true,
                _ => {}
            }
        }
    }

    /// Return the send order of the response on `stream`: higher ones go first, equal ones share the connection. Within
    /// an urgency, responses that are not incremental are sent one after the other, in the order of the requests, and
    /// before the others. Responses without a priority are sent in the order of their `size` in bytes, if that is known
    /// and below 1 MiB.
    pub fn send_order(self, stream: u64, size: Option<u64>) -> i32 {
        let class = i32::from(MAX_URGENCY - self.urgency) << POSITION_BITS;
        let last = (1 << POSITION_BITS) - 1;
        if self.is_default
            && let Some(size) = size.filter(|size| *size < LONG_RESPONSE)
        {
            return class + last - (size / SIZE_UNIT) as i32;
        }
        if self.is_incremental {
            return class;
        }
        // Bidirectional streams of the client have every fourth id.
        let position = (stream / 4).min(last as u64 - 1) as i32;
        class + last - position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority(request: Option<&str>, response: Option<&str>) -> (u8, bool) {
        let headers = |value: Option<&str>| {
            let fields = value.map(|value| (FIELD.parse().unwrap(), value.parse().unwrap()));
            fields.into_iter().collect::<HeaderMap>()
        };
        let priority = Priority::requested(&headers(request)).merged(&headers(response));
        (priority.urgency, priority.is_incremental)
    }

    #[test]
    fn fields_of_request_and_response_are_merged() {
        for (request, response, expected) in [
            (None, None, (3, true)),
            (Some("u=0"), None, (0, false)),
            (Some("u=5, i"), None, (5, true)),
            (Some("i=?1;a=2,u=7"), None, (7, true)),
            (Some("u=9, i=?0"), None, (3, false)),
            (Some("u=x"), None, (3, false)),
            (Some("u=5, i"), Some("u=1"), (1, true)),
            (Some("u=5, i"), Some("i=?0"), (5, false)),
            (None, Some("u=6"), (6, true)),
        ] {
            assert_eq!(
                priority(request, response),
                expected,
                "{request:?} {response:?}"
            );
        }
    }

    #[test]
    fn urgent_responses_go_first_and_the_others_of_a_client_in_turn() {
        let order = |urgency, is_incremental, stream| {
            Priority {
                urgency,
                is_incremental,
                is_default: false,
            }
            .send_order(stream, Some(1000))
        };
        assert!(order(0, true, 400) > order(1, false, 0));
        assert!(order(3, false, 0) > order(3, false, 4));
        assert!(order(3, false, 1 << 40) > order(3, true, 0));
        assert_eq!(order(3, true, 0), order(3, true, 4));
    }

    #[test]
    fn short_responses_without_priority_go_first_and_long_ones_share() {
        let none = HeaderMap::new();
        let order = |size| Priority::requested(&none).merged(&none).send_order(0, size);
        assert!(order(Some(5_000)) > order(Some(50_000)));
        assert!(order(Some(LONG_RESPONSE - 1)) > order(Some(LONG_RESPONSE)));
        assert_eq!(order(Some(LONG_RESPONSE)), order(Some(1 << 40)));
        assert_eq!(order(Some(LONG_RESPONSE)), order(None));
        let urgent = HeaderMap::from_iter([(FIELD.parse().unwrap(), "u=2, i".parse().unwrap())]);
        assert!(order(Some(0)) < Priority::requested(&urgent).send_order(0, None));
    }
}
