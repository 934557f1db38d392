use std::net::IpAddr;

use proptest::prelude::*;
use vorrang_engine::Span;
use vorrang_engine::entity::Setting;
use vorrang_engine::entity::priority::Policy;
use vorrang_filter::Filter;

use super::*;

/// Loads a file of this text, with these overrides.
fn load(text: &str, overrides: &[Override]) -> Result<Config, Problems> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(FILE_NAME);
    fs::write(&file, text).unwrap();
    Config::load(Some(&file), overrides).map_err(|mut problems| {
        // The folder differs from run to run.
        for problem in &mut problems.0 {
            if let Source::File { path, .. } = &mut problem.source {
                *path = Arc::from(Path::new(FILE_NAME));
            }
        }
        problems
    })
}

fn flag(name: &str, text: &str) -> Override {
    Override {
        key: Key::find(name).unwrap(),
        source: Source::Flag(name.replace('_', "-")),
        text: text.to_owned(),
    }
}

fn variable(name: &str, text: &str) -> Override {
    let key = Key::find(name).unwrap();
    Override { key, source: Source::Variable(key.variable()), text: text.to_owned() }
}

const FULL: &str = r#"
data_dir = "data"
amqp_port = 0
dev = true
log = "warn"

[[key]]
name = "reporting"
rights = ["Listen"]
primary_key = "planted-secret-of-the-namespace"

[[queue]]
name = "orders"
lock_duration = "30s"
max_delivery_count = 3
requires_session = true
policy = "aged:10s"
rescue = { after = "1m", share = 0.25 }
prefetch_share = 0.5

[[queue.class]]
name = "gold"
level = 8
target_wait = "10s"

[[queue.priority_rule]]
filter = "Fee > 100"
class = "gold"

[[queue.authorization_rule]]
name = "shop"
rights = ["send"]
primary_key = "planted-secret-of-a-queue"

[[topic]]
name = "events"
requires_duplicate_detection = true

[[topic.subscription]]
name = "high"
forward_to = "orders"

[[topic.subscription.rule]]
name = "only-high"
filter = "Priority = 'High'"
action = "SET sys.To = 'x'"

[[topic.subscription.rule]]
name = "labelled"
correlation = { label = "red", properties = { shop = 7, open = true } }
"#;

#[test]
fn a_whole_file_is_read() {
    let config = load(FULL, &[]).unwrap();
    assert_eq!((config.settings.ports.amqp, config.settings.ports.http), (0, 5_300));
    assert!(config.settings.dev && config.log.filter == "warn");
    assert_eq!(config.source("http_port"), Source::Default);
    assert!(matches!(config.source("dev"), Source::File { line: 4, .. }));
    let definitions = &config.settings.definitions;
    let settings = &definitions.queues[0].settings;
    assert!(settings.contains(&Setting::LockDuration(Span::seconds(30))));
    assert!(settings.contains(&Setting::Policy(Policy::Aged { step: Span::seconds(10) })));
    assert!(settings.iter().any(|setting| matches!(setting, Setting::Classes(classes)
        if classes[0].name.as_str() == "gold" && classes[0].target_wait == Some(Span::seconds(10)))));
    assert!(settings.iter().any(|setting| matches!(setting, Setting::AuthorizationRules(rules)
        if rules[0].primary_key.expose() == "planted-secret-of-a-queue" && rules[0].rights.send)));
    let rules = &definitions.topics[0].subscriptions[0].rules;
    assert_eq!(rules.len(), 2);
    assert!(matches!(&rules[0].filter, Filter::Sql(sql) if sql.text() == "Priority = 'High'"));
    assert!(matches!(&rules[1].filter, Filter::Correlation(fields) if fields.user().count() == 2));
}

#[test]
fn what_is_shown_reads_back_the_same_and_holds_no_key() {
    let config = load(FULL, &[]).unwrap();
    let shown = show::config(&config);
    assert!(!shown.contains("planted-secret"), "{shown}");
    assert!(shown.contains("primary_key = \"***\""), "{shown}");
    let again = load(&shown, &[]).unwrap_or_else(|problems| panic!("{problems}\n{shown}"));
    let entities = |config: &Config| show::definitions(&config.settings.definitions);
    assert_eq!(entities(&again), entities(&config));
    assert!(!format!("{config:?}").contains("planted-secret"));
}

#[test]
fn a_flag_beats_a_variable_and_a_variable_beats_the_file() {
    let config = load(
        "http_port = 1\namqp_port = 1\namqps_port = 5\n",
        &[variable("http_port", "2"), variable("amqp_port", "3"), flag("http_port", "4")],
    )
    .unwrap();
    let ports = config.settings.ports;
    assert_eq!((ports.http, ports.amqp, ports.amqps, ports.https), (4, 3, 5, 5_443));
    assert_eq!(config.source("http_port").to_string(), "flag --http-port");
    assert_eq!(config.source("amqp_port").to_string(), "variable VORRANG_AMQP_PORT");
    assert_eq!(config.settings.host, "127.0.0.1".parse::<IpAddr>().unwrap());
}

#[test]
fn every_mistake_is_reported_at_once_with_its_line_key_value_and_what_is_allowed() {
    let text = "\
amqp_port = 70000
amqp_prot = 1
host = \"everywhere\"
tls_key = \"a.pem\"
[[queue]]
name = \"a?b\"
lock_duration = \"1h\"
max_delivery_count = \"three\"
colour = \"red\"
[[queue]]
lock_duraton = \"30s\"
[[queue]]
name = \"orders\"
policy = \"aged\"
class = [ { name = \"7up\", level = 300 }, { level = 1, target = \"1s\" } ]
priority_rule = [ { class = \"low\" }, { class = \"low\", filter = \"a = \" } ]
[[queue]]
name = \"ORDERS\"
authorization_rule = \"planted-secret\"
[[topic]]
name = \"t\"
lock_duration = \"30s\"
[[topic.subscription]]
name = \"s\"
[[topic.subscription.rule]]
name = \"r\"
filter = \"1=1\"
correlation = { label = 1 }
[[topic.subscription.rule]]
name = \"q\"
correlation = { lable = \"x\" }
[[key]]
name = \"k\"
rights = [\"Sned\"]
primary_key = \"\"
";
    let problems = load(text, &[flag("max_connections", "0"), variable("log_format", "xml")]).unwrap_err();
    let all = problems.to_string();
    let expected = [
        "vorrang.toml:1: amqp_port cannot be 70000: allowed is a whole number from 0 to 65535",
        "vorrang.toml:2: amqp_prot is not a key here; did you mean amqp_port?",
        "vorrang.toml:3: host cannot be \"everywhere\": allowed is an IP address",
        "vorrang.toml:4: tls_key needs tls_certificate beside it",
        "vorrang.toml:6: queue[0].name cannot be \"a?b\": ",
        "vorrang.toml:7: queue[0].lock_duration cannot be ",
        "vorrang.toml:8: queue[0].max_delivery_count cannot be \"three\": allowed is a whole number from 1",
        "vorrang.toml:9: queue[0].colour is not a key here",
        "vorrang.toml:10: queue[1].name is missing",
        "vorrang.toml:11: queue[1].lock_duraton is not a key here; did you mean lock_duration?",
        "vorrang.toml:14: queue[2].policy cannot be \"aged\": allowed is strict, deadline, fifo, or aged",
        "vorrang.toml:15: queue[2].class[0].name cannot be \"7up\"",
        "vorrang.toml:15: queue[2].class[0].level cannot be 300: allowed is a whole number from 0 to 255",
        "vorrang.toml:15: queue[2].class[1].name is missing",
        "vorrang.toml:15: queue[2].class[1].target is not a key here",
        "vorrang.toml:16: queue[2].priority_rule[0].filter is missing",
        "vorrang.toml:16: queue[2].priority_rule[1].filter cannot be \"a = \"",
        "vorrang.toml:18: queue[3].name cannot be \"ORDERS\": it is defined twice",
        "vorrang.toml:19: queue[3].authorization_rule cannot be a string: allowed is a list of tables",
        "vorrang.toml:22: topic[0].lock_duration is not a key here",
        "vorrang.toml:28: topic[0].subscription[0].rule[0].correlation stands beside filter",
        "vorrang.toml:31: topic[0].subscription[0].rule[1].correlation.lable is not a key here; did you mean label?",
        "vorrang.toml:34: key[0].rights[0] cannot be \"Sned\": allowed is Send, Listen, Manage",
        "vorrang.toml:35: key[0].primary_key cannot be a string: allowed is a key of 1 to 256 bytes",
        "flag --max-connections: max_connections cannot be \"0\": allowed is a whole number from 1 to 1000000",
        "variable VORRANG_LOG_FORMAT: log_format cannot be \"xml\": allowed is text, json",
    ];
    for part in expected {
        assert!(all.contains(part), "{part} not in\n{all}");
    }
    assert_eq!(problems.0.len(), expected.len(), "{all}");
    assert!(!all.contains("planted-secret"), "{all}");
}

#[test]
fn keys_may_lie_in_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, "a key\n").unwrap();
    let text = |path: &Path| format!("[[key]]\nname=\"k\"\nrights=[\"Manage\"]\nprimary_key_file={path:?}\n");
    let config = load(&text(&key), &[]).unwrap();
    let rule = &config.settings.keys[0];
    assert_eq!((rule.primary_key.expose(), rule.secondary_key.expose()), ("a key", "a key"));
    assert!(rule.rights.send && rule.rights.listen && rule.rights.manage);
    let problems = load(&text(&folder.path().join("absent")), &[]).unwrap_err();
    assert!(problems.to_string().contains("cannot be read"), "{problems}");
    let root = "[[key]]\nname=\"RootManageSharedAccessKey\"\nrights=[\"Send\"]\nprimary_key=\"x\"\n";
    assert!(load(root, &[]).unwrap_err().to_string().contains("root-key"));
}

#[test]
fn the_emulators_words_are_understood_and_ours_are_stronger() {
    let folder = tempfile::tempdir().unwrap();
    let mount = folder.path().join("Config.json");
    let environment = |name: &str| (name == "EMULATOR_HTTP_PORT").then(|| "5400".to_owned());
    let found = from_environment(environment, &mount);
    assert_eq!(load("", &found).unwrap().settings.ports.http, 5_400);
    assert_eq!(load("http_port = 1", &found).unwrap().settings.ports.http, 5_400);
    let ours = [found.clone(), vec![variable("http_port", "5500")]].concat();
    assert_eq!(load("", &ours).unwrap().settings.ports.http, 5_500);
    let mine = folder.path().join("mine.json");
    for file in [&mount, &mine] {
        fs::write(file, r#"{"UserConfig":{}}"#).unwrap();
    }
    let found = from_environment(|_| None, &mount);
    assert_eq!(load("", &found).unwrap().settings.emulator_config.as_deref(), Some(mount.as_path()));
    let other = load(&format!("emulator_config = {:?}", mine.display().to_string()), &found).unwrap();
    assert_eq!(other.settings.emulator_config.as_deref(), Some(mine.as_path()));
}

#[test]
fn files_of_certificates_that_cannot_be_used_are_told_with_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.pem");
    fs::write(&wrong, "hello").unwrap();
    let wrong = format!("{:?}", wrong.display().to_string());
    let collector = "otlp_endpoint = \"https://localhost:4318\"";
    let text = format!(
        "amqp_port = 70000\ntls_certificate = {wrong}\ntls_key = {wrong}\n{collector}\notlp_ca_file = {wrong}\n"
    );
    let problems = load(&text, &[]).unwrap_err();
    let said = problems.to_string();
    assert_eq!(problems.0.len(), 3, "{said}");
    for part in [
        "vorrang.toml:2: tls_certificate is of no use",
        "vorrang.toml:5: otlp_ca_file is of no use",
        "wrong.pem",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Without a collector nobody asks whom to believe.
    assert!(load(&format!("otlp_ca_file = {wrong}"), &[]).is_ok());
}

#[test]
fn mistakes_of_the_emulators_file_are_told_with_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Config.json");
    let text = r#"{"UserConfig":{"Namespaces":[{"Queues":[{"Name":"q","Properties":{"LockDuration":"PT10M","MaxDeliveryCount":"x"}}]}]}}"#;
    fs::write(&file, text).unwrap();
    let told = |path: &Path| {
        let text = format!("amqp_port = 70000\nemulator_config = {:?}\n", path.display().to_string());
        load(&text, &[]).unwrap_err().to_string()
    };
    let said = told(&file);
    for part in [
        "amqp_port cannot be 70000",
        "Config.json: $.UserConfig.Namespaces[0].Queues[0].Properties.LockDuration: cannot be 600 s: allowed is",
        "Config.json: $.UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount: cannot be \"x\": allowed is",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(told(&folder.path().join("absent.json")).contains("it cannot be read"));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let problems = Config::load(Some(Path::new("/nonexistent/vorrang.toml")), &[]).unwrap_err();
    assert!(
        problems.to_string().contains("/nonexistent/vorrang.toml:1: the file cannot be read"),
        "{problems}"
    );
}

#[test]
fn the_schema_knows_every_key_the_reader_knows() {
    let schema = schema();
    let properties = schema["properties"].as_object().unwrap();
    assert_eq!(properties.len(), KEYS.len() + 3);
    let queue = schema["properties"]["queue"]["items"]["properties"].as_object().unwrap();
    for name in ["name", "lock_duration", "class", "rescue", "priority_rule", "authorization_rule", "paused"]
    {
        assert!(queue.contains_key(name), "{name}");
    }
    assert!(!queue.contains_key("subscription"));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let mut config = Config::default();
        let _ = config.read(Path::new(FILE_NAME), &text);
    }

    #[test]
    fn no_mixture_of_known_words_makes_it_panic_and_what_it_takes_it_shows_again(
        lines in proptest::collection::vec(line(), 0..24),
    ) {
        let text = lines.join("\n");
        if let Ok(config) = load(&text, &[]) {
            let shown = show::config(&config);
            let again = load(&shown, &[]).unwrap_or_else(|problems| panic!("{problems}\n{shown}"));
            prop_assert_eq!(show::definitions(&again.settings.definitions), show::definitions(&config.settings.definitions));
        }
    }
}

/// A line that might stand in a file: headers and keys that exist, values that fit or do not.
fn line() -> impl Strategy<Value = String> {
    let headers = prop::sample::select(vec![
        "[[queue]]",
        "[[queue.class]]",
        "[[queue.priority_rule]]",
        "[[topic]]",
        "[[topic.subscription]]",
        "[[topic.subscription.rule]]",
        "[[key]]",
        "[queue]",
    ]);
    let mut keys: Vec<&str> = PROPERTIES.iter().map(|property| property.name).collect();
    keys.extend(KEYS.iter().map(|key| key.name));
    keys.extend([
        "name",
        "name",
        "name",
        "level",
        "class",
        "filter",
        "correlation",
        "rights",
        "primary_key",
        "rescue",
    ]);
    let values = prop::sample::select(vec![
        "\"a\"",
        "\"b\"",
        "7",
        "true",
        "0.5",
        "\"30s\"",
        "\"1=1\"",
        "[\"Send\"]",
        "{ label = \"x\" }",
        "\"strict\"",
        "-1",
        "1979-05-27",
        "[1, {a = 2}]",
        "\"\\u0007\"",
        "\"low\"",
        "99999999999999999999",
    ]);
    prop_oneof![
        1 => headers.prop_map(str::to_owned),
        3 => (prop::sample::select(keys), values).prop_map(|(key, value)| format!("{key} = {value}")),
    ]
}
