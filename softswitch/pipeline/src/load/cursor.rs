// SPDX-License-Identifier: Apache-2.0
//! A cursor over a JSON document that knows its path, so that every error names its place.

use serde_json::Value as Json;

use crate::error::LoadError;
use num_bigint::{BigInt, BigUint, Sign};

/// A position in the document.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) json: &'a Json,
    path: String,
}

const NULL: &Json = &Json::Null;

impl<'a> Cursor<'a> {
    pub(crate) fn root(json: &'a Json) -> Self {
        Self {
            json,
            path: String::new(),
        }
    }

    /// Returns an error at this place.
    pub(crate) fn error(&self, message: impl Into<String>) -> LoadError {
        let path = if self.path.is_empty() {
            ".".to_owned()
        } else {
            self.path.clone()
        };
        LoadError {
            path,
            message: message.into(),
        }
    }

    fn expected(&self, what: &str) -> LoadError {
        let found = match self.json {
            Json::Null => "nothing".to_owned(),
            Json::Array(a) => format!("an array of {}", a.len()),
            Json::Object(_) => "an object".to_owned(),
            scalar => scalar.to_string(),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    /// Returns the member `key`; null if absent.
    pub(crate) fn get(&self, key: &str) -> Cursor<'a> {
        let path = if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        };
        Cursor {
            json: self.json.get(key).unwrap_or(NULL),
            path,
        }
    }

    /// Returns element `i` of an array; null if absent.
    pub(crate) fn at(&self, i: usize) -> Cursor<'a> {
        Cursor {
            json: self.json.get(i).unwrap_or(NULL),
            path: format!("{}[{i}]", self.path),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.json.is_null()
    }

    /// Returns the elements; none for null.
    pub(crate) fn items(&self) -> Result<Vec<Cursor<'a>>, LoadError> {
        match self.json {
            Json::Null => Ok(Vec::new()),
            Json::Array(a) => Ok((0..a.len()).map(|i| self.at(i)).collect()),
            _ => Err(self.expected("an array")),
        }
    }

    /// Returns the elements of an array of known length.
    pub(crate) fn tuple<const N: usize>(&self) -> Result<[Cursor<'a>; N], LoadError> {
        match self.json {
            Json::Array(a) if a.len() == N => Ok(std::array::from_fn(|i| self.at(i))),
            _ => Err(self.expected(&format!("an array of {N}"))),
        }
    }

    pub(crate) fn str(&self) -> Result<&'a str, LoadError> {
        self.json.as_str().ok_or_else(|| self.expected("a string"))
    }

    /// Returns the string, or `None` for null.
    pub(crate) fn opt_str(&self) -> Result<Option<&'a str>, LoadError> {
        if self.is_null() {
            Ok(None)
        } else {
            self.str().map(Some)
        }
    }

    pub(crate) fn u64(&self) -> Result<u64, LoadError> {
        self.json
            .as_u64()
            .ok_or_else(|| self.expected("a non-negative integer"))
    }

    pub(crate) fn u32(&self) -> Result<u32, LoadError> {
        u32::try_from(self.u64()?).map_err(|_| self.error("does not fit 32 bits"))
    }

    pub(crate) fn usize(&self) -> Result<usize, LoadError> {
        Ok(self.u32()? as usize)
    }

    pub(crate) fn bool(&self) -> Result<bool, LoadError> {
        self.json
            .as_bool()
            .ok_or_else(|| self.expected("true or false"))
    }

    /// Returns the boolean, or `default` for null; p4c sometimes writes a number.
    pub(crate) fn bool_or(&self, default: bool) -> Result<bool, LoadError> {
        match (self.json, self.json.as_u64()) {
            (Json::Null, _) => Ok(default),
            (_, Some(n)) => Ok(n != 0),
            _ => self.bool(),
        }
    }

    /// Returns the value of a hexadecimal string, in which `-` and `0x` are optional.
    pub(crate) fn hex(&self) -> Result<BigInt, LoadError> {
        let s = self.str()?;
        let (sign, digits) = match s.strip_prefix('-') {
            Some(rest) => (Sign::Minus, rest),
            None => (Sign::Plus, s),
        };
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        BigUint::parse_bytes(digits.as_bytes(), 16)
            .map(|v| BigInt::from_biguint(sign, v))
            .ok_or_else(|| self.expected("a hexadecimal string such as \"0x2a\""))
    }

    /// Returns the value of a non-negative hexadecimal string as big-endian bytes.
    pub(crate) fn hex_bytes(&self) -> Result<Vec<u8>, LoadError> {
        let v = self.hex()?;
        let v = v
            .to_biguint()
            .ok_or_else(|| self.error("must not be negative"))?;
        Ok(v.to_bytes_be())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_path() {
        let json = serde_json::json!({"tables": [{"key": 7}]});
        let key = Cursor::root(&json).get("tables").at(0).get("key");
        let error = key.items().err().unwrap();
        assert_eq!(
            error.to_string(),
            "tables[0].key: expected an array, found 7"
        );
        let error = Cursor::root(&json).get("x").str().err().unwrap();
        assert_eq!(error.to_string(), "x: expected a string, found nothing");
    }

    #[test]
    fn parses_hex_strings() {
        let json = serde_json::json!(["0x2a", "-0x01", "ff", "zz"]);
        let c = Cursor::root(&json);
        assert_eq!(c.at(0).hex().unwrap(), BigInt::from(42));
        assert_eq!(c.at(1).hex().unwrap(), BigInt::from(-1));
        assert_eq!(c.at(2).hex_bytes().unwrap(), [255]);
        assert!(c.at(1).hex_bytes().is_err());
        assert!(c.at(3).hex().is_err());
    }
}
