// SPDX-License-Identifier: Apache-2.0
//! The transfer of a response body on an open connection.

use std::fs::File;
use std::io::Write as _;
use std::time::Instant;

use super::Report;
use crate::Error;
use crate::client::{Session, Url};

/// Requests `url` on `session`, and records the response in the report.
pub(super) async fn download<T>(
    session: &mut Session<T>,
    url: &Url,
    mut file: Option<&mut File>,
    (report, started): (&mut Report, Instant),
) -> Result<(), Error> {
    let mut response = session.get(&url.uri).await?;
    report.seconds.first_byte = Some(started.elapsed().as_secs_f64());
    report.status = Some(response.head.status().as_u16());
    while let Some(chunk) = response.chunk().await? {
        report.bytes += chunk.len() as u64;
        if let Some(file) = &mut file {
            file.write_all(&chunk)?;
        }
    }
    Ok(())
}
