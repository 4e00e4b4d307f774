// SPDX-License-Identifier: Apache-2.0
//! Configuration of a port's outgoing link, and its textual form (`--link`).

use std::num::NonZeroU64;
use std::str::FromStr;

/// A time or a duration in nanoseconds.
pub type Nanos = u64;

/// Queue limit, in packets, of a link with a rate but without a configured limit.
pub const DEFAULT_QUEUE_PACKETS: u64 = 1000;

/// A port's outgoing link: its queue, rate, propagation delay and loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkConfig {
    /// Bits per second. On a link without a rate, sending takes no time.
    ///
    /// A frame counts with its bits on egress, from the destination address to the end of the
    /// payload (as in Linux's `tc`), plus `overhead`.
    pub rate: Option<NonZeroU64>,
    /// Bytes per frame that use the rate in addition to the frame, such as Ethernet's 24 bytes of
    /// preamble, frame check sequence and gap. Queue lengths do not include them.
    pub overhead: u32,
    /// Queue limit in bytes, without the frame in transmission.
    pub queue_bytes: Option<u64>,
    /// Queue limit in packets, without the one in transmission.
    pub queue_packets: Option<u64>,
    /// Propagation delay.
    pub delay: Nanos,
    /// Probability that the link loses a frame.
    pub loss: Loss,
}

impl LinkConfig {
    /// Returns true if frames leave at once, so that no packet ever waits.
    pub fn is_pass_through(&self) -> bool {
        self.rate.is_none()
    }

    /// Returns the queue limit in packets; the default applies if neither limit is configured.
    pub fn packet_limit(&self) -> u64 {
        match (self.queue_packets, self.queue_bytes) {
            (Some(n), _) => n,
            (None, Some(_)) => u64::MAX,
            (None, None) => DEFAULT_QUEUE_PACKETS,
        }
    }
}

/// A probability, in parts per billion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss(u32);

impl Loss {
    const ONE: u64 = 1_000_000_000;

    /// Creates a probability from parts per billion, at most 10⁹.
    pub fn from_ppb(ppb: u32) -> Option<Self> {
        (u64::from(ppb) <= Self::ONE).then_some(Self(ppb))
    }

    /// Returns true if no frame is ever lost.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns true if `random`, drawn uniformly, falls within the probability.
    pub fn hits(self, random: u64) -> bool {
        u128::from(random) * u128::from(Self::ONE) < u128::from(self.0) << 64
    }
}

/// A `--link` argument: a port and its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortLink {
    /// The port.
    pub port: u32,
    /// Its outgoing link.
    pub link: LinkConfig,
}

impl FromStr for PortLink {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let (port, settings) = s
            .split_once(':')
            .ok_or("expected PORT:KEY=VALUE,...: for example 1:rate=100mbit,queue=64kB")?;
        let port = port
            .parse()
            .map_err(|_| format!("invalid port '{port}': expected a number"))?;
        let mut link = LinkConfig::default();
        for setting in settings.split(',') {
            let (key, value) = setting
                .split_once('=')
                .ok_or_else(|| format!("invalid setting '{setting}': expected KEY=VALUE"))?;
            match key {
                "rate" => {
                    let rate = quantity(value, RATE_UNITS)?;
                    let rate = NonZeroU64::new(rate)
                        .ok_or("rate must be at least 1bit: omit it for a link without a rate")?;
                    link.rate = Some(rate);
                }
                "overhead" => {
                    let bytes = quantity(value, BYTE_UNITS)?;
                    link.overhead = bytes.try_into().map_err(|_| {
                        format!("overhead '{value}' is too large: use at most 4294967295B")
                    })?;
                }
                "queue" => link.queue_bytes = Some(quantity(value, BYTE_UNITS)?),
                "queue-packets" => {
                    let packets = value.parse();
                    link.queue_packets = Some(packets.map_err(|_| {
                        format!("invalid queue-packets '{value}': expected a number")
                    })?);
                }
                "delay" => link.delay = quantity(value, TIME_UNITS)?,
                "loss" => link.loss = loss(value)?,
                _ => {
                    return Err(format!(
                        "unknown key '{key}': use rate, overhead, queue, queue-packets, delay or loss"
                    ));
                }
            }
        }
        if link.rate.is_none() && (link.queue_bytes.is_some() || link.queue_packets.is_some()) {
            return Err("a queue without a rate never fills: add rate=".into());
        }
        Ok(Self { port, link })
    }
}

type Units = &'static [(&'static str, u64)];

const RATE_UNITS: Units = &[
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
];
const BYTE_UNITS: Units = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
];
const TIME_UNITS: Units = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// Parses a decimal number with a unit, exactly: `1.5mbit` is 1,500,000.
fn quantity(s: &str, units: Units) -> Result<u64, String> {
    let names = || {
        let names: Vec<_> = units.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    };
    let end = s
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(s.len());
    let (number, unit) = s.split_at(end);
    let (_, scale) = units
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| format!("invalid quantity '{s}': use one of the units {}", names()))?;
    decimal(number, *scale).ok_or_else(|| {
        format!(
            "invalid quantity '{s}': not a whole number of {}",
            units[0].0
        )
    })
}

/// Returns `number * scale` if that is an integer of 64 bits.
fn decimal(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let divisor = 10u128.checked_pow(fraction.len().try_into().ok()?)?;
    let scaled = digits.checked_mul(u128::from(scale))?;
    (scaled % divisor == 0)
        .then(|| u64::try_from(scaled / divisor).ok())
        .flatten()
}

fn loss(s: &str) -> Result<Loss, String> {
    let parsed = match s.strip_suffix('%') {
        Some(percent) => decimal(percent, Loss::ONE / 100),
        None => decimal(s, Loss::ONE),
    };
    parsed
        .and_then(|ppb| Loss::from_ppb(ppb.try_into().ok()?))
        .ok_or_else(|| {
            format!("invalid loss '{s}': use a share such as 0.1% or 0.001, at most 100%")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(s: &str) -> Result<PortLink, String> {
        s.parse()
    }

    #[test]
    fn parses_all_keys() {
        let PortLink { port, link } =
            parse("3:rate=1.5gbit,overhead=24B,queue=64kB,queue-packets=100,delay=5ms,loss=0.1%")
                .unwrap();
        assert_eq!(port, 3);
        assert_eq!(link.rate.unwrap().get(), 1_500_000_000);
        assert_eq!(link.overhead, 24);
        assert_eq!(link.queue_bytes, Some(64_000));
        assert_eq!(link.queue_packets, Some(100));
        assert_eq!(link.delay, 5_000_000);
        assert_eq!(link.loss, Loss::from_ppb(1_000_000).unwrap());
    }

    #[test]
    fn errors_name_the_invalid_part() {
        for (arg, expected) in [
            ("1", "expected PORT:KEY=VALUE"),
            ("x:rate=1mbit", "invalid port 'x'"),
            ("1:rate=10", "use one of the units bit, kbit"),
            ("1:rate=10mb", "use one of the units"),
            ("1:rate=0mbit", "at least 1bit"),
            ("1:overhead=5GB", "use one of the units"),
            ("1:overhead=5000MB", "too large"),
            ("1:speed=1", "unknown key 'speed'"),
            ("1:rate", "invalid setting 'rate'"),
            ("1:delay=0.1ns", "not a whole number"),
            ("1:loss=101%", "at most 100%"),
            ("1:queue=64kB", "a queue without a rate"),
        ] {
            let error = parse(arg).unwrap_err();
            assert!(error.contains(expected), "{arg}: {error}");
        }
    }

    #[test]
    fn loss_hits_with_the_configured_probability() {
        assert!(!Loss::from_ppb(0).unwrap().hits(0));
        assert!(Loss::from_ppb(1_000_000_000).unwrap().hits(u64::MAX));
        let half = Loss::from_ppb(500_000_000).unwrap();
        assert!(half.hits((1 << 63) - 1) && !half.hits(1 << 63));
    }
}
