//! Commands over TLS: to a broker whose certificate no authority of the operating system has signed.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected shall stop")]

mod support;

use support::bench::{Bench, text};

#[test]
fn a_broker_with_a_certificate_of_its_own_is_believed_only_when_told() {
    let bench = Bench::start();
    let port = |door: &str| bench.broker.door(door).rsplit_once(':').unwrap().1.to_owned();
    let http = format!("https://localhost:{}", port("https"));
    let string = format!(
        "Endpoint=sb://localhost:{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE",
        port("amqps")
    );
    let certificate = bench.folder.path().join("data/development-certificate.pem").display().to_string();
    let key = bench.folder.path().join("data/development-key.pem").display().to_string();
    let config = bench.folder.path().join("config");
    std::fs::create_dir_all(config.join("vorrang")).unwrap();
    let profile = format!(
        "[profile.own]\nconnection_string = \"{string}\"\nhttp = \"{http}\"\nca_file = \"{certificate}\"\n"
    );
    std::fs::write(config.join("vorrang/profiles.toml"), profile).unwrap();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = bench.command(arguments);
        command.env("VORRANG_CONNECTION_STRING", &string).env("VORRANG_HTTP", &http);
        command.env("XDG_CONFIG_HOME", &config).envs(variables.iter().copied());
        let output = command.output().unwrap();
        (output.status.code().unwrap(), text(&output))
    };
    let list = &["queue", "list"][..];
    let send = &["send", "q", "--body", "x"][..];
    let own = ("VORRANG_CA_FILE", certificate.as_str());
    let cases = [
        ("nobody said to believe it", list.to_vec(), vec![], 4, "--ca-file"),
        ("over AMQP neither", send.to_vec(), vec![], 4, "--ca-file"),
        ("by a variable", vec!["queue", "create", "q"], vec![own], 0, ""),
        ("by a flag", [list, &["--ca-file", &certificate]].concat(), vec![], 0, "q"),
        ("over AMQP", send.to_vec(), vec![own], 0, ""),
        ("by a profile", [list, &["--profile", "own"]].concat(), vec![], 0, "q"),
        ("a file that is not there", [list, &["--ca-file", "absent.pem"]].concat(), vec![], 2, "absent.pem"),
        ("a file without a certificate", [list, &["--ca-file", &key]].concat(), vec![], 2, "PEM"),
    ];
    for (case, arguments, variables, code, expected) in cases {
        let (found, said) = run(&arguments, &variables);
        assert_eq!(found, code, "{case}: {said}");
        assert!(said.contains(expected), "{case}: {said}");
    }
}
