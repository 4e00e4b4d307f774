//! One page for Prometheus, whatever is asked for.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_secs(5);

/// Answers each request with what `page` then says, until it is dropped.
pub async fn serve(listener: TcpListener, page: impl Fn() -> String) {
    loop {
        // A client that goes away costs only its own answer.
        if let Ok((stream, _)) = listener.accept().await {
            let page = page();
            tokio::spawn(async move { tokio::time::timeout(PATIENCE, answer(stream, page)).await });
        }
    }
}

async fn answer(mut stream: TcpStream, page: String) -> io::Result<()> {
    // Reading the request keeps the close from becoming a reset that would cut off the answer.
    let mut request = [0; 4096];
    let _ = stream.read(&mut request).await?;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}
