//! The SASL layer, both roles (AMQP 1.0 5.3). One mechanism, one message, one outcome; no challenges.

use bytes::Bytes;

use super::config::{Login, Mechanism};
use super::event::{Closed, Credentials, Event};
use super::handshake::{Phase, Side};
use super::violation::Violation;
use super::{Connection, Gone, wire};
use crate::frame::SaslFrame;
use crate::performative::{SaslCode, SaslInit, SaslMechanisms, SaslOutcome};
use crate::protocol_header::Protocol;
use crate::sasl_plain::PlainCredentials;
use crate::text::{Symbol, Text};

impl Connection {
    /// Server: writes what can be chosen.
    pub(super) fn offer_mechanisms(&mut self) {
        let Side::Server(config) = &self.side else { return };
        let names = config.mechanisms.iter().map(|mechanism| Symbol::from_static(mechanism.name())).collect();
        let offer = SaslFrame::Mechanisms(SaslMechanisms { sasl_server_mechanisms: names });
        wire::put_sasl(&mut self.outbox, &offer);
        self.phase = Phase::ServerInit;
    }

    /// Takes a frame of the SASL layer.
    pub(super) fn on_sasl(&mut self, frame: SaslFrame) {
        match (self.phase, frame) {
            (Phase::ServerInit, SaslFrame::Init(init)) => self.on_init(&init),
            (Phase::ClientMechanisms, SaslFrame::Mechanisms(offer)) => self.choose_mechanism(&offer),
            (Phase::ClientOutcome, SaslFrame::Outcome(outcome)) => {
                if outcome.code == SaslCode::Ok {
                    wire::put_header(&mut self.outbox, Protocol::Amqp);
                    self.write_open();
                    self.phase = Phase::ClientAmqpHeader;
                } else {
                    self.fail(Violation::Sasl("the server refused our credentials"));
                }
            }
            _ => self.fail(Violation::Sasl("frame out of order")),
        }
    }

    /// Server: the peer has chosen.
    fn on_init(&mut self, init: &SaslInit) {
        let Side::Server(config) = &self.side else { return };
        let chosen = config.mechanisms.iter().copied().find(|mechanism| init.mechanism == *mechanism.name());
        let none = Bytes::new();
        let response = init.initial_response.as_ref().unwrap_or(&none);
        match chosen {
            // Whatever a peer adds to these two proves nothing; JS sends its key's name.
            Some(Mechanism::Anonymous | Mechanism::Mssbcbs) => self.pass_sasl(),
            Some(Mechanism::Plain) => match PlainCredentials::parse(response) {
                Ok(credentials) if acts_for_itself(&credentials) => self.ask(Credentials::Plain(credentials)),
                Ok(_) => self.end_sasl("plain response acts as someone else"),
                Err(_) => self.end_sasl("malformed plain response"),
            },
            Some(Mechanism::External) => match Text::from_utf8(response.clone()) {
                Ok(acting_as) => self.ask(Credentials::External { acting_as: acting_as.detached() }),
                Err(_) => self.end_sasl("malformed external response"),
            },
            None => self.end_sasl("mechanism was not offered"),
        }
    }

    fn ask(&mut self, credentials: Credentials) {
        self.phase = Phase::ServerDeciding;
        self.events.push_back(Event::Credentials(credentials));
    }

    /// The credentials are good: the peer is authenticated and needs no token.
    ///
    /// Call [`Connection::receive`] afterwards; frames may wait in the input.
    pub fn accept_credentials(&mut self) -> Result<(), Gone> {
        if self.phase != Phase::ServerDeciding {
            return Err(Gone);
        }
        self.authenticated();
        self.pass_sasl();
        Ok(())
    }

    /// The credentials are not good: the connection ends.
    pub fn refuse_credentials(&mut self) -> Result<(), Gone> {
        if self.phase != Phase::ServerDeciding {
            return Err(Gone);
        }
        self.end_sasl("credentials were refused");
        Ok(())
    }

    fn pass_sasl(&mut self) {
        self.put_outcome(SaslCode::Ok);
        self.phase = Phase::ServerAmqpHeader;
    }

    fn end_sasl(&mut self, reason: &'static str) {
        self.put_outcome(SaslCode::Auth);
        self.phase = Phase::Finished;
        self.report_closed(Closed::Violation(Violation::Sasl(reason)));
    }

    fn put_outcome(&mut self, code: SaslCode) {
        wire::put_sasl(&mut self.outbox, &SaslFrame::Outcome(SaslOutcome { code, additional_data: None }));
    }

    /// Client: chooses the configured mechanism if it is offered.
    fn choose_mechanism(&mut self, offer: &SaslMechanisms) {
        let Side::Client(config) = &self.side else { return };
        let (mechanism, initial_response) = match &config.login {
            Login::Anonymous => (Mechanism::Anonymous, Some(Bytes::new())),
            Login::Mssbcbs => (Mechanism::Mssbcbs, None),
            Login::External => (Mechanism::External, Some(Bytes::new())),
            Login::Plain(credentials) => (Mechanism::Plain, Some(credentials.to_response())),
            Login::WithoutSasl => {
                self.fail(Violation::Sasl("frame out of order"));
                return;
            }
        };
        if !offer.sasl_server_mechanisms.contains(mechanism.name()) {
            self.fail(Violation::Sasl("the server does not offer our mechanism"));
            return;
        }
        let init = SaslInit {
            mechanism: Symbol::from_static(mechanism.name()),
            initial_response,
            hostname: config.hostname.clone(),
        };
        wire::put_sasl(&mut self.outbox, &SaslFrame::Init(init));
        self.phase = Phase::ClientOutcome;
    }
}

/// Whether the user asks for no identity but their own.
fn acts_for_itself(credentials: &PlainCredentials) -> bool {
    credentials.authorization_identity.is_empty() || credentials.authorization_identity == credentials.user
}
