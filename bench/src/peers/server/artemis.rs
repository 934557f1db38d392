//! ActiveMQ Artemis on AMQP 1.0, as its own `artemis create` would set it up, with the AMQP acceptor alone.
//!
//! There is no Debian package: a distribution that somebody unpacked is used where it is. What depends on the machine
//! (the journal's type, how long it gathers writes, the heap) is not ours to choose: `artemis create` is run once, in a
//! temporary folder, and what it chose goes into the configuration of every start.

mod libaio;

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use crate::peers::daemon::{Daemon, free_port};
use crate::peers::driver::amqp_1_0::Amqp;
use crate::peers::peer::{Ability, Clients, Facts, Layout, Peer};
use crate::peers::workload::fan_out;
use libaio::Libaio;

/// What a distribution is known by, and started from.
const BOOT: &str = "lib/artemis-boot.jar";

const HOW: &str = "there is no Debian package of it: get the distribution org.apache.activemq:apache-artemis:VERSION:zip:bin from \
                   Maven Central (`mvn dependency:get -Dtransitive=false -Dartifact=…`, then `mvn dependency:copy -Dartifact=…`), \
                   unpack it, and set ARTEMIS_HOME to its folder";

/// Options that `artemis create` has beside the folder. Its questions are answered, the web console is left out.
const CREATE: [&str; 7] =
    ["--silent", "--user", "bench", "--password", "bench", "--allow-anonymous", "--no-web"];

/// What the virtual machine must allow, as in the distribution's profile.
const OPENS: [&str; 2] = ["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"];

/// The elements of `broker.xml` that `artemis create` fills in for the machine.
const TUNED: [&str; 4] = ["journal-type", "journal-buffer-timeout", "journal-max-io", "page-sync-timeout"];

#[derive(Debug, Default)]
pub(super) struct Artemis {
    setup: OnceLock<Setup>,
}

/// What is found out about a machine once, so that all starts of a run are the same.
#[derive(Debug)]
struct Setup {
    libaio: Libaio,
    tuning: Tuning,
}

/// What the distribution chooses for a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tuning {
    /// Elements of `broker.xml`, by name.
    elements: Vec<(&'static str, String)>,
    /// Options of the virtual machine: heap and collector.
    machine: Vec<String>,
}

impl Tuning {
    /// Reads it from the `broker.xml` and the `artemis.profile` of a new instance.
    fn read(broker: &str, profile: &str) -> Result<Tuning> {
        let elements: Vec<_> = TUNED
            .into_iter()
            .filter_map(|name| element(broker, name).map(|value| (name, value.to_owned())))
            .collect();
        if element(broker, "journal-type").is_none() {
            bail!("`artemis create` has written no journal-type");
        }
        let machine: Vec<String> = profile
            .lines()
            .find_map(|line| line.trim().strip_prefix("JAVA_ARGS=\"")?.strip_suffix('"'))
            .unwrap_or_default()
            .split_whitespace()
            .filter(|word| word.starts_with("-X"))
            .map(str::to_owned)
            .collect();
        if !machine.iter().any(|word| word.starts_with("-Xmx")) {
            bail!("the profile that `artemis create` has written names no heap");
        }
        Ok(Tuning { elements, machine })
    }

    /// Has the distribution make an instance, which takes some seconds: it measures the disk.
    fn measure(home: &Path, libaio: &Libaio) -> Result<Tuning> {
        let folder = tempfile::tempdir()?;
        let instance = folder.path().join("instance");
        let mut create = Command::new(home.join("bin/artemis"));
        libaio.show(&mut create);
        create.arg("create").arg(&instance).args(CREATE).stdin(Stdio::null());
        let output = create.output().context("its bin/artemis cannot be run")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ");
            bail!("`artemis create` failed ({}): {said}", output.status);
        }
        let etc = instance.join("etc");
        let read = |name: &str| fs::read_to_string(etc.join(name)).with_context(|| format!("no {name}"));
        Tuning::read(&read("broker.xml")?, &read("artemis.profile")?)
    }

    fn journal(&self) -> &str {
        self.elements.iter().find(|(name, _)| *name == "journal-type").map_or("", |(_, value)| value)
    }
}

/// The text of the first element of that name, which has no attributes.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = text.split_once(&format!("<{name}>"))?;
    behind.split_once(&format!("</{name}>")).map(|(value, _)| value.trim())
}

/// Where the distribution is: where `given` says, else where the first `artemis` of the search path belongs to one.
fn home(given: Option<&OsStr>, search: Option<&OsStr>) -> Result<PathBuf> {
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        let home = PathBuf::from(given);
        if !home.join(BOOT).is_file() {
            bail!("ARTEMIS_HOME is {}, where there is no {BOOT}", home.display());
        }
        return Ok(home);
    }
    // The script of an instance has the same name, and no distribution around it.
    std::env::split_paths(search.unwrap_or_default())
        .filter_map(|folder| fs::canonicalize(folder.join("artemis")).ok())
        .filter_map(|script| Some(script.parent()?.parent()?.to_owned()))
        .find(|home| home.join(BOOT).is_file())
        .context(HOW)
}

/// The virtual machine that the distribution's own script would take.
fn java(given: Option<&OsStr>) -> PathBuf {
    given
        .filter(|given| !given.is_empty())
        .map_or_else(|| PathBuf::from("java"), |home| Path::new(home).join("bin/java"))
}

/// The version in the name of the server's library.
fn version(home: &Path) -> Result<String> {
    fs::read_dir(home.join("lib"))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .find_map(|name| Some(name.strip_prefix("artemis-server-")?.strip_suffix(".jar")?.to_owned()))
        .context("its lib has no artemis-server")
}

/// `broker.xml`: what `artemis create` writes, less the comments, the other protocols and the accounts.
fn configuration(port: u16, tuning: &Tuning, layout: Layout) -> String {
    let mut tuned = String::new();
    for (name, value) in &tuning.elements {
        let _ = writeln!(tuned, "    <{name}>{value}</{name}>");
    }
    format!(
        r##"<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>bench</name>
    <persistence-enabled>true</persistence-enabled>
    <security-enabled>false</security-enabled>
{tuned}    <journal-datasync>true</journal-datasync>
    <journal-sync-transactional>true</journal-sync-transactional>
    <journal-sync-non-transactional>true</journal-sync-non-transactional>
    <journal-min-files>2</journal-min-files>
    <journal-pool-files>10</journal-pool-files>
    <journal-file-size>10M</journal-file-size>
    <journal-device-block-size>4096</journal-device-block-size>
    <journal-directory>data/journal</journal-directory>
    <bindings-directory>data/bindings</bindings-directory>
    <paging-directory>data/paging</paging-directory>
    <large-messages-directory>data/large-messages</large-messages-directory>
    <max-disk-usage>100</max-disk-usage>
    <acceptors>
      <acceptor name="amqp">tcp://127.0.0.1:{port}?tcpSendBufferSize=1048576;tcpReceiveBufferSize=1048576;protocols=AMQP;useEpoll=true;amqpCredits=1000;amqpLowCredits=300;amqpMinLargeMessageSize=102400;amqpDuplicateDetection=true</acceptor>
    </acceptors>
    <address-settings>
      <address-setting match="#">
        <dead-letter-address>DLQ</dead-letter-address>
        <expiry-address>ExpiryQueue</expiry-address>
        <address-full-policy>PAGE</address-full-policy>
        <page-size-bytes>10M</page-size-bytes>
        <max-size-bytes>-1</max-size-bytes>
        <max-size-messages>-1</max-size-messages>
        <max-read-page-messages>-1</max-read-page-messages>
        <max-read-page-bytes>20M</max-read-page-bytes>
      </address-setting>
    </address-settings>
    <addresses>
      <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
      <address name="ExpiryQueue"><anycast><queue name="ExpiryQueue"/></anycast></address>
{}    </addresses>
  </core>
</configuration>
"##,
        addresses(layout)
    )
}

/// The addresses of a layout with their queues.
fn addresses(layout: Layout) -> String {
    let Layout::FanOut(behind) = layout else {
        return "      <address name=\"q\"><anycast><queue name=\"q\"/></anycast></address>\n".to_owned();
    };
    let mut text = "      <address name=\"t\"><multicast>\n".to_owned();
    for number in 0..fan_out::count_of(behind) {
        let filter = fan_out::expression(number, "JMSCorrelationID");
        let _ = writeln!(text, "        <queue name=\"s{number}\"><filter string=\"{filter}\"/></queue>");
    }
    text.push_str("      </multicast></address>\n");
    text
}

fn bootstrap(broker: &Path) -> String {
    format!(
        "<broker xmlns=\"http://activemq.apache.org/schema\">\n  <jaas-security domain=\"activemq\"/>\n  \
         <server configuration=\"file:{}\"/>\n</broker>\n",
        broker.display()
    )
}

/// It does not start without the file, which need say nothing.
const MANAGEMENT: &str = "<management-context xmlns=\"http://activemq.apache.org/schema\"/>\n";

/// What it has to complain about goes to its output.
const LOGGING: &str = "\
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %m%n
";

impl Artemis {
    fn home() -> Result<PathBuf> {
        home(std::env::var_os("ARTEMIS_HOME").as_deref(), std::env::var_os("PATH").as_deref())
    }

    fn setup(&self, home: &Path) -> Result<&Setup> {
        if let Some(setup) = self.setup.get() {
            return Ok(setup);
        }
        let libaio = Libaio::find()?;
        // What it lacks now, such as Java, may be there when it is asked again.
        let tuning = Tuning::measure(home, &libaio)?;
        Ok(self.setup.get_or_init(|| Setup { libaio, tuning }))
    }
}

impl Peer for Artemis {
    fn name(&self) -> &'static str {
        "ActiveMQ Artemis"
    }

    fn package(&self) -> Option<&'static str> {
        Some(libaio::PACKAGE)
    }

    fn wants_package(&self) -> bool {
        Artemis::home().is_ok() && !libaio::is_present()
    }

    fn facts(&self) -> Result<Facts> {
        let home = Artemis::home()?;
        let version = version(&home)?;
        let tuning = &self.setup(&home)?.tuning;
        Ok(Facts {
            name: self.name().to_owned(),
            version: format!("ActiveMQ Artemis {version}"),
            protocol: "AMQP 1.0, durable messages".to_owned(),
            acknowledgement: format!(
                "accepted: the message is in the journal ({}), or in a page file once messages fill half the heap, written and synced (`fdatasync`, one for many messages)",
                tuning.journal()
            ),
            settlement: "accepted and settled by the receiver; the server confirms none (it has receiver-settle-mode `first` alone)"
                .to_owned(),
            synced: true,
            configuration: format!(
                "java {} (as `artemis create` writes them) … org.apache.activemq.artemis.boot.Artemis run\n{}",
                tuning.machine.join(" "),
                configuration(5_672, tuning, Layout::Plain)
            ),
        })
    }

    fn can(&self, ability: Ability) -> bool {
        matches!(ability, Ability::Priorities | Ability::Connections | Ability::Expressions)
    }

    fn start(&self, folder: &Path, layout: Layout) -> Result<Daemon> {
        let home = Artemis::home()?;
        let Setup { libaio, tuning } = self.setup(&home)?;
        let port = free_port()?;
        let (etc, temporary) = (folder.join("etc"), folder.join("tmp"));
        fs::create_dir_all(&etc)?;
        fs::create_dir_all(&temporary)?;
        let broker = etc.join("broker.xml");
        fs::write(&broker, configuration(port, tuning, layout))?;
        fs::write(etc.join("bootstrap.xml"), bootstrap(&broker))?;
        fs::write(etc.join("management.xml"), MANAGEMENT)?;
        fs::write(etc.join("log4j2.properties"), LOGGING)?;
        let mut command = Command::new(java(std::env::var_os("JAVA_HOME").as_deref()));
        libaio.show(&mut command);
        command.args(&tuning.machine).args(OPENS).arg("-Dlog4j2.disableJmx=true");
        let native = home.join("bin/lib").join(format!("linux-{}", std::env::consts::ARCH));
        for (name, value) in [
            ("artemis.home", home.as_path()),
            ("artemis.instance", folder),
            ("artemis.instance.etc", &etc),
            ("data.dir", &folder.join("data")),
            ("java.library.path", &native),
            ("java.io.tmpdir", &temporary),
        ] {
            command.arg(format!("-D{name}={}", value.display()));
        }
        command
            .arg("-classpath")
            .arg(home.join(BOOT))
            .args(["org.apache.activemq.artemis.boot.Artemis", "run"]);
        Daemon::start(&mut command, folder.join("log"), port, Vec::new())
    }

    fn clients(&self, port: u16, layout: Layout) -> Box<dyn Clients> {
        // A queue by its full name: the address, then the queue's own. Without security, whoever logs in may do everything.
        let subscription = |number| format!("t::s{number}");
        Box::new(Amqp::new(port, layout, subscription))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::peers::peer::FanOut;

    fn tuning() -> Tuning {
        Tuning {
            elements: vec![
                ("journal-type", "ASYNCIO".to_owned()),
                ("journal-buffer-timeout", "16000".to_owned()),
            ],
            machine: vec!["-Xmx2G".to_owned()],
        }
    }

    /// A folder with a script, and with what makes it a distribution if it is one.
    fn unpack(folder: &Path, distribution: bool) {
        for name in ["bin", "lib"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("bin/artemis"), "").unwrap();
        if distribution {
            fs::write(folder.join(BOOT), "").unwrap();
            fs::write(folder.join("lib/artemis-server-2.9.9.jar"), "").unwrap();
        }
    }

    #[test]
    fn a_distribution_is_found_where_the_variable_says_or_else_on_the_search_path() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let (distribution, instance, links) =
            (root.join("distribution"), root.join("instance"), root.join("links"));
        unpack(&distribution, true);
        unpack(&instance, false);
        fs::create_dir(&links).unwrap();
        symlink(distribution.join("bin/artemis"), links.join("artemis")).unwrap();
        let path = |folders: &[&Path]| Some(std::env::join_paths(folders).unwrap());
        let (bin, not_one) = (distribution.join("bin"), instance.join("bin"));
        let cases = [
            ("the variable", Some(&distribution), None, true),
            ("the variable, where nothing is", Some(&instance), path(&[&bin]), false),
            ("the search path", None, path(&[&root, &bin]), true),
            ("a link on the search path", None, path(&[&links]), true),
            ("an instance before it", None, path(&[&not_one, &bin]), true),
            ("an instance alone", None, path(&[&not_one]), false),
            ("no search path", None, None, false),
        ];
        for (case, given, search, found) in cases {
            let home = home(given.map(|path| path.as_os_str()), search.as_deref());
            assert_eq!(home.ok(), found.then(|| distribution.clone()), "{case}");
        }
        assert_eq!(version(&distribution).unwrap(), "2.9.9");
        assert!(version(&instance).is_err());
    }

    #[test]
    fn whoever_has_none_is_told_how_to_get_one_and_whoever_named_a_wrong_folder_which() {
        let absent = home(None, None).unwrap_err().to_string();
        assert!(absent.contains("apache-artemis") && absent.contains("ARTEMIS_HOME"), "{absent}");
        assert_eq!(
            home(Some("".as_ref()), None).unwrap_err().to_string(),
            absent,
            "an empty variable is none"
        );
        let wrong = home(Some("/nowhere".as_ref()), None).unwrap_err().to_string();
        assert_eq!(wrong, "ARTEMIS_HOME is /nowhere, where there is no lib/artemis-boot.jar");
    }

    #[test]
    fn the_virtual_machine_is_the_one_that_made_the_instance() {
        for (given, program) in [(None, "java"), (Some(""), "java"), (Some("/jdk"), "/jdk/bin/java")] {
            assert_eq!(java(given.map(OsStr::new)), Path::new(program), "{given:?}");
        }
    }

    #[test]
    fn what_the_distribution_chose_is_read_from_the_files_of_its_instance() {
        let broker = "<!-- a journal-type --> <journal-type>NIO</journal-type>\n<page-sync-timeout> 92000 </page-sync-timeout>";
        let profile = "# JAVA_ARGS=\"-Xmx1G\"\nif [ -z \"$JAVA_ARGS\" ]; then\n    JAVA_ARGS=\"-XX:+UseG1GC -Xms512M -Xmx2G -Da=b --add-opens c \"\nfi";
        let read = Tuning::read(broker, profile).unwrap();
        assert_eq!(read.journal(), "NIO");
        assert_eq!(
            read.elements,
            [("journal-type", "NIO".to_owned()), ("page-sync-timeout", "92000".to_owned())]
        );
        assert_eq!(read.machine, ["-XX:+UseG1GC", "-Xms512M", "-Xmx2G"]);
        for (case, broker, profile) in [
            ("no journal", "", profile),
            ("no profile", broker, ""),
            ("no heap", broker, "JAVA_ARGS=\"-Xss1M\""),
        ] {
            assert!(Tuning::read(broker, profile).is_err(), "{case}");
        }
    }

    #[test]
    fn every_layout_is_durable_and_synced_and_has_its_queues() {
        for layout in
            [Layout::Plain, Layout::Crowd, Layout::Priorities, Layout::FanOut(FanOut::Expressions(100))]
        {
            let text = configuration(1_234, &tuning(), layout);
            for (name, value) in [
                ("persistence-enabled", "true"),
                ("journal-type", "ASYNCIO"),
                ("journal-buffer-timeout", "16000"),
                ("journal-datasync", "true"),
                ("journal-sync-transactional", "true"),
                ("journal-sync-non-transactional", "true"),
                ("address-full-policy", "PAGE"),
            ] {
                assert_eq!(element(&text, name), Some(value), "{name} in {layout:?}");
            }
            assert!(text.contains("tcp://127.0.0.1:1234?"), "{layout:?}");
            let filters = text.matches("<filter string=\"JMSCorrelationID LIKE '%7'\"/>").count();
            let (queue, filtered) = match layout {
                Layout::FanOut(_) => ("<queue name=\"s99\">", 10),
                _ => ("<anycast><queue name=\"q\"/></anycast>", 0),
            };
            assert!(text.contains(queue), "{layout:?}");
            assert_eq!(filters, filtered, "{layout:?}");
        }
    }
}
