//! Whose certificates are believed: those of the operating system, or those of a file.
//!
//! A broker within a company often has a certificate of the company's own authority, and a development broker
//! one of its own making. Its file is given with `--ca-file`, for HTTP and AMQP alike; then nobody else is believed.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use vorrang_client::TlsOptions;

use crate::failure::Failure;

/// Bytes of a file of certificates; the bundles of operating systems have a fifth of it.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Whose certificates are believed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trust {
    /// The only ones, if there are any; else those of the operating system.
    roots: Option<Roots>,
}

#[derive(Debug, Clone)]
struct Roots {
    https: Arc<Vec<Certificate<'static>>>,
    amqps: TlsOptions,
}

impl Trust {
    /// Believes the certificates in a PEM file, and no others.
    pub(crate) fn of_file(path: &Path) -> Result<Trust, Failure> {
        let unusable = |what: String| {
            let path = crate::output::printable(&path.display().to_string());
            Failure::Usage(format!(
                "--ca-file {path} {what}; it is a PEM file with the certificate of an authority"
            ))
        };
        let mut pem = Vec::new();
        fs::File::open(path)
            .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut pem))
            .map_err(|error| unusable(format!("cannot be read: {error}")))?;
        let amqps =
            TlsOptions::roots_from_pem(&pem).map_err(|error| unusable(format!("cannot be used: {error}")))?;
        let certificates = parse_pem(&pem).filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        });
        Ok(Trust { roots: Some(Roots { https: Arc::new(certificates.collect()), amqps }) })
    }

    /// For HTTPS.
    pub(crate) fn https(&self) -> TlsConfig {
        let certificates = match &self.roots {
            Some(roots) => Arc::clone(&roots.https),
            None => Arc::new(platform()),
        };
        TlsConfig::builder().root_certs(RootCerts::Specific(certificates)).build()
    }

    /// For AMQP over TLS.
    pub(crate) fn amqps(&self) -> TlsOptions {
        self.roots.as_ref().map_or_else(TlsOptions::platform_roots, |roots| roots.amqps.clone())
    }
}

/// The operating system's roots. Files that cannot be read are passed over, as browsers do.
fn platform() -> Vec<Certificate<'static>> {
    let found = rustls_native_certs::load_native_certs();
    found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect()
}
