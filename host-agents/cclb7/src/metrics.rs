//! The Prometheus endpoint: one page, whatever is asked for.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anyhow::Result;

use crate::state::State;
use crate::stats;

const PATIENCE: Duration = Duration::from_secs(5);

/// Answers requests until the process ends.
pub fn serve(listener: &TcpListener, state: &State) -> ! {
    loop {
        // A client that goes away costs only its own answer.
        if let Ok((stream, _)) = listener.accept() {
            let _ = answer(stream, state);
        }
    }
}

fn answer(mut stream: TcpStream, state: &State) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // Reading the request keeps the close from becoming a reset that would cut off the answer.
    let mut request = [0; 4096];
    let _ = stream.read(&mut request)?;
    let (status, body) = match stats::to_prometheus(state) {
        Ok(body) => ("200 OK", body),
        Err(error) => ("500 Internal Server Error", format!("{error:#}\n")),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )?;
    Ok(())
}
