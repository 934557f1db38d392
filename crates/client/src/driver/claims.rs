//! Tokens put to `$cbs`: before a link is attached, and again before they end.
//!
//! Claims die with their connection, so they are kept with it.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, warn};
use vorrang_amqp::value::{Map, Value};

use super::desk::Desk;
use super::link::{Link, Stage};
use super::nodes::{Asker, CBS};
use crate::claim::Token;
use crate::error::Error;
use crate::wall;

/// A `$cbs` that does not answer for so long makes the connection useless; it is closed and made anew.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The pause before a renewal that failed is tried again.
const RENEWAL_PAUSE: Duration = Duration::from_secs(10);

/// What we may do on this connection, by entity.
#[derive(Debug, Default)]
pub(super) struct Claims {
    claims: BTreeMap<String, Claim>,
}

#[derive(Debug)]
struct Claim {
    /// Whether the broker has accepted a token.
    held: bool,
    /// Since when a token is on its way.
    asked: Option<Instant>,
    /// When to put the next.
    renew_at: Option<Instant>,
}

impl Claims {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let due = |claim: &Claim| match claim.asked {
            Some(since) => Some(since + ANSWER_MAX),
            None => claim.renew_at,
        };
        self.claims.values().filter_map(due).min()
    }
}

impl Desk {
    /// Whether the broker has accepted tokens for all these entities; asks for those that are missing.
    pub(super) fn claims_held(&mut self, entities: &[String]) -> bool {
        if self.setup.claimant.is_none() {
            return true;
        }
        let mut all = true;
        for entity in entities {
            let known =
                self.live.as_ref().and_then(|live| live.claims.claims.get(entity)).map(|claim| claim.held);
            all &= known.unwrap_or(false);
            if known.is_none() {
                self.put_token(entity);
            }
        }
        all
    }

    /// Whether the broker has accepted any token. If none is on its way either, one for the whole namespace is put.
    pub(super) fn any_claim_held(&mut self) -> bool {
        if self.setup.claimant.is_none() {
            return true;
        }
        let Some(live) = &self.live else { return false };
        if live.claims.claims.is_empty() {
            self.put_token("");
            return false;
        }
        live.claims.claims.values().any(|claim| claim.held)
    }

    fn put_token(&mut self, entity: &str) {
        let (Some(claimant), Some(live)) = (&self.setup.claimant, &mut self.live) else { return };
        let Token { audience, text, expires, renew_after } = claimant.token(entity);
        let now = Instant::now();
        let claim = live.claims.claims.entry(entity.to_owned()).or_insert(Claim {
            held: false,
            asked: None,
            renew_at: None,
        });
        claim.asked = Some(now);
        claim.renew_at = renew_after.map(|after| now + after);
        let mut properties: Vec<(&str, Value)> = vec![
            ("operation", Value::from("put-token")),
            ("type", Value::from("servicebus.windows.net:sastoken")),
            ("name", Value::from(audience)),
        ];
        if let Some(expires) = expires {
            properties.push(("expiration", Value::from(wall::timestamp(expires))));
        }
        let properties: Map =
            properties.into_iter().map(|(name, value)| (Value::from(name), value)).collect();
        let asker = Asker::Claim { entity: entity.to_owned() };
        self.ask_node(CBS, Vec::new(), &properties, &Value::from(text), None, asker);
    }

    /// `$cbs` has answered.
    pub(super) fn claim_answered(&mut self, entity: &str, answer: Result<(), Error>) {
        let Some(live) = &mut self.live else { return };
        let Some(claim) = live.claims.claims.get_mut(entity) else { return };
        claim.asked = None;
        match answer {
            Ok(()) => {
                let first = !claim.held;
                claim.held = true;
                debug!(entity, first, "token accepted");
                if first {
                    self.claimed();
                }
            }
            Err(error) if claim.held => {
                warn!(entity, %error, "the token could not be renewed; trying again");
                claim.renew_at = Some(Instant::now() + RENEWAL_PAUSE);
            }
            Err(error) => {
                live.claims.claims.remove(entity);
                self.unclaimed(entity, &error);
            }
        }
    }

    fn claimed(&mut self) {
        for slot in self.links.places() {
            if self.links.get(slot).is_some_and(|link| matches!(link.stage, Stage::Claiming)) {
                self.try_attach(slot);
            }
        }
        self.nodes_claimed();
    }

    fn unclaimed(&mut self, entity: &str, error: &Error) {
        for slot in self.links.places() {
            let refused = self.links.get(slot).is_some_and(|link| {
                matches!(link.stage, Stage::Claiming) && link.audiences.iter().any(|known| known == entity)
            });
            if refused {
                self.link_lost(slot, error.clone());
            }
        }
        self.nodes_unclaimed(entity, error);
        let whole = entity.is_empty();
        for slot in self.links.places() {
            let waits = |link: &Link| matches!(link.stage, Stage::Claiming) && link.audiences.is_empty();
            if self.links.get(slot).is_some_and(waits) {
                if whole { self.link_lost(slot, error.clone()) } else { self.try_attach(slot) }
            }
        }
    }

    /// Puts tokens that are due, and ends a connection whose `$cbs` does not answer.
    pub(super) fn claims_on_time(&mut self, now: Instant) {
        let Some(live) = &mut self.live else { return };
        let late = |claim: &Claim| claim.asked.is_some_and(|since| since + ANSWER_MAX <= now);
        if live.claims.claims.values().any(late) {
            warn!("no answer to a token within {ANSWER_MAX:?}; the connection is closed");
            live.claims.claims.clear();
            live.ended.get_or_insert_with(|| self.setup.route.unreachable(&"$cbs does not answer"));
            // A connection that is ending already needs no close.
            let _ = live.amqp.close(None);
            return;
        }
        let due: Vec<String> = live
            .claims
            .claims
            .iter()
            .filter(|(_, claim)| claim.asked.is_none() && claim.renew_at.is_some_and(|at| at <= now))
            .map(|(entity, _)| entity.clone())
            .collect();
        for entity in due {
            self.put_token(&entity);
        }
    }
}
