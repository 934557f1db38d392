//! The ATOM door as an administrator's client meets it.

use crate::server::{KEY, Server, token, token_for};

const ROOT: &str = "RootManageSharedAccessKey";
const QUEUE: &str = "<QueueDescription/>";

#[tokio::test]
async fn who_asks_without_a_valid_token_is_told_so_and_nothing_else() {
    let server = Server::start().await;
    assert_eq!(server.ask("PUT", "/q", &[], QUEUE).await.status, 201);
    let long_ago = token(ROOT, KEY, "https%3A%2F%2Flocalhost%2F", "1000000000");
    let cases = [
        ("no token", String::new(), "MissingToken"),
        ("another kind", "Bearer abc".to_owned(), "Only tokens of the form"),
        ("no token at all", "SharedAccessSignature nonsense".to_owned(), "MalformedToken"),
        ("wrong key", token_for(ROOT, "wrong", ""), "InvalidSignature"),
        ("unknown name", token_for("Nobody", KEY, ""), "InvalidSignature"),
        ("expired", long_ago, "ExpiredToken"),
        ("another place", token_for(ROOT, KEY, "other"), "InvalidAudience"),
    ];
    for (case, token, expected) in cases {
        for path in ["/q", "/absent", "/$namespaceinfo", "/$Resources/queues"] {
            let header = [("Authorization", token.as_str())];
            let headers: &[(&str, &str)] = if token.is_empty() { &[] } else { &header };
            let answer = server.raw("GET", path, headers, "").await;
            assert_eq!(answer.status, 401, "{case} {path}");
            assert!(answer.body.contains(expected), "{case} {path}: {}", answer.body);
            assert_eq!(answer.element("Code"), Some("401"));
            assert!(answer.element("Detail").unwrap().starts_with("SubCode=40100. "), "{}", answer.body);
            assert!(!answer.body.contains(KEY), "keys do not show");
        }
    }
    let header = token_for(ROOT, KEY, "");
    let other = server.raw("GET", "/q", &[("ServiceBusAuthorization", &header)], "").await;
    assert_eq!(other.status, 200, "the second header counts where a proxy takes the first");
    server.stop().await;
}

#[tokio::test]
async fn a_token_for_exactly_the_url_is_enough_wherever_the_url_is() {
    let server = Server::start().await;
    let subscription = "<SubscriptionDescription/>";
    let rule = "<RuleDescription/>";
    let steps = [
        ("PUT", "/t", "<TopicDescription/>", 201),
        ("PUT", "/t/Subscriptions/s", subscription, 201),
        ("PUT", "/t/Subscriptions/s/Rules/r", rule, 201),
        ("GET", "/t/Subscriptions/s/Rules/r", "", 200),
        ("GET", "/t/Subscriptions/s/Rules", "", 200),
        ("GET", "/t/Subscriptions", "", 200),
        ("GET", "/$Resources/Topics", "", 200),
        ("GET", "/$namespaceInfo", "", 200),
        ("DELETE", "/t/Subscriptions/s/Rules/r", "", 200),
        ("GET", "/t/Subscriptions/s/Rules/r", "", 404),
        ("DELETE", "/t/Subscriptions/s", "", 200),
        ("DELETE", "/t", "", 200),
    ];
    for (method, path, body, expected) in steps {
        // As JavaScript signs: lower case, with the query.
        let place = format!(
            "{}%2F%3Fapi-version%3D2021-05",
            path.trim_start_matches('/').replace('/', "%2F").replace('$', "%24")
        );
        let token = token_for(ROOT, KEY, &place.to_lowercase());
        let url = format!("{path}/?api-version=2021-05");
        let answer = server.raw(method, &url, &[("Authorization", &token)], body).await;
        assert_eq!(answer.status, expected, "{method} {path}: {}", answer.body);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_key_of_an_entity_opens_that_entity_alone_and_only_as_far_as_it_goes() {
    let server = Server::start().await;
    let rule = |name: &str, rights: &str| {
        format!(
            "<AuthorizationRule><Rights><AccessRights>{rights}</AccessRights></Rights><KeyName>{name}</KeyName>\
             <PrimaryKey>p</PrimaryKey><SecondaryKey>s</SecondaryKey></AuthorizationRule>"
        )
    };
    let (owner, sender) = (rule("owner", "Manage"), rule("sender", "Send"));
    let body = format!(
        "<QueueDescription><AuthorizationRules>{owner}{sender}</AuthorizationRules></QueueDescription>"
    );
    assert_eq!(server.ask("PUT", "/mine", &[], &body).await.status, 201);
    assert_eq!(server.ask("PUT", "/theirs", &[], QUEUE).await.status, 201);
    let cases = [
        ("owner", "GET", "/mine", 200),
        ("owner", "GET", "/theirs", 401),
        ("owner", "PUT", "/new", 401),
        ("owner", "GET", "/$Resources/Queues", 401),
        ("owner", "GET", "/$namespaceinfo", 401),
        ("sender", "GET", "/mine", 401),
        ("sender", "DELETE", "/mine", 401),
        ("sender", "POST", "/mine/messages", 201),
        ("sender", "DELETE", "/mine/messages/head?timeout=0", 401),
        ("sender", "POST", "/theirs/messages", 401),
    ];
    for (key, method, path, expected) in cases {
        let token = token_for(key, "p", "");
        let answer = server.raw(method, path, &[("Authorization", &token)], QUEUE).await;
        assert_eq!(answer.status, expected, "{key} {method} {path}: {}", answer.body);
    }
    assert_eq!(server.ask("PUT", "/mine", &[("If-Match", "*")], QUEUE).await.status, 200);
    let token = token_for("owner", "p", "");
    let kept = server.raw("GET", "/mine", &[("Authorization", &token)], "").await;
    assert_eq!(kept.status, 200, "an update that does not speak of keys keeps them");
    let none = "<QueueDescription><AuthorizationRules/></QueueDescription>";
    assert_eq!(server.ask("PUT", "/mine", &[("If-Match", "*")], none).await.status, 200);
    let revoked = server.raw("GET", "/mine", &[("Authorization", &token)], "").await;
    assert_eq!(revoked.status, 401, "an empty list revokes them");
    server.stop().await;
}

#[tokio::test]
async fn a_key_that_is_refused_is_not_repeated() {
    let server = Server::start().await;
    let planted = "planted-secret-7f3a";
    let long = planted.repeat(30);
    for (rights, key) in [("Send", long.as_str()), ("Rule", planted), ("", planted)] {
        let body = format!(
            "<QueueDescription><AuthorizationRules><AuthorizationRule><Rights><AccessRights>{rights}</AccessRights>\
             </Rights><KeyName>k</KeyName><PrimaryKey>{key}</PrimaryKey></AuthorizationRule></AuthorizationRules>\
             </QueueDescription>"
        );
        let answer = server.ask("PUT", "/q", &[], &body).await;
        assert_eq!(answer.status, 400, "{rights}: {}", answer.body);
        assert!(answer.body.contains("AuthorizationRules"), "{}", answer.body);
        assert!(!answer.body.contains(planted), "{}", answer.body);
    }
    server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_done_has_its_code_and_names_the_thing() {
    let server = Server::start().await;
    assert_eq!(server.ask("PUT", "/q", &[], QUEUE).await.status, 201);
    assert_eq!(server.ask("PUT", "/t", &[], "<TopicDescription/>").await.status, 201);
    let update: &[(&str, &str)] = &[("If-Match", "*")];
    let none: &[(&str, &str)] = &[];
    let session = "<QueueDescription><RequiresSession>true</RequiresSession></QueueDescription>";
    let forward =
        |to: &str| format!("<QueueDescription><ForwardTo>sb://h/{to}</ForwardTo></QueueDescription>");
    let large = format!("<QueueDescription>{}</QueueDescription>", " ".repeat(300_000));
    let cases = [
        ("PUT", "/Q", none, QUEUE.to_owned(), 409, "exists already"),
        ("PUT", "/t", none, QUEUE.to_owned(), 409, "exists already"),
        ("GET", "/absent", none, String::new(), 404, "'absent' could not be found"),
        ("PUT", "/absent", update, QUEUE.to_owned(), 404, "'absent' could not be found"),
        ("DELETE", "/absent", none, String::new(), 404, "'absent' could not be found"),
        ("GET", "/absent/Subscriptions", none, String::new(), 404, "'absent' could not be found"),
        (
            "PUT",
            "/absent/Subscriptions/s",
            none,
            "<SubscriptionDescription/>".to_owned(),
            404,
            "could not be found",
        ),
        ("GET", "/t/Subscriptions/s/Rules/r", none, String::new(), 404, "could not be found"),
        ("GET", "/q/$DeadLetterQueue", none, String::new(), 404, "could not be found"),
        ("PUT", "/q", update, session.to_owned(), 400, "RequiresSession"),
        ("PUT", "/n", none, forward("absent"), 400, "absent"),
        ("PUT", "/n", none, forward("n"), 400, "ForwardTo"),
        (
            "PUT",
            "/n",
            none,
            "<SubscriptionDescription/>".to_owned(),
            400,
            "QueueDescription or TopicDescription",
        ),
        ("PUT", "/n", none, "<QueueDescription>".to_owned(), 400, "not well-formed"),
        ("PUT", "/n", none, String::new(), 400, "is empty"),
        ("PUT", "/n", none, "<!DOCTYPE x><x/>".to_owned(), 400, "a document type"),
        ("PUT", "/n", none, large, 413, "exceeds the limit of 262144"),
        ("PUT", "/a%20b", none, QUEUE.to_owned(), 400, "must not contain ' '"),
        ("PUT", "/a%0Ab", none, QUEUE.to_owned(), 400, "must not contain"),
        ("PUT", "/%3Cscript%3E", none, QUEUE.to_owned(), 400, "&lt;"),
        ("PUT", "/..%2fetc", none, QUEUE.to_owned(), 400, "path segment"),
        ("GET", "/$Resources/Queues?$top=x", none, String::new(), 400, "'$top' must be a whole number"),
        ("PATCH", "/q", none, String::new(), 405, "PATCH"),
        ("POST", "/q", none, String::new(), 405, "POST"),
    ];
    for (method, path, headers, body, status, expected) in cases {
        let answer = server.ask(method, path, headers, &body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        assert!(answer.body.contains(expected), "{method} {path}: {}", answer.body);
        assert_eq!(answer.element("Code"), Some(status.to_string().as_str()));
        assert_eq!(answer.headers["content-type"], "application/xml; charset=utf-8");
    }
    server.stop().await;
}

#[tokio::test]
async fn names_that_look_strange_come_back_as_they_were_given() {
    let server = Server::start().await;
    for (path, name) in [
        ("/MassTransit~fault", "MassTransit~fault"),
        ("/eu%2Forders.v2", "eu/orders.v2"),
        ("/gr%C3%B6%C3%9Fe", "größe"),
        ("/a&b", "a&amp;b"),
        ("/tenant:7", "tenant:7"),
        ("/it's(fine)!", "it's(fine)!"),
        ("/messages", "messages"),
        ("/health", "health"),
        ("/$Resourcesx%24", ""),
    ] {
        let answer = server.ask("PUT", path, &[("x-ms-client-request-id", "7")], QUEUE).await;
        if name.is_empty() {
            assert_eq!(answer.status, 400, "{path}");
            continue;
        }
        assert_eq!(answer.status, 201, "{path}: {}", answer.body);
        assert!(answer.body.contains(&format!("<title type=\"text\">{name}</title>")), "{}", answer.body);
        assert_eq!(answer.headers["content-type"], "application/atom+xml;type=entry;charset=utf-8");
        assert_eq!(answer.headers["x-ms-client-request-id"], "7");
    }
    let feed = server.ask("GET", "/$Resources/queues?api-version=2017-04", &[], "").await;
    assert_eq!(feed.headers["content-type"], "application/atom+xml;type=feed;charset=utf-8");
    assert_eq!(feed.body.matches("<entry>").count(), 8, "{}", feed.body);
    server.stop().await;
}

#[tokio::test]
async fn lists_come_in_pages_by_name() {
    let server = Server::start().await;
    for name in ["c", "B", "a", "d", "E"] {
        assert_eq!(server.ask("PUT", &format!("/{name}"), &[], QUEUE).await.status, 201);
    }
    let titles = |body: &str| -> Vec<String> {
        let parts = body.split("<entry>").skip(1).map(|entry| {
            let (_, rest) = entry.split_once("<title type=\"text\">").unwrap();
            rest.split('<').next().unwrap().to_owned()
        });
        parts.collect()
    };
    let cases = [
        ("", vec!["a", "B", "c", "d", "E"], false),
        ("?$skip=0&$top=2", vec!["a", "B"], true),
        ("?%24skip=2&%24top=2", vec!["c", "d"], true),
        ("?$skip=4&$top=2", vec!["E"], false),
        ("?$skip=3&$top=2", vec!["d", "E"], false),
        ("?$skip=9", vec![], false),
        ("?$top=0", vec!["a"], true),
        ("?$top=5000", vec!["a", "B", "c", "d", "E"], false),
    ];
    for (query, expected, more) in cases {
        let answer = server.ask("GET", &format!("/$Resources/Queues{query}"), &[], "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(titles(&answer.body), expected, "{query}");
        assert_eq!(answer.body.contains("rel=\"next\""), more, "{query}");
    }
    server.stop().await;
}

#[tokio::test]
async fn priorities_outlive_an_update_by_a_client_that_does_not_know_them() {
    let server = Server::start().await;
    let body = "<QueueDescription><Priority xmlns=\"urn:vorrang:priority\"><Policy>deadline</Policy><Classes><Class>\
                <Name>gold</Name><Level>9</Level><TargetWait>PT5S</TargetWait></Class></Classes></Priority></QueueDescription>";
    let created = server.ask("PUT", "/q", &[], body).await;
    assert_eq!(created.element("Policy"), Some("deadline"), "{}", created.body);
    let plain = "<QueueDescription><MaxDeliveryCount>3</MaxDeliveryCount></QueueDescription>";
    let updated = server.ask("PUT", "/q", &[("If-Match", "*")], plain).await;
    assert_eq!((updated.status, updated.element("MaxDeliveryCount")), (200, Some("3")));
    assert_eq!(updated.element("TargetWait"), Some("PT5S"), "{}", updated.body);
    server.stop().await;
}

/// L10: the rule a subscription is created with is the only one it has.
#[tokio::test]
async fn a_subscription_has_exactly_the_rule_it_was_created_with() {
    let server = Server::start().await;
    assert_eq!(server.ask("PUT", "/t", &[], "<TopicDescription/>").await.status, 201);
    let schema = "xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"";
    let rule = |kind: &str, inside: &str, name: &str| {
        format!(
            "<DefaultRuleDescription {schema}><Filter i:type=\"{kind}\">{inside}</Filter>{name}</DefaultRuleDescription>"
        )
    };
    let sql = "<SqlExpression>colour = 'red'</SqlExpression>";
    let (name, none) = ("<Name>reds</Name>", "");
    let cases = [
        ("none-given", String::new(), "$Default", "TrueFilter", ["red", "blue"].as_slice()),
        ("named", rule("SqlFilter", sql, name), "reds", "SqlFilter", &["red"]),
        ("unnamed", rule("SqlFilter", sql, none), "$Default", "SqlFilter", &["red"]),
        (
            "label",
            rule("CorrelationFilter", "<Label>blue</Label>", name),
            "reds",
            "CorrelationFilter",
            &["blue"],
        ),
        (
            "nothing",
            rule("FalseFilter", "<SqlExpression>1=0</SqlExpression>", name),
            "reds",
            "FalseFilter",
            &[],
        ),
    ];
    for (subscription, rule, ..) in &cases {
        let body = format!("<SubscriptionDescription>{rule}</SubscriptionDescription>");
        let made = server.ask("PUT", &format!("/t/Subscriptions/{subscription}"), &[], &body).await;
        assert_eq!(made.status, 201, "{subscription}: {}", made.body);
    }
    for colour in ["red", "blue"] {
        let properties = format!("{{\"Label\": \"{colour}\"}}");
        let quoted = format!("\"{colour}\"");
        let headers = [("BrokerProperties", properties.as_str()), ("colour", quoted.as_str())];
        assert_eq!(server.ask("POST", "/t/messages", &headers, colour).await.status, 201);
    }
    for (subscription, _, name, kind, taken) in cases {
        let rules = server.ask("GET", &format!("/t/Subscriptions/{subscription}/Rules"), &[], "").await;
        assert_eq!(rules.body.matches("<entry>").count(), 1, "{subscription}: {}", rules.body);
        assert_eq!(rules.element("Name"), Some(name), "{subscription}: {}", rules.body);
        assert!(rules.body.contains(&format!("\"{kind}\"")), "{subscription}: {}", rules.body);
        let mut found = Vec::new();
        loop {
            let head = format!("/t/Subscriptions/{subscription}/messages/head?timeout=0");
            let message = server.ask("DELETE", &head, &[], "").await;
            if message.status == 204 {
                break;
            }
            assert_eq!(message.status, 200, "{subscription}: {}", message.body);
            found.push(message.body);
        }
        assert_eq!(found, taken, "{subscription}");
    }
    server.stop().await;
}

/// L11: what SDKs insist on, in the order in which a data contract has it.
#[tokio::test]
async fn the_namespace_introduces_itself() {
    let server = Server::start().await;
    let info = server.ask("GET", "/$namespaceinfo?api-version=2021-05", &[], "").await;
    assert_eq!(info.status, 200);
    assert_eq!(info.headers["content-type"], "application/atom+xml;type=entry;charset=utf-8");
    let places = [
        "<entry",
        "<NamespaceInfo",
        "CreatedTime",
        "MessagingSKU",
        "ModifiedTime",
        "<Name>",
        "NamespaceType",
    ]
    .map(|part| info.body.find(part).unwrap_or_else(|| panic!("{part}: {}", info.body)));
    assert!(places.is_sorted(), "{}", info.body);
    assert_eq!(info.element("MessagingSKU"), Some("Standard"));
    assert_eq!(info.element("NamespaceType"), Some("Messaging"));
    assert!(info.element("CreatedTime").unwrap().ends_with('Z'), "{}", info.body);
    server.stop().await;
}
