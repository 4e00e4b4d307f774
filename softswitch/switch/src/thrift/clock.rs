// SPDX-License-Identifier: Apache-2.0
//! The switch's clock.

use std::convert::Infallible;
use std::time::SystemTime;

use softswitch_thrift::interface::Clock;

use super::Services;

const NANOS_PER_MICRO: u64 = 1000;

impl Clock for Services {
    fn get_time_elapsed_us(&self) -> Result<i64, Infallible> {
        let micros = self.device.dataplane.now() / NANOS_PER_MICRO;
        Ok(i64::try_from(micros).unwrap_or(i64::MAX))
    }

    fn get_time_since_epoch_us(&self) -> Result<i64, Infallible> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let micros = since.map_or(0, |since| since.as_micros());
        Ok(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}
