//! ActiveMQ Classic with its journal synced, on STOMP: Debian's package has no AMQP transport.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::peers::daemon::{Daemon, free_port};
use crate::peers::driver::stomp::Stomp;
use crate::peers::peer::{Ability, Clients, Facts, Layout, Peer};

const JAR: &str = "/usr/share/activemq/bin/activemq.jar";
/// As Debian starts it.
const MEMORY: [&str; 2] = ["-Xms512M", "-Xmx512M"];

pub(super) struct ActiveMq;

fn configuration(port: u16, data: &str) -> String {
    format!(
        r#"<beans xmlns="http://www.springframework.org/schema/beans" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans/spring-beans-2.0.xsd
    http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" useJmx="false" brokerName="bench" dataDirectory="{data}" schedulePeriodForDestinationPurge="0">
    <destinationPolicy><policyMap><policyEntries>
      <policyEntry queue="&gt;" prioritizedMessages="true"/>
    </policyEntries></policyMap></destinationPolicy>
    <persistenceAdapter><kahaDB directory="{data}/kahadb"/></persistenceAdapter>
    <systemUsage><systemUsage>
      <storeUsage><storeUsage limit="20 gb"/></storeUsage>
    </systemUsage></systemUsage>
    <transportConnectors>
      <transportConnector name="stomp" uri="stomp+nio://127.0.0.1:{port}?maximumConnections=12000"/>
    </transportConnectors>
  </broker>
</beans>
"#
    )
}

impl Peer for ActiveMq {
    fn name(&self) -> &'static str {
        "ActiveMQ Classic"
    }

    fn package(&self) -> Option<&'static str> {
        Some("activemq")
    }

    fn facts(&self) -> Result<Facts> {
        if !Path::new(JAR).exists() {
            bail!("package activemq is not installed");
        }
        Ok(Facts {
            name: self.name().to_owned(),
            version: format!("ActiveMQ Classic {}", super::package_version("activemq")?),
            protocol: "STOMP 1.2, persistent, receipts (Debian's package has no AMQP transport)".to_owned(),
            acknowledgement:
                "receipt: the message is in the KahaDB journal, which is synced at every write (its default)"
                    .to_owned(),
            settlement: "receipt for the last acknowledgement of a batch".to_owned(),
            synced: true,
            configuration: format!(
                "java {} -jar activemq.jar start\n{}",
                MEMORY.join(" "),
                configuration(61_613, "DIR")
            ),
        })
    }

    fn can(&self, ability: Ability) -> bool {
        matches!(ability, Ability::Priorities | Ability::Connections | Ability::Expressions)
    }

    fn start(&self, folder: &Path, _layout: Layout) -> Result<Daemon> {
        let port = free_port()?;
        let path = folder.join("activemq.xml");
        fs::write(&path, configuration(port, &folder.join("data").to_string_lossy()))?;
        let mut command = Command::new("java");
        command.args(MEMORY).args([
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            "--add-opens=java.base/java.util=ALL-UNNAMED",
            "--add-opens=java.base/java.net=ALL-UNNAMED",
            "-Dactivemq.home=/usr/share/activemq",
        ]);
        for name in ["base", "conf", "data"] {
            command.arg(format!("-Dactivemq.{name}={}", folder.display()));
        }
        command.arg("-jar").arg(JAR).arg("start").arg(format!("xbean:file:{}", path.display()));
        Daemon::start(&mut command, folder.join("log"), port, Vec::new())
    }

    fn clients(&self, port: u16, layout: Layout) -> Box<dyn Clients> {
        Box::new(Stomp { port, layout })
    }
}
