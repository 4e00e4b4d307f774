//! Files of a directory: types, one range, HEAD, dates, entity tags, and no way out of the directory.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Result};
use std::ops::RangeInclusive;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use http_range_header::{RangeUnsatisfiableError, parse_range_header};
use percent_encoding::percent_decode_str;

use crate::body::ResponseBody;
use crate::conditions::{self, Outcome};
use crate::file_body::FileBody;
use crate::proxy::status;

/// Serves one directory.
#[derive(Clone, Debug)]
pub struct Files {
    directory: PathBuf,
    /// What of a path is no name of a file, without the last `/`.
    prefix: String,
}

/// A file that is open, and its name.
type Opened = (File, Metadata, PathBuf);

impl Files {
    /// Serves `directory` at the paths that begin with `prefix`.
    pub fn new(directory: &Path, prefix: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            prefix: prefix.to_owned(),
        }
    }

    /// The answer to `request`, whose body is not looked at. Opening a file is not handed to another thread, which would take longer than
    /// most small answers do.
    pub fn serve<B>(&self, request: &Request<B>) -> Response<ResponseBody> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let allowed = HeaderValue::from_static("GET,HEAD");
            return with(
                status(StatusCode::METHOD_NOT_ALLOWED),
                header::ALLOW,
                allowed,
            );
        }
        let path = request.uri().path();
        let found = self.named(path).ok_or_else(|| ErrorKind::NotFound.into());
        match found.and_then(|file| open(file, path.ends_with('/'))) {
            Ok(Some((file, about, name))) => answer(request, file, &about, &name),
            Ok(None) => redirect(request.uri()),
            Err(error) => status(match error.kind() {
                ErrorKind::NotFound
                | ErrorKind::NotADirectory
                | ErrorKind::PermissionDenied
                | ErrorKind::InvalidInput
                | ErrorKind::InvalidFilename => StatusCode::NOT_FOUND,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            }),
        }
    }

    /// The file that a path of a request names; `None` if that is outside of the directory, or no name.
    fn named(&self, path: &str) -> Option<PathBuf> {
        let decoded = percent_decode_str(&path[self.prefix.len()..]);
        let decoded = decoded.decode_utf8().ok()?;
        let mut file = self.directory.clone();
        for part in Path::new(decoded.trim_start_matches('/')).components() {
            match part {
                Component::Normal(name) => file.push(name),
                Component::CurDir => {}
                _ => return None,
            }
        }
        Some(file)
    }
}

/// `None` if this is a folder, which has no file of its own unless its path ends with `/`.
fn open(mut path: PathBuf, as_folder: bool) -> Result<Option<Opened>> {
    let mut found = open_one(&path)?;
    if found.1.is_dir() {
        if !as_folder {
            return Ok(None);
        }
        path.push("index.html");
        found = open_one(&path)?;
    }
    let (file, about) = found;
    if about.is_file() {
        Ok(Some((file, about, path)))
    } else {
        Err(ErrorKind::NotFound.into())
    }
}

fn open_one(path: &Path) -> Result<(File, Metadata)> {
    // A pipe that nobody writes into must not be waited for; files do not care.
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblock)
        .open(path)?;
    let about = file.metadata()?;
    Ok((file, about))
}

/// The file's own answer, as the request's conditions have it.
fn answer<B>(
    request: &Request<B>,
    file: File,
    about: &Metadata,
    name: &Path,
) -> Response<ResponseBody> {
    let length = about.len();
    let Ok(modified) = about.modified().map(seconds) else {
        return status(StatusCode::INTERNAL_SERVER_ERROR);
    };
    // From length and date, as servers do that keep no digests.
    let age = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let tag = text(format!("\"{:x}-{length:x}\"", age.as_secs()));
    let last_modified = text(httpdate::fmt_http_date(modified));
    let outcome = conditions::decide(request.headers(), &tag, modified);
    let mut response = Response::new(ResponseBody::default());
    response.headers_mut().insert(header::ETAG, tag);
    response
        .headers_mut()
        .insert(header::LAST_MODIFIED, last_modified);
    let range = match outcome {
        Outcome::Answer(status) => {
            *response.status_mut() = status;
            return response;
        }
        // What HEAD's answer says is of the whole (RFC 9110, section 14.2).
        Outcome::Serve { ranges } => request
            .headers()
            .get(header::RANGE)
            .filter(|_| ranges && request.method() == Method::GET),
    };
    let kind = mime_guess::from_path(name)
        .first_raw()
        .unwrap_or("application/octet-stream");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
        .headers_mut()
        .insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let (mut from, mut to) = (0, length);
    let Ok(part) = range.map_or(Ok(None), |range| part(range, length)) else {
        *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
        return with(
            response,
            header::CONTENT_RANGE,
            text(format!("bytes */{length}")),
        );
    };
    if let Some(part) = part {
        (from, to) = (*part.start(), part.end() + 1);
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let content_range = text(format!("bytes {from}-{}/{length}", part.end()));
        response
            .headers_mut()
            .insert(header::CONTENT_RANGE, content_range);
    }
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, (to - from).into());
    if request.method() == Method::GET {
        *response.body_mut() = FileBody::new(file, from..to)
            .map_err(Into::into)
            .boxed_unsync();
    }
    response
}

/// What `range` asks for of so many bytes: the whole where it cannot be made out, or names several parts, which a server may ignore (RFC 9110,
/// section 14.2).
fn part(
    range: &HeaderValue,
    length: u64,
) -> std::result::Result<Option<RangeInclusive<u64>>, RangeUnsatisfiableError> {
    let asked = range
        .to_str()
        .ok()
        .and_then(|range| parse_range_header(range).ok());
    match asked {
        Some(asked) if asked.ranges.len() == 1 => Ok(asked.validate(length)?.pop()),
        _ => Ok(None),
    }
}

/// Where a folder's files begin. More than one `/` at the beginning would name another host (RFC 3986, section 4.2).
fn redirect(uri: &Uri) -> Response<ResponseBody> {
    let path = uri.path().trim_start_matches('/');
    let query = uri
        .query()
        .map_or_else(String::new, |query| format!("?{query}"));
    let location = text(format!("/{path}/{query}"));
    with(
        status(StatusCode::TEMPORARY_REDIRECT),
        header::LOCATION,
        location,
    )
}

/// Dates of HTTP know no more.
fn seconds(time: SystemTime) -> SystemTime {
    let whole = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| age.as_secs());
    UNIX_EPOCH + Duration::from_secs(whole)
}

fn text(value: String) -> HeaderValue {
    HeaderValue::try_from(value).expect("of what may stand in a header")
}

fn with<B>(mut response: Response<B>, name: HeaderName, value: HeaderValue) -> Response<B> {
    response.headers_mut().insert(name, value);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        let files = Files::new(Path::new("/srv"), "/a");
        let named = |path| files.named(path);
        assert_eq!(named("/a/b/%63.html"), Some("/srv/b/c.html".into()));
        assert_eq!(named("/a"), Some("/srv".into()));
        assert_eq!(named("/a//etc/passwd"), Some("/srv/etc/passwd".into()));
        for path in ["/a/..", "/a/b/../c", "/a/%2e%2e/c", "/a/..%2fc", "/a/%ff"] {
            assert_eq!(named(path), None, "{path}");
        }
    }

    #[test]
    fn folders_lead_to_this_host_only() {
        let response = redirect(&Uri::from_static("//a/b?c=d"));
        assert_eq!(response.headers()[header::LOCATION], "/a/b/?c=d");
    }

    #[test]
    fn what_is_no_file_has_no_answer_of_a_file() {
        let root = std::env::temp_dir().join(format!("files-{}", std::process::id()));
        std::fs::create_dir_all(root.join("folder")).unwrap();
        std::fs::create_dir_all(root.join("empty")).unwrap();
        std::fs::write(root.join("folder/index.html"), "here").unwrap();
        let _ = std::fs::remove_file(root.join("pipe"));
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
        let files = Files::new(&root, "/a");
        let get = |path: &str| files.serve(&Request::get(path).body(()).unwrap());
        let index = get("/a/folder/");
        assert_eq!(index.status(), StatusCode::OK);
        assert_eq!(index.headers()[header::CONTENT_TYPE], "text/html");
        assert_eq!(index.headers()[header::CONTENT_LENGTH], "4");
        let folder = get("/a/folder");
        assert_eq!(folder.status(), StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(folder.headers()[header::LOCATION], "/a/folder/");
        for path in ["/a/empty/", "/a/pipe", "/a/folder/index.html/x", "/a/%00"] {
            assert_eq!(get(path).status(), StatusCode::NOT_FOUND, "{path}");
        }
        std::fs::remove_dir_all(root).unwrap();
    }
}
