// SPDX-License-Identifier: Apache-2.0
//! Files of a directory, with media types, a single range, HEAD, dates and entity tags. Requests cannot leave the directory.

use std::io::{ErrorKind, Result};
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use http_range_header::{RangeUnsatisfiableError, parse_range_header};
use percent_encoding::percent_decode_str;

use crate::body::ResponseBody;
use crate::conditions::{self, Outcome};
use crate::file_body::FileBody;
use crate::file_cache::{FileCache, OpenFile};
use crate::prepared::PreparedResponse;
use crate::response::{header_value, status};

/// Serves one directory.
#[derive(Clone, Debug)]
pub struct Files {
    directory: PathBuf,
    /// Prefix of request paths that is not part of file names, without the last `/`.
    prefix: String,
    cache: Arc<FileCache>,
}

impl Files {
    /// Serve `directory` at the paths that begin with `prefix`, with the contents of recently served files in `cache`.
    pub fn new(directory: &Path, prefix: &str, cache: Arc<FileCache>) -> Self {
        Self {
            directory: directory.to_owned(),
            prefix: prefix.to_owned(),
            cache,
        }
    }

    /// Respond to `request`, whose body is ignored. Files are opened in place, because handing that to another thread would take
    /// longer than most small responses.
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
        let file = self
            .file_path(path)
            .ok_or_else(|| ErrorKind::NotFound.into());
        match file.and_then(|file| self.open(file, path.ends_with('/'))) {
            Ok(Some(file)) => respond(request, file),
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

    /// Return the response to `request` if it is a whole file in memory.
    pub fn prepared<B>(&self, request: &Request<B>) -> Option<PreparedResponse> {
        let headers = request.headers();
        let is_plain = request.method() == Method::GET
            && !headers.contains_key(header::RANGE)
            && !conditions::has_any(headers);
        if !is_plain {
            return None;
        }
        let contents = self.cache.find(&self.file_path(request.uri().path())?)?;
        (contents.length() > 0).then(|| PreparedResponse::new(contents))
    }

    /// Return the file of a request path; `None` if it is outside the directory or invalid.
    fn file_path(&self, path: &str) -> Option<PathBuf> {
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

    /// Open a file, or the index of a directory. Returns `None` for a directory whose request path does not end with `/`.
    fn open(&self, mut path: PathBuf, is_directory_path: bool) -> Result<Option<OpenFile>> {
        let mut opened = self.cache.open(&path)?;
        if opened.contents.is_dir() {
            if !is_directory_path {
                return Ok(None);
            }
            path.push("index.html");
            opened = self.cache.open(&path)?;
        }
        if opened.contents.is_file() {
            Ok(Some(opened))
        } else {
            Err(ErrorKind::NotFound.into())
        }
    }
}

/// Respond with the file, as the request's conditions require.
fn respond<B>(request: &Request<B>, file: OpenFile) -> Response<ResponseBody> {
    let contents = &file.contents;
    let length = contents.length();
    let outcome = conditions::decide(request.headers(), &contents.tag, contents.modified);
    let mut response = Response::new(ResponseBody::default());
    response
        .headers_mut()
        .insert(header::ETAG, contents.tag.clone());
    response
        .headers_mut()
        .insert(header::LAST_MODIFIED, contents.last_modified.clone());
    let range = match outcome {
        Outcome::Status(status) => {
            *response.status_mut() = status;
            return response;
        }
        // HEAD describes the whole file (RFC 9110, section 14.2).
        Outcome::Serve { ranges } => request
            .headers()
            .get(header::RANGE)
            .filter(|_| ranges && request.method() == Method::GET),
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, contents.media_type.clone());
    response
        .headers_mut()
        .insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let (mut from, mut to) = (0, length);
    let Ok(part) = range.map_or(Ok(None), |range| part(range, length)) else {
        *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
        return with(
            response,
            header::CONTENT_RANGE,
            header_value(format!("bytes */{length}")),
        );
    };
    if let Some(part) = part {
        (from, to) = (*part.start(), part.end() + 1);
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let content_range = header_value(format!("bytes {from}-{}/{length}", part.end()));
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

/// Return the range of a file of `length` bytes that `range` requests. Returns `None` for the whole file if the range is malformed
/// or has several parts, which a server may ignore (RFC 9110, section 14.2).
fn part(
    range: &HeaderValue,
    length: u64,
) -> std::result::Result<Option<RangeInclusive<u64>>, RangeUnsatisfiableError> {
    let requested = range
        .to_str()
        .ok()
        .and_then(|range| parse_range_header(range).ok());
    match requested {
        Some(requested) if requested.ranges.len() == 1 => Ok(requested.validate(length)?.pop()),
        _ => Ok(None),
    }
}

/// Redirect to the path of a directory with a final `/`. More than one leading `/` would name another host (RFC 3986, section
/// 4.2).
fn redirect(uri: &Uri) -> Response<ResponseBody> {
    let path = uri.path().trim_start_matches('/');
    let query = uri
        .query()
        .map_or_else(String::new, |query| format!("?{query}"));
    let location = header_value(format!("/{path}/{query}"));
    with(
        status(StatusCode::TEMPORARY_REDIRECT),
        header::LOCATION,
        location,
    )
}

fn with<B>(mut response: Response<B>, name: HeaderName, value: HeaderValue) -> Response<B> {
    response.headers_mut().insert(name, value);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(directory: &Path) -> Files {
        Files::new(directory, "/a", Arc::new(FileCache::new(1 << 20)))
    }

    #[test]
    fn request_paths_cannot_leave_the_directory() {
        let files = files(Path::new("/srv"));
        let file_path = |path| files.file_path(path);
        assert_eq!(file_path("/a/b/%63.html"), Some("/srv/b/c.html".into()));
        assert_eq!(file_path("/a"), Some("/srv".into()));
        assert_eq!(file_path("/a//etc/passwd"), Some("/srv/etc/passwd".into()));
        for path in ["/a/..", "/a/b/../c", "/a/%2e%2e/c", "/a/..%2fc", "/a/%ff"] {
            assert_eq!(file_path(path), None, "{path}");
        }
    }

    #[test]
    fn directory_redirect_stays_on_this_host() {
        let response = redirect(&Uri::from_static("//a/b?c=d"));
        assert_eq!(response.headers()[header::LOCATION], "/a/b/?c=d");
    }

    #[test]
    fn directory_redirects_or_serves_index_and_non_file_returns_404() {
        let root = std::env::temp_dir().join(format!("files-{}", std::process::id()));
        std::fs::create_dir_all(root.join("folder")).unwrap();
        std::fs::create_dir_all(root.join("empty")).unwrap();
        std::fs::write(root.join("folder/index.html"), "here").unwrap();
        let _ = std::fs::remove_file(root.join("pipe"));
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
        let files = files(&root);
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
