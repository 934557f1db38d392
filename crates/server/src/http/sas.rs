//! Who sends an HTTP request: a shared access token in its head becomes a principal.
//!
//! The signature, the end and the place are checked by the broker's keys exactly as for `$cbs`; what the
//! principal may do with what it asks is decided behind the broker's API like everything else.
//!
//! A client signs for the URL it calls, for a part of it, or for the whole namespace. The principal
//! is granted the URL at hand and, where the key reaches that far, all the token speaks for: one request
//! can concern several places, such as a forward target. Tokens for those come in headers of their own.

use axum::http::{HeaderMap, HeaderName, header};
use vorrang_broker::access::{Grant, Principal, Rejected, Scope, Token};

use super::Site;
use super::fault::Fault;
use crate::front::connection::wall_time;

/// Where the token may stand. Proxies that use `Authorization` for themselves leave the second one.
const HEADERS: [HeaderName; 2] = [header::AUTHORIZATION, HeaderName::from_static("servicebusauthorization")];

/// Tokens for the targets of forwarding.
const SUPPLEMENTARY: [&str; 2] =
    ["servicebussupplementaryauthorization", "servicebusdlqsupplementaryauthorization"];

/// The principal of a request about `audience`; without one, all that its token speaks for.
pub fn principal(site: &Site, headers: &HeaderMap, audience: Option<&Scope>) -> Result<Principal, Fault> {
    let now = wall_time();
    let text = token_text(headers)?;
    let token = read(text)?;
    let keys = site.broker.keys();
    let verify = |token: &Token<'_>, audience: &Scope| keys.verify(token, audience, now);
    let whole = verify(&token, token.resource());
    let asked = match audience {
        Some(audience) => verify(&token, audience),
        None => whole.clone(),
    };
    let mut grants: Vec<Grant> = vec![asked.map_err(|rejected| told(&rejected))?];
    grants.extend(whole);
    for name in SUPPLEMENTARY {
        // One that does not hold grants nothing; whether it was needed shows later.
        let Some(text) = headers.get(name).and_then(|value| value.to_str().ok()) else { continue };
        let Ok(token) = Token::parse(text) else { continue };
        grants.extend(verify(&token, token.resource()));
    }
    Ok(Principal::with_grants(grants))
}

/// The principal of a request for a URL within `place`, to whom the whole of that place is open: the messages
/// of an entity are addressed below it, and are all there is to ask for there.
pub(crate) fn principal_within(
    site: &Site,
    headers: &HeaderMap,
    url: &Scope,
    place: &Scope,
) -> Result<Principal, Fault> {
    let token = read(token_text(headers)?)?;
    let grant = site.broker.keys().verify(&token, url, wall_time()).map_err(|rejected| told(&rejected))?;
    Ok(Principal::with_grants([Grant { scope: place.clone(), ..grant }]))
}

fn token_text(headers: &HeaderMap) -> Result<&str, Fault> {
    let value = HEADERS.iter().find_map(|name| headers.get(name)).ok_or_else(|| {
        Fault::unauthorized(
            "MissingToken: The request needs the header 'Authorization: SharedAccessSignature sr=...'.",
        )
    })?;
    value
        .to_str()
        .map_err(|_| Fault::unauthorized("MalformedToken: The Authorization header is not plain text."))
}

fn read(text: &str) -> Result<Token<'_>, Fault> {
    if !Token::is_shared_access(text) {
        return Err(Fault::unauthorized(
            "Only tokens of the form 'SharedAccessSignature sr=...' are accepted.",
        ));
    }
    Token::parse(text).map_err(|error| Fault::unauthorized(format!("MalformedToken: {error}.")))
}

fn told(rejected: &Rejected) -> Fault {
    let kind = match rejected {
        Rejected::Signature | Rejected::Password => "InvalidSignature",
        Rejected::Expired { .. } => "ExpiredToken",
        Rejected::Audience { .. } => "InvalidAudience",
    };
    Fault::unauthorized(format!("{kind}: {rejected}."))
}
