//! The SASL layer: what each mechanism leads to, and that nothing else gets past it.

use bytes::Bytes;
use vorrang_amqp::connection::{
    ClientConfig, Closed, Connection, Credentials, Event, Limits, Login, Mechanism, Millis, ServerConfig,
    Violation,
};
use vorrang_amqp::frame::{SaslFrame, frame_size};
use vorrang_amqp::performative::{SaslCode, SaslInit, SaslResponse};
use vorrang_amqp::protocol_header::Protocol;
use vorrang_amqp::sasl_plain::PlainCredentials;
use vorrang_amqp::{Symbol, Text};

use crate::raw::Raw;

fn init(mechanism: &str, response: Option<&'static [u8]>) -> SaslFrame {
    SaslFrame::Init(SaslInit {
        mechanism: Symbol::from(mechanism),
        initial_response: response.map(Bytes::from_static),
        hostname: None,
    })
}

/// The outcome in the output, if there is one.
fn outcome(raw: &mut Raw) -> Option<SaslCode> {
    let mut output = raw.output();
    let size = frame_size(&output, 512).unwrap()?;
    match SaslFrame::decode(output.split_to(size)).unwrap() {
        SaslFrame::Outcome(outcome) => Some(outcome.code),
        other => panic!("{other:?}"),
    }
}

fn offered() -> Raw {
    let mut raw = Raw::server(Limits::default());
    raw.write(&Protocol::Sasl.header());
    let mut output = raw.output();
    assert_eq!(&output.split_to(8)[..], Protocol::Sasl.header());
    let SaslFrame::Mechanisms(offer) = SaslFrame::decode(output).unwrap() else { panic!() };
    for name in ["ANONYMOUS", "PLAIN", "EXTERNAL", "MSSBCBS"] {
        assert!(offer.sasl_server_mechanisms.contains(name));
    }
    raw
}

#[test]
fn mechanisms_without_proof_pass_and_prove_nothing() {
    let cases: [(&str, Option<&'static [u8]>); 5] = [
        ("MSSBCBS", None),
        ("MSSBCBS", Some(b"")),
        ("ANONYMOUS", Some(b"\0RootManageSharedAccessKey")),
        ("ANONYMOUS", Some(b"anonymous")),
        ("ANONYMOUS", Some(b"\xff\xff")),
    ];
    for (mechanism, response) in cases {
        let mut raw = offered();
        raw.write_sasl(&init(mechanism, response));
        assert_eq!(outcome(&mut raw), Some(SaslCode::Ok), "{mechanism} {response:?}");
        assert!(!raw.engine.is_authenticated() && raw.events().is_empty());
    }
}

#[test]
fn everything_else_is_refused_and_ends_the_connection() {
    let cases: [(&str, SaslFrame); 9] = [
        ("unknown mechanism", init("SCRAM-SHA-256", None)),
        ("no mechanism", init("", None)),
        ("a prefix of one", init("PLAI", Some(b"\0u\0p"))),
        ("other case", init("plain", Some(b"\0u\0p"))),
        ("plain without response", init("PLAIN", None)),
        ("plain without password", init("PLAIN", Some(b"\0u"))),
        ("plain without user", init("PLAIN", Some(b"\0\0p"))),
        ("plain for someone else", init("PLAIN", Some(b"admin\0u\0p"))),
        ("external that is no text", init("EXTERNAL", Some(b"\xff"))),
    ];
    for (case, frame) in cases {
        let mut raw = offered();
        raw.write_sasl(&frame);
        assert_eq!(outcome(&mut raw), Some(SaslCode::Auth), "{case}");
        assert!(raw.engine.is_finished(), "{case}");
        assert!(
            matches!(&raw.events()[..], [Event::Closed(Closed::Violation(Violation::Sasl(_)))]),
            "{case}"
        );
        raw.write(&Protocol::Amqp.header());
        assert!(raw.output().is_empty(), "{case}");
    }
    let mut raw = offered();
    raw.write_sasl(&SaslFrame::Response(SaslResponse::default()));
    assert!(raw.engine.is_finished() && outcome(&mut raw).is_none(), "a response to no challenge");
}

#[test]
fn credentials_are_decided_above_and_nothing_is_read_before() {
    for accepted in [true, false] {
        let mut raw = offered();
        raw.write_sasl(&init("PLAIN", Some(b"\0key\0secret")));
        // The client goes on as if it had passed.
        raw.write(&Protocol::Amqp.header());
        assert!(raw.output().is_empty());
        let Some(Event::Credentials(Credentials::Plain(credentials))) = raw.engine.next_event() else {
            panic!()
        };
        assert_eq!((credentials.user, credentials.password), (Text::from("key"), Text::from("secret")));
        if accepted {
            raw.engine.accept_credentials().unwrap();
            assert!(raw.engine.is_authenticated());
            assert!(raw.engine.accept_credentials().is_err(), "decided once");
            raw.write(b"");
            let mut output = raw.output();
            let size = frame_size(&output, 512).unwrap().unwrap();
            let _ = output.split_to(size);
            assert_eq!(&output[..], Protocol::Amqp.header());
        } else {
            raw.engine.refuse_credentials().unwrap();
            assert_eq!(outcome(&mut raw), Some(SaslCode::Auth));
            assert!(raw.engine.is_finished() && !raw.engine.is_authenticated());
        }
    }
}

#[test]
fn a_client_passes_with_each_login_and_fails_with_what_is_not_offered() {
    let plain = PlainCredentials {
        authorization_identity: Text::EMPTY,
        user: Text::from("key"),
        password: Text::from("secret"),
    };
    let all = vec![Mechanism::Anonymous, Mechanism::Plain, Mechanism::External];
    let cases = [
        (Login::Anonymous, all.clone(), true),
        (Login::Plain(plain), all.clone(), true),
        (Login::External, all.clone(), true),
        (Login::External, vec![Mechanism::Anonymous], false),
        (Login::WithoutSasl, all, true),
    ];
    for (login, mechanisms, opens) in cases {
        let mut config = ServerConfig::new("server");
        config.mechanisms = mechanisms;
        config.sasl_optional = login == Login::WithoutSasl;
        let mut server = Raw::of(Connection::server(config, Limits::default(), Millis(0)));
        let mut config = ClientConfig::new("client");
        config.login = login.clone();
        let mut client = Raw::of(Connection::client(config, Limits::default(), Millis(0)));
        for _ in 0..5 {
            let bytes = client.output();
            server.write(&bytes);
            if server.engine.events().any(|event| matches!(event, Event::Credentials(_))) {
                server.engine.next_event();
                server.engine.accept_credentials().unwrap();
            }
            let bytes = server.output();
            client.write(&bytes);
        }
        let opened = client.events().iter().any(|event| matches!(event, Event::Opened(_)));
        assert_eq!(opened, opens, "{login:?}");
        assert_eq!(client.engine.is_finished(), !opens, "{login:?}");
    }
}
