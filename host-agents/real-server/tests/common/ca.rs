// SPDX-License-Identifier: Apache-2.0
//! Certificate authority of the testbed.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

pub struct Ca {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    /// Create a CA and write its certificate to `ca.pem` in `folder`.
    pub fn new(folder: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.join("ca.pem"), certificate.pem()).unwrap();
        Self {
            folder: folder.to_owned(),
            issuer: Issuer::new(params, key),
        }
    }

    /// Issue a certificate for `name`; write `name.pem` and `name.key`.
    pub fn issue(&self, name: &str) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let file = |end: &str| self.folder.join(format!("{name}.{end}"));
        std::fs::write(file("pem"), certificate.pem()).unwrap();
        std::fs::write(file("key"), key.serialize_pem()).unwrap();
    }
}
