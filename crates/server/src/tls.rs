//! TLS for the listeners: certificate files the operator gives, or a self-signed development
//! certificate made on first start and kept in the data directory.
//!
//! TLS 1.2 and 1.3 only; there is no setting that makes verification weaker, because the server
//! asks clients for no certificate.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// Where certificate and key come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM file with the certificate chain, the server's own first.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}

/// Why TLS cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read, or the development certificate not be written.
    #[error("cannot use the file {}: {source}", path.display())]
    File {
        /// The file in question.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} holds no usable PEM {what}: {reason}", path.display())]
    Pem {
        /// The file in question.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
        /// What the parser said.
        reason: String,
    },
    /// Certificate and key do not fit each other, or are of an unknown kind.
    #[error("certificate and key cannot be used together: {0}")]
    Unfit(#[from] rustls::Error),
    /// The development certificate could not be made.
    #[error("cannot make a development certificate: {0}")]
    Generate(#[from] rcgen::Error),
}

/// An acceptor with the operator's files.
pub fn acceptor(files: &CertificateFiles) -> Result<TlsAcceptor, Error> {
    let pem = |what, path: &Path| {
        let path = path.to_path_buf();
        move |error: rustls::pki_types::pem::Error| match error {
            rustls::pki_types::pem::Error::Io(source) => Error::File { path, source },
            other => Error::Pem { path, what, reason: other.to_string() },
        }
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(pem("certificate", &files.certificate))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(pem("private key", &files.key))?;
    acceptor_with(chain, key)
}

fn acceptor_with(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<TlsAcceptor, Error> {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A certificate that was made now and is in no file yet.
#[derive(Debug)]
pub struct Unsaved {
    files: CertificateFiles,
    certificate: String,
    key: String,
}

impl Unsaved {
    /// Puts it where the next start, and clients that trust it, find it.
    pub fn save(&self) -> Result<(), Error> {
        write_new(&self.files.key, self.key.as_bytes(), 0o600)?;
        write_new(&self.files.certificate, self.certificate.as_bytes(), 0o644)
    }
}

/// An acceptor with the development certificate in `folder`, which is made if it is not there yet, and then is to be saved.
///
/// It names `localhost`, the loopback addresses and `host`, so that clients which trust the file
/// can verify it.
pub fn development(folder: &Path, host: &str) -> Result<(TlsAcceptor, Option<Unsaved>), Error> {
    let files = CertificateFiles {
        certificate: folder.join("development-certificate.pem"),
        key: folder.join("development-key.pem"),
    };
    if files.certificate.exists() && files.key.exists() {
        return Ok((acceptor(&files)?, None));
    }
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !names.iter().any(|name| name == host) {
        names.push(host.to_owned());
    }
    let made = rcgen::generate_simple_self_signed(names)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let acceptor = acceptor_with(vec![made.cert.der().clone()], PrivateKeyDer::from(key))?;
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    Ok((acceptor, Some(Unsaved { files, certificate, key })))
}

/// Writes a whole file with this mode, replacing what an interrupted first start left behind.
fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    let write = || {
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|source| Error::File { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn made_in(folder: &Path) -> CertificateFiles {
        let (_, unsaved) = development(folder, "127.0.0.1").unwrap();
        let unsaved = unsaved.expect("an empty folder has none");
        unsaved.save().unwrap();
        unsaved.files
    }

    #[test]
    fn the_development_certificate_is_made_once_and_its_key_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let files = made_in(folder.path());
        let first = fs::read(&files.certificate).unwrap();
        assert_eq!(fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
        acceptor(&files).unwrap();
        assert!(development(folder.path(), "127.0.0.1").unwrap().1.is_none());
        assert_eq!(fs::read(&files.certificate).unwrap(), first);
    }

    #[test]
    fn a_wrong_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let good = made_in(folder.path());
        let missing = CertificateFiles { certificate: folder.path().join("no.pem"), key: good.key.clone() };
        assert!(acceptor(&missing).err().unwrap().to_string().contains("no.pem"));
        let swapped = CertificateFiles { certificate: good.certificate.clone(), key: good.certificate };
        let text = acceptor(&swapped).err().unwrap().to_string();
        assert!(text.contains("holds no usable PEM private key"), "{text}");
    }
}
