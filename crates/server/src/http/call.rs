//! One authenticated request to the namespace, with what answering it needs.

use std::sync::Arc;

use axum::http::{HeaderMap, Method, Uri, header};
use vorrang_broker::api::{Answer, Listed, Operation, Question};
use vorrang_engine::entity;

use super::Site;
use super::atom::Origin;
use super::fault::Fault;
use super::spelling::Spelling;
use crate::caller::{Answered, Caller};
use crate::front::address::percent_decoded;

/// What a proxy says about the way the client came. It may be made up, but only whoever did is misled.
const FORWARDED_PROTO: &str = "x-forwarded-proto";
/// A host that no header names.
const HOST: &str = "localhost";
/// What clients ask for that say nothing.
const API_VERSION: &str = "2021-05";

/// A request and who asks it.
pub(crate) struct Call {
    pub(crate) site: Arc<Site>,
    pub(crate) caller: Caller,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// How their names were written.
    pub(super) spelling: Spelling,
    pub(crate) query: Query,
    /// Whether it came over TLS to this server.
    pub(super) tls: bool,
}

impl Call {
    /// What ids and links are made of.
    pub(crate) fn origin(&self) -> Origin {
        let host = self.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or(HOST);
        Origin {
            host: host.to_owned(),
            api_version: self.query.get("api-version").unwrap_or(API_VERSION).to_owned(),
            namespace: self.site.namespace.clone(),
        }
    }

    /// The scheme of a URL that leads the client here again: what it used, or what the proxy says that it used.
    pub(super) fn scheme(&self) -> &'static str {
        let proxied = self.headers.get(FORWARDED_PROTO).is_some_and(|scheme| scheme == "https");
        if self.tls || proxied { "https" } else { "http" }
    }

    /// Asks the broker; `path` is what the client knows the thing by.
    pub(crate) async fn ask(&self, operation: Operation, path: &str) -> Result<Answered, Fault> {
        self.caller.ask(operation).await?.map_err(|refused| Fault::refused(&refused, path))
    }

    /// Changes something.
    pub(crate) async fn administer(&self, request: entity::Request, path: &str) -> Result<(), Fault> {
        self.ask(Operation::Administer(Box::new(request)), path).await.map(|_| ())
    }

    /// Asks for entities.
    pub(crate) async fn list(&self, question: Question, path: &str) -> Result<Vec<Listed>, Fault> {
        match self.ask(Operation::Ask(question), path).await? {
            Answered::Answer(Answer::Listed(listed)) => Ok(listed),
            other => Err(Fault::unexpected(&other)),
        }
    }
}

/// The query of a URL. Keys may be escaped, in any case, and empty items are passed over.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn of(uri: &Uri) -> Query {
        let items = uri.query().unwrap_or_default().split('&').filter(|item| !item.is_empty());
        let decoded = |text: &str| percent_decoded(text).map(std::borrow::Cow::into_owned);
        let pair = |item: &str| {
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            Some((decoded(key)?, decoded(value)?))
        };
        Query(items.filter_map(pair).collect())
    }

    /// The first value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.as_str())
    }

    /// A number, if it is given.
    pub(crate) fn number(&self, key: &str) -> Result<Option<u64>, Fault> {
        let Some(text) = self.get(key) else { return Ok(None) };
        let number = text.parse().map_err(|_| {
            let shown: String = text.chars().take(32).collect();
            Fault::malformed(format!("The query's '{key}' must be a whole number, not '{shown}'."))
        })?;
        Ok(Some(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_as_clients_write_them() {
        let uri: Uri = "/q?&$skip=5&%24top=7&API-version=2021-05&&x".parse().unwrap();
        let query = Query::of(&uri);
        assert_eq!(query.number("$skip").unwrap(), Some(5));
        assert_eq!(query.number("$top").unwrap(), Some(7));
        assert_eq!(query.get("api-version"), Some("2021-05"));
        assert_eq!(query.get("x"), Some(""));
        assert_eq!(query.number("absent").unwrap(), None);
        assert!(query.number("x").is_err());
        assert!(query.number("api-version").is_err());
    }
}
