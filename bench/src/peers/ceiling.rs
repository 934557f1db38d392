//! The generator against a sink that accepts everything and does nothing: what it could send at most.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::driver::amqp_1_0::AmqpSender;
use super::peer::{Message, Sender};
use super::workload::{BODY_BYTES, WINDOW, count};
use crate::process::Process;
use crate::wire::Wire;

const TIME: Duration = Duration::from_secs(2);

/// Messages a second of one sender.
pub(crate) fn measure() -> Result<f64> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["amqp-peer", "--direction", "ingest"]).stdout(Stdio::piped());
    let (_sink, mut lines) = Process::start(&mut command)?;
    let Some(address) = lines.next().transpose()? else { bail!("the sink ended before it listened") };
    let mut sender = AmqpSender::attach(Wire::connect(&address)?, "q")?;
    let body = vec![b'x'; BODY_BYTES];
    let (mut sent, mut seen) = (0, 0);
    let began = Instant::now();
    while began.elapsed() < TIME {
        while sent - seen < u64::from(WINDOW) && sender.send(&Message { body: &body, class: 0, key: None })? {
            sent += 1;
        }
        sender.acknowledged(Duration::from_millis(50), &mut |_| seen += 1)?;
    }
    Ok(count(seen) / began.elapsed().as_secs_f64())
}
