//! Whose certificates a collector may have: of the public authorities, or of the only ones an operator names.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Bytes of a file of certificates; the bundles of operating systems have a fifth of it.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Believes the authorities in this PEM file and no others; without a file, the public ones.
pub(super) fn trust(file: Option<&Path>) -> io::Result<TlsConfig> {
    let roots = match file {
        None => RootCerts::WebPki,
        Some(path) => RootCerts::Specific(Arc::new(authorities(&read(path)?)?)),
    };
    Ok(TlsConfig::builder().root_certs(roots).build())
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut pem = Vec::new();
    fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut pem)?;
    if u64::try_from(pem.len()).is_ok_and(|bytes| bytes > FILE_BYTES_MAX) {
        return Err(unusable(format!("it is larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(pem)
}

/// Every certificate of a file. One that cannot be used is a mistake now, not a refused collector later.
fn authorities(pem: &[u8]) -> io::Result<Vec<Certificate<'static>>> {
    let mut checked = RootCertStore::empty();
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        checked.add(certificate.clone()).map_err(|error| unusable(error.to_string()))?;
        found.push(Certificate::from_der(&certificate).to_owned());
    }
    if found.is_empty() {
        return Err(unusable("it has no certificate in PEM".to_owned()));
    }
    Ok(found)
}

fn unusable(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_authorities_that_can_be_used_and_nothing_broken() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let cases = [
            ("one", certificate.clone(), Some(1)),
            ("two", format!("{certificate}{certificate}"), Some(2)),
            ("beside a key, which is passed over", format!("{key}{certificate}"), Some(1)),
            ("only a key", key, None),
            ("one broken among them", format!("{certificate}{broken}"), None),
            ("cut short", certificate[..certificate.len() / 2].to_owned(), None),
            ("nothing", String::new(), None),
        ];
        for (case, pem, expected) in cases {
            let found = authorities(pem.as_bytes());
            assert_eq!(found.as_ref().ok().map(Vec::len), expected, "{case}: {found:?}");
        }
    }
}
