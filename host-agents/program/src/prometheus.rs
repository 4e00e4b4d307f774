//! One page for Prometheus, whatever is asked for.

use std::fmt::{Display, Write as _};
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_secs(5);

/// A page in Prometheus' text format, of metrics whose names begin alike.
#[derive(Debug)]
pub struct Page {
    prefix: &'static str,
    text: String,
}

impl Page {
    /// An empty one; `prefix` and `_` begin each name.
    pub const fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            text: String::new(),
        }
    }

    /// Says of which `kind` the samples called `name` are that follow.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let name = format!("{}_{name}", self.prefix);
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}")
            .expect("a String takes it");
    }

    /// A sample, with its labels in braces if it has any.
    pub fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        writeln!(self.text, "{}_{name}{labels} {value}", self.prefix).expect("a String takes it");
    }

    /// A family of one sample without labels.
    pub fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, "", value);
    }

    /// Its text.
    pub fn text(self) -> String {
        self.text
    }
}

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
