//! The JSON API beside AMQP, on plain sockets: what operators and developers do while clients are connected.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value as Json;
use vorrang_broker::access::token;
use vorrang_engine::entity::authorization::Secret;

use crate::server::{ROOT, ROOT_KEY, Server};

/// Far enough in the future for every test.
const EXPIRY: &str = "4102444800";

impl Server {
    /// Asks the API with a key, and returns the status and the answer.
    pub(crate) fn api_as(
        &self,
        (name, key): (&str, &str),
        method: &str,
        path: &str,
        body: &str,
    ) -> (u16, Json) {
        let resource = "https%3A%2F%2Flocalhost%2F";
        let signature = token::sign(&Secret::new(key), resource, EXPIRY);
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let token = format!("SharedAccessSignature sr={resource}&sig={signature}&se={EXPIRY}&skn={name}");
        let mut stream = TcpStream::connect(self.ready.http).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        let rest = format!("Authorization: {token}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all((head + &rest).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, if body.is_empty() { Json::Null } else { serde_json::from_str(body).expect(body) })
    }

    /// Asks with the namespace's own key.
    pub(crate) fn api(&self, method: &str, path: &str, body: &str) -> (u16, Json) {
        self.api_as((ROOT, ROOT_KEY), method, path, body)
    }

    /// Asks, and takes nothing but success.
    pub(crate) fn fine(&self, method: &str, path: &str, body: &str) -> Json {
        let (status, answer) = self.api(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    /// Asks, and takes nothing but this refusal; returns its words.
    pub(crate) fn refused(&self, expected: u16, method: &str, path: &str, body: &str) -> String {
        let (status, answer) = self.api(method, path, body);
        assert_eq!(status, expected, "{method} {path}: {answer}");
        answer["detail"].as_str().unwrap().to_owned()
    }
}
