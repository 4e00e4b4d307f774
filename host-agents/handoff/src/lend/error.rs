//! What a lender refuses.

/// Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The path is not lent.
    Path(u32),
    /// The stream cannot be lent, or is not.
    Stream(u64),
    /// It may be that the client takes more of the stream than it did first, but not how much: it raised too many others.
    Crowded(u64),
    /// The stream was taken back before.
    Ended(u64),
    /// The client does not take that many bytes of the stream.
    FinalSize { stream: u64, size: u64 },
    /// The client does not take that many bytes more, so the stream cannot end before it does.
    Credit { more: u64 },
    /// The path has streams that were not taken back.
    Streams(u32),
    /// The client came to another address while the path was lent, which only the real server knows to be its: the path is to be forsaken.
    Moved(u32),
    /// The number is none that follows those of the loan.
    Number(u64),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => write!(f, "path {path} is not lent"),
            Self::Stream(stream) => write!(f, "stream {stream} is none to lend or to take back"),
            Self::Crowded(stream) => {
                write!(f, "too many limits to know that of stream {stream}")
            }
            Self::Ended(stream) => write!(f, "stream {stream} was taken back before"),
            Self::FinalSize { stream, size } => {
                write!(
                    f,
                    "the client does not take {size} bytes of stream {stream}"
                )
            }
            Self::Credit { more } => write!(f, "the client does not take {more} bytes more"),
            Self::Streams(path) => write!(f, "path {path} has streams that were not taken back"),
            Self::Moved(path) => write!(f, "the client of path {path} has moved"),
            Self::Number(number) => write!(f, "packet number {number} does not follow the loan's"),
        }
    }
}

impl std::error::Error for Error {}
