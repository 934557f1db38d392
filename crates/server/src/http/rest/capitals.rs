//! Names of headers in an answer, written with the capitals they have.
//!
//! HTTP's headers have no case, but names of application properties travel as headers, and scripts look for
//! `BrokerProperties` as the service writes it. The library for HTTP writes names in lower case, unless an answer comes
//! with the spelling of a message it has read itself, as a proxy's does. So it is given the names to read first: the
//! head of a request that nobody sent.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::{Extensions, HeaderName, Request, Response};
use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{join, sink};

/// Names that are written with capitals, beyond those of HTTP itself.
#[derive(Debug, Default)]
pub(super) struct Capitals(Vec<String>);

impl Capitals {
    /// Notes how a name is written. One that is known already is written as it was noted last.
    pub(super) fn note(&mut self, name: &str) {
        // Whatever else could end a line or a head is no name.
        if HeaderName::from_bytes(name.as_bytes()).is_ok() {
            self.0.retain(|known| !known.eq_ignore_ascii_case(name));
            self.0.push(name.to_owned());
        }
    }

    /// What an answer must come with to have its names written so. Nothing, should the library read it differently:
    /// names are in lower case then, which means the same.
    pub(super) async fn spelling(&self) -> Extensions {
        let mut head = "GET / HTTP/1.1\r\n".to_owned();
        for name in &self.0 {
            head.extend([name, ": \r\n"]);
        }
        head.push_str("\r\n");
        let read: Arc<Mutex<Extensions>> = Arc::default();
        let kept = Arc::clone(&read);
        let service = service_fn(move |request: Request<_>| {
            let (parts, _body) = request.into_parts();
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = parts.extensions;
            std::future::ready(Ok::<_, Infallible>(Response::new(Body::from(Bytes::new()))))
        });
        let reading = http1::Builder::new()
            .preserve_header_case(true)
            .keep_alive(false)
            .max_headers(self.0.len().max(1))
            .serve_connection(TokioIo::new(join(head.as_bytes(), sink())), service);
        // What it answers goes nowhere, and if it read nothing, nothing was kept.
        let _ = reading.await;
        std::mem::take(&mut *read.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// The head of an answer with these headers, as it is written.
    async fn written(capitals: &Capitals, headers: &[&str]) -> String {
        let spelling = capitals.spelling().await;
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        let service = service_fn(move |_: Request<_>| {
            let mut response = Response::new(Body::empty());
            for name in headers {
                let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                response.headers_mut().insert(name, "1".parse().unwrap());
            }
            response.extensions_mut().extend(spelling.clone());
            std::future::ready(Ok::<_, Infallible>(response))
        });
        far.write_all(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").await.unwrap();
        let connection =
            http1::Builder::new().title_case_headers(true).serve_connection(TokioIo::new(near), service);
        let (served, read) = tokio::join!(connection, async {
            let mut text = String::new();
            far.read_to_string(&mut text).await.map(|_| text)
        });
        served.unwrap();
        read.unwrap()
    }

    #[tokio::test]
    async fn names_are_written_as_they_were_noted_last_and_others_as_http_writes_its_own() {
        let mut capitals = Capitals::default();
        for name in
            ["BrokerProperties", "CUSTOMERTIER", "CustomerTier", "plain", "x-Odd_Name", "a b", "c\r\nd", ""]
        {
            capitals.note(name);
        }
        let head =
            written(&capitals, &["brokerproperties", "customertier", "plain", "x-odd_name", "content-type"])
                .await;
        for line in ["BrokerProperties: 1", "CustomerTier: 1", "plain: 1", "x-Odd_Name: 1", "Content-Type: 1"]
        {
            assert!(head.lines().any(|found| found == line), "{line}: {head}");
        }
    }

    #[tokio::test]
    async fn there_may_be_many_of_them() {
        let names: Vec<String> = (0..500).map(|number| format!("Property{number}")).collect();
        let mut capitals = Capitals::default();
        for name in &names {
            capitals.note(name);
        }
        let head = written(&capitals, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert_eq!(head.lines().filter(|line| line.starts_with("Property")).count(), names.len());
        assert!(written(&Capitals::default(), &["name"]).await.contains("\r\nName: 1\r\n"));
    }
}
