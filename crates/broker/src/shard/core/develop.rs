//! What only developers do: the clock, whole namespaces kept and put back, faults.
//!
//! These hold the shard up for as long as they take, which is what makes them simple: nothing changes while a
//! namespace is captured, and what is put back is one decision, written whole or not at all.

use super::{Asker, Core};
use crate::api::{Answer, Captured, Develop, Event, NewFault, Refused, Tag};
use crate::journal::image::{self, Image};
use crate::journal::record;
use crate::shard::faults::{DELAY_MAX, FAULTS_MAX, LASTS_MAX, STALL_MAX};
use crate::shard::peer::PeerId;
use crate::shard::recent::{Body, Owners};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vorrang_engine::entity::EntityPath;
use vorrang_engine::fact::{RestoredGaps, RestoredRun};
use vorrang_engine::{Command, Fact, Location, Span};
use vorrang_log::Failure;

/// Ticks that follow at once when the clock is set ahead; what is due beyond that comes with the next steps.
const TICKS_MAX: usize = 10_000;
/// Records of a run read at a time.
const READ_AT_ONCE: u32 = 2_048;
/// Why receivers end when there is another state.
const REPLACED: &str = "the namespace was reset or restored; connect again";

impl Core {
    pub(super) fn develop(&mut self, id: PeerId, tag: Tag, develop: Develop) -> Result<(), Failure> {
        let request = id.request(tag);
        let asker = Asker { id, tag, plain: false };
        let answer = match develop {
            Develop::Clock => Ok(Answer::Clock { now: self.now, ahead: self.state.clock_ahead() }),
            Develop::Advance { by } => {
                self.carry_out(&Command::Advance { request, by }, Some(asker))?;
                return self.catch_up();
            }
            Develop::Capture => {
                // What was decided in this step is read back from the disk with the rest.
                self.writer.end()?;
                self.writer.log_mut().flush()?;
                self.capture()
            }
            Develop::Restore { image } => match self.place(&image)? {
                Ok(parts) => return self.replace(&Command::Replace { request, parts }, asker),
                Err(refused) => Err(refused),
            },
            Develop::Clear { entities } => {
                let stays = |part: &Fact| !entities && matches!(part, Fact::RestoredEntity { .. });
                let parts = self.state.freeze().facts().filter(stays).collect();
                return self.replace(&Command::Replace { request, parts }, asker);
            }
            Develop::Inject(fault) => self.inject(fault).map(|fault| Answer::Faults(vec![fault])),
            Develop::Stall { lasts } if lasts > STALL_MAX => {
                let most = STALL_MAX.0 / 1_000;
                let why = format!("the broker can be held up for at most {most} seconds");
                Err(Refused::Unusable { why: Arc::from(why) })
            }
            Develop::Stall { lasts } => {
                self.stalled_until = self.now.after(lasts);
                Ok(Answer::Clock { now: self.now, ahead: self.state.clock_ahead() })
            }
            Develop::Faults => Ok(Answer::Faults(self.faults.list(self.now))),
            Develop::Mend(which) => Ok(Answer::Faults(self.faults.mend(which, self.now))),
        };
        self.answer(id, tag, answer);
        Ok(())
    }

    /// Lets happen what is due since the clock was set ahead.
    fn catch_up(&mut self) -> Result<(), Failure> {
        self.now = self.now.max(self.time(self.wall));
        self.ahead.store(self.state.clock_ahead().0, Ordering::Relaxed);
        for _ in 0..TICKS_MAX {
            if self.state.next_deadline().is_none_or(|deadline| deadline > self.now) {
                break;
            }
            self.carry_out(&Command::Tick, None)?;
        }
        Ok(())
    }

    fn inject(&mut self, fault: NewFault) -> Result<crate::api::Fault, Refused> {
        let unusable = |why: String| Err(Refused::Unusable { why: Arc::from(why) });
        let path = EntityPath { sub_queue: vorrang_engine::entity::SubQueue::Main, ..fault.entity.clone() };
        let entity = self.state.catalogue().find(&path).map(|entity| entity.id);
        let entity = entity.ok_or_else(|| Refused::NotFound { path: path.to_string().into() })?;
        let minutes = |span: Span| span.0 / 60_000;
        if self.faults.list(self.now).len() >= FAULTS_MAX {
            return unusable(format!(
                "there are {FAULTS_MAX} faults already, and no more are allowed; clear some"
            ));
        }
        if matches!(fault.kind, crate::api::FaultKind::DelaySettles(delay) if delay > DELAY_MAX) {
            return unusable(format!("a settlement can be late by at most {} minutes", minutes(DELAY_MAX)));
        }
        if fault.lasts.is_some_and(|lasts| lasts > LASTS_MAX) || fault.count == Some(0) {
            let most = minutes(LASTS_MAX);
            return unusable(format!("a fault lasts at most {most} minutes and happens at least once"));
        }
        Ok(self.faults.add(entity, fault, self.now))
    }

    /// The whole namespace, with every payload.
    fn capture(&mut self) -> Result<Answer, Refused> {
        let unusable = |error: &dyn std::fmt::Display| Refused::Unusable { why: error.to_string().into() };
        let mut image = Image { taken: self.now, ..Image::default() };
        let mut bytes = 0_usize;
        let mut run: Option<Box<RestoredRun>> = None;
        for part in self.state.freeze().facts() {
            let messages = match part {
                Fact::RestoredRun(told) => {
                    run = Some(told);
                    continue;
                }
                Fact::RestoredGaps(gaps) => match run.take() {
                    Some(run) => self.cold_messages(&run, &gaps)?,
                    None => continue,
                },
                part => vec![part],
            };
            for part in messages {
                if let Fact::RestoredMessage(message) = &part
                    && !image.payloads.contains_key(&message.location)
                {
                    let body =
                        self.stored(message.location, message.size).map_err(|error| unusable(&error))?;
                    bytes = bytes.saturating_add(body.bytes.len());
                    if bytes > image::BYTES_MAX {
                        return Err(unusable(&image::Error::TooLarge));
                    }
                    image.payloads.insert(message.location, body);
                }
                image.parts.push(part);
            }
        }
        let messages = image.messages();
        let image = image.encode().map_err(|error| unusable(&error))?;
        Ok(Answer::Captured(Captured { image: Bytes::from(image), messages }))
    }

    fn stored(&self, location: Location, size: u32) -> Result<Body, crate::shard::Unreadable> {
        self.recent.find(location).map_or_else(|| self.reader.read(location, size), |body| Ok(body.clone()))
    }

    /// The messages of a run that lies on disk, as if they were in memory: all of them, or a refusal.
    fn cold_messages(&self, run: &RestoredRun, gaps: &RestoredGaps) -> Result<Vec<Fact>, Refused> {
        let unusable = |why: String| Refused::Unusable { why: why.into() };
        let (mut position, mut messages) = (run.consumed, Vec::new());
        while position < run.count {
            let wanted = READ_AT_ONCE.min(run.count.saturating_sub(position));
            let records = self.reader.cold_records(run.run, position, wanted);
            let records = records.map_err(|error| unusable(error.to_string()))?;
            if records.is_empty() {
                let missing = run.count.saturating_sub(position);
                return Err(unusable(format!(
                    "{missing} messages on disk cannot be read; run `vorrang doctor`"
                )));
            }
            for record in records {
                if !gaps.has(position) {
                    messages.push(Fact::RestoredMessage(Box::new(run.message(&record))));
                }
                position = position.saturating_add(1);
            }
        }
        Ok(messages)
    }

    /// Writes the payloads of an image, and says what is to be put in place of what is there.
    fn place(&mut self, bytes: &Bytes) -> Result<Result<Vec<Fact>, Refused>, Failure> {
        let unusable = |why: String| Refused::Unusable { why: Arc::from(why) };
        let Image { payloads, mut parts, .. } = match Image::decode(bytes) {
            Ok(image) => image,
            Err(error) => return Ok(Err(unusable(error.to_string()))),
        };
        let pressure = self.writer.log().pressure();
        let free = pressure.ring_segments.saturating_sub(pressure.used_segments);
        let free = u64::try_from(free).unwrap_or_default().saturating_mul(pressure.segment_bytes);
        let needed = u64::try_from(bytes.len()).unwrap_or(u64::MAX).saturating_mul(2);
        if needed > free {
            let why =
                format!("the log has no room to restore {} bytes now; try again in a minute", bytes.len());
            return Ok(Err(unusable(why)));
        }
        let mut places: BTreeMap<Location, Location> = BTreeMap::new();
        for (old, body) in payloads {
            let written = record::write_payload(&body.bytes, body.assigned_id, &mut self.writer)?;
            self.writer.wrote(written);
            self.recent.keep(written.location, Owners::Several, body);
            places.insert(old, written.location);
        }
        for part in &mut parts {
            if let Fact::RestoredMessage(message) = part
                && let Some(place) = places.get(&message.location)
            {
                message.location = *place;
            }
        }
        Ok(Ok(parts))
    }

    /// Puts another state in the place of this one. Nobody's receiver or transaction outlives the old one.
    fn replace(&mut self, command: &Command, asker: Asker) -> Result<(), Failure> {
        self.carry_out(command, Some(asker))?;
        if !std::mem::take(&mut self.replaced) {
            return Ok(());
        }
        self.keys.gather(self.state.catalogue());
        self.end_grants();
        self.faults.mend(None, self.now);
        self.own.clear();
        self.cold.clear();
        self.endings.clear();
        let mut ids: Vec<PeerId> = self.peers.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let Some(peer) = self.peers.get_mut(&id) else { continue };
            peer.transactions.clear();
            let links: Vec<_> = std::mem::take(&mut peer.links).into_keys().collect();
            for link in links {
                let refused = Refused::Ended { why: REPLACED };
                self.tell_in_line(self.writer.newest(), id, Event::Detached { link, refused });
            }
        }
        // As after a restart: sessions that somebody held are free again.
        self.carry_out(&Command::Recover, None)
    }
}
