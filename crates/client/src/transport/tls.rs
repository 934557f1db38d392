//! Whom we trust: the platform's roots, roots the caller gives, or, for development only, anybody.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::error::Error;

/// How the broker proves who it is.
#[derive(Clone, Default)]
pub struct TlsOptions {
    trust: Trust,
}

#[derive(Clone, Default)]
enum Trust {
    #[default]
    Platform,
    Roots(Arc<RootCertStore>),
    Anybody,
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.trust {
            Trust::Platform => "TlsOptions(platform roots)",
            Trust::Roots(_) => "TlsOptions(given roots)",
            Trust::Anybody => "TlsOptions(anybody)",
        })
    }
}

impl TlsOptions {
    /// Trusts the roots of the operating system.
    #[must_use]
    pub fn platform_roots() -> Self {
        TlsOptions { trust: Trust::Platform }
    }

    /// Trusts the certificates in this PEM text, and no others.
    pub fn roots_from_pem(pem: &[u8]) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| Error::Tls(error.to_string().into()))?;
            roots.add(certificate).map_err(|error| Error::Tls(error.to_string().into()))?;
        }
        if roots.is_empty() {
            return Err(Error::Tls("the PEM text holds no certificate".into()));
        }
        Ok(TlsOptions { trust: Trust::Roots(Arc::new(roots)) })
    }

    /// Trusts whatever certificate the broker shows. Whoever sits between us and the broker can read and change
    /// everything: for a broker with a development certificate on this machine, and for nothing else.
    #[must_use]
    pub fn danger_accept_development_certificate() -> Self {
        TlsOptions { trust: Trust::Anybody }
    }

    pub(crate) fn connector(&self, host: &str) -> Result<(TlsConnector, ServerName<'static>), Error> {
        let unusable = |error: rustls::Error| Error::Tls(error.to_string().into());
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let config = match &self.trust {
            Trust::Platform => builder.with_root_certificates(platform_roots()?).with_no_client_auth(),
            Trust::Roots(roots) => builder.with_root_certificates(Arc::clone(roots)).with_no_client_auth(),
            Trust::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anybody { provider }))
                .with_no_client_auth(),
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::Tls(format!("'{host}' cannot be in a certificate").into()))?;
        Ok((TlsConnector::from(Arc::new(config)), name))
    }
}

impl TlsOptions {
    /// What makes TLS connections to `host`, for protocols other than AMQP: a worker that posts to an HTTPS endpoint, say.
    pub fn client(&self, host: &str) -> Result<TlsClient, Error> {
        let (connector, name) = self.connector(host)?;
        Ok(TlsClient { connector, name })
    }
}

/// Makes TLS connections to one host.
#[derive(Clone)]
pub struct TlsClient {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TlsClient {
    /// Secures a stream; an error if the peer does not prove that it is the host.
    pub async fn connect<S>(
        &self,
        stream: S,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<S>>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        self.connector.connect(self.name.clone(), stream).await
    }
}

/// The operating system's roots. Certificates in it that cannot be read are passed over, as browsers do.
fn platform_roots() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let text = "the operating system has no root certificates; give some with TlsOptions::roots_from_pem";
        return Err(Error::Tls(text.into()));
    }
    Ok(roots)
}

/// Believes every certificate; still checks that the peer holds its key.
#[derive(Debug)]
struct Anybody {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_certificates_is_refused() {
        assert!(matches!(TlsOptions::roots_from_pem(b"nothing here"), Err(Error::Tls(_))));
    }

    #[test]
    fn a_host_that_cannot_be_in_a_certificate_is_named() {
        let error =
            TlsOptions::danger_accept_development_certificate().connector("not a host").err().unwrap();
        assert!(error.to_string().contains("not a host"));
    }
}
