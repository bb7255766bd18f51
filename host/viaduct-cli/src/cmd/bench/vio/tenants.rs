// SPDX-License-Identifier: Apache-2.0
//! Apps that share the link: the experiment of vFPIO, messages of 16 KiB from and to host memory.

use std::collections::VecDeque;

use viaduct::desc::{Command, PAGE, Place, Status};
use viaduct::{Awaited, Card, DmaBuffer, Prot, Rate, Schedule, Slot, Tag, wait_for_one};
use viaduct_build::{Manifest, Project, Scratch, run_model};
use viaduct_pci::DmaAccess;

use super::super::{Figure, PATIENCE, jain, link_limits, wrong};
use crate::card::{CardArgs, Opened};
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::fail::{Result, at};
use crate::job::{Values, set_registers};
use crate::random::Random;

/// What each tenant runs.
const APP: &str = "aes";
/// Bytes of a message.
const MESSAGE: u64 = 16 << 10;
/// Messages of a tenant that are under way. A mover works on 16 commands.
const AHEAD: u64 = 14;
/// Tenants of the experiment with priorities.
const TENANTS: usize = 3;
/// Beats of the window of host memory: the card's own, and the largest, in which all that slots can have under way fits.
const WINDOW: u64 = Card::HOST_WINDOW_BEATS;
const WIDE: u64 = 255 * 16;
/// Part of the link with which a tenant may go first, and the one to which it is limited.
const RATES: [f64; 2] = [0.5, 0.2];

/// Gain of one of three tenants over equal shares, what the others have meanwhile, and how evenly one to four share.
pub fn tenants(
    project: &Project,
    opened: &Opened,
    messages: u64,
    plots: &mut Vec<Plot>,
) -> Result<Vec<Figure>> {
    let (bench, all) = Bench::new(project, opened, messages)?;
    let slots = all.len();
    let mut figures = Vec::new();
    let mut plot = Plot::new(
        "vio-tenants",
        Form::Bars,
        "Three apps share the link",
        format!("{APP}, {messages} messages of 16 KiB each, from and to host memory"),
        ["schedule of the first app", "bytes per cycle of an app, each way"],
    );
    bench.even(&all, messages, &mut figures)?;
    bench.priority(&all[..TENANTS.min(slots)], messages, &mut figures, &mut plot)?;
    plots.push(plot);
    all.into_iter().try_for_each(Tenant::close)?;
    Ok(figures)
}

/// Slots and bits of the card with most tenants, and the board with a link that is narrower than its data path.
const MANY: (u32, u32, &str) = (8, 128, "gen2x4");

/// One to eight tenants, on a card with as many slots.
pub fn many(project: &Project, card: &CardArgs, messages: u64) -> Result<Vec<Figure>> {
    let (slots, width, profile) = MANY;
    let opened =
        CardArgs { profile: Some(profile.to_owned()), ..card.clone() }.open_of(project, slots, width)?;
    let (bench, all) = Bench::new(project, &opened, messages)?;
    let mut figures = Vec::new();
    bench.even(&all, messages, &mut figures)?;
    for figure in &mut figures {
        figure.what += &format!(", {profile}, {width} bits");
    }
    all.into_iter().try_for_each(Tenant::close)?;
    Ok(figures)
}

/// What the app does to every message: it is combined with these bytes.
fn key_stream(project: &Project, app: &Manifest, values: &Values) -> Result<Vec<u8>> {
    let folder = Scratch::new()?;
    let path = folder.path().join("zeros");
    std::fs::write(&path, vec![0; MESSAGE as usize]).map_err(at(path.display()))?;
    let output = run_model(project.root(), app, &[("in".to_owned(), path)].into(), values)?;
    Ok(output.bytes("out")?)
}

/// A slot with the app, and its data in host memory, which its moves reach over the link: there are no faults, so that the slots need nobody
/// who serves them.
struct Tenant {
    slot: Slot,
    input: DmaBuffer,
    output: DmaBuffer,
    data: Vec<u8>,
}

/// Where a tenant's input and output are in its address space.
const INPUT: u64 = 1 << 32;
const OUTPUT: u64 = 2 << 32;

/// What came of a run.
struct Ran {
    /// Cycles until the last message of each tenant had arrived in host memory.
    ends: Vec<u64>,
    /// Bytes of each way that each tenant had begun to write when the first of them was done, by the card's counters.
    moved: Vec<u64>,
}

impl Ran {
    /// Until the first tenant of all was done.
    fn first_end(&self) -> u64 {
        self.ends.iter().copied().min().unwrap_or(0)
    }

    /// Bytes per cycle of each tenant until then, each way.
    fn rates(&self) -> Vec<f64> {
        self.moved.iter().map(|bytes| *bytes as f64 / self.first_end().max(1) as f64).collect()
    }
}

impl Tenant {
    fn new(
        opened: &Opened,
        index: usize,
        image: &[u8],
        app: &Manifest,
        values: &Values,
        messages: u64,
    ) -> Result<Self> {
        let slot = opened.card.slot(index)?;
        slot.load(image)?;
        set_registers(&slot, app, values)?;
        let len = messages * MESSAGE;
        let input = opened.card.dma_buffer(len, DmaAccess::Read)?;
        let output = opened.card.dma_buffer(len, DmaAccess::Write)?;
        let data = Random(7 + 2 * index as u64).bytes(len as usize);
        input.memory().write(0, &data);
        let tenant = Self { slot, input, output, data };
        let pages = tenant.pages().map(|(va, bus, prot)| Command::map(va, Place::Host(bus), prot, false));
        finish(&tenant.slot, &pages.collect::<Vec<_>>())?;
        Ok(tenant)
    }

    /// Virtual and bus address of every page, and what it is for.
    fn pages(&self) -> impl Iterator<Item = (u64, u64, Prot)> {
        [(INPUT, &self.input, Prot::READ), (OUTPUT, &self.output, Prot::WRITE)].into_iter().flat_map(
            |(va, buffer, prot)| {
                let bus = buffer.iova();
                (0..buffer.len()).step_by(PAGE as usize).map(move |at| (va + at, bus + at, prot))
            },
        )
    }

    /// Input and output of a message.
    fn message(&self, i: u64) -> [Command; 2] {
        let at = i * MESSAGE;
        [
            Command::move_in(0, INPUT + at, MESSAGE as u32, true),
            Command::move_out(0, OUTPUT + at, MESSAGE as u32),
        ]
    }

    /// Whether all messages have become what they should.
    fn check(&self, stream: &[u8]) -> Result {
        let mut result = vec![0; self.data.len()];
        self.output.memory().read(0, &mut result);
        let expected = self.data.iter().zip(stream.iter().cycle()).map(|(byte, key)| byte ^ key);
        match result.iter().copied().eq(expected) {
            true => Ok(()),
            false => wrong(&format!("messages through {APP} in slot {}", self.slot.index())),
        }
    }

    /// Removes the translations, before their memory goes.
    fn close(self) -> Result {
        let pages = self.pages().map(|(va, _, _)| Command::unmap(va, false)).collect::<Vec<_>>();
        finish(&self.slot, &pages)?;
        Ok(self.slot.close()?)
    }
}

/// Carries out commands that need nobody to serve faults.
fn finish(slot: &Slot, commands: &[Command]) -> Result {
    super::wait(slot, &slot.submit(commands)?, &format!("translations of slot {}", slot.index()))
}

struct Bench<'a> {
    opened: &'a Opened,
    stream: Vec<u8>,
    /// What the link carries each way, together, in GB/s.
    both_ways: f64,
}

impl<'a> Bench<'a> {
    /// The app in every slot of a card.
    fn new(project: &Project, opened: &'a Opened, messages: u64) -> Result<(Self, Vec<Tenant>)> {
        let app = project.load(APP)?;
        let image = super::super::image(project, opened, &app)?;
        let values = app.register_values(super::AES)?;
        let stream = key_stream(project, &app, &values)?;
        let both_ways = link_limits(opened).iter().map(|(_, rate)| rate).sum();
        let tenants = (0..opened.card.info().slots)
            .map(|index| Tenant::new(opened, index, &image, &app, &values, messages))
            .collect::<Result<_>>()?;
        Ok((Self { opened, stream, both_ways }, tenants))
    }

    /// Sends all messages of these tenants at the same time, at most `AHEAD` of each under way, and checks them.
    fn run(&self, tenants: &[Tenant], messages: u64) -> Result<Ran> {
        for tenant in tenants {
            tenant.output.memory().fill(0, tenant.data.len(), 0);
        }
        let (_, before) = self.opened.card.counters()?;
        let begun = self.opened.card.time()?;
        let mut under_way: Vec<VecDeque<Vec<Tag>>> = Vec::new();
        for tenant in tenants {
            let ahead = (0..messages.min(AHEAD)).map(|i| Ok(tenant.slot.submit(&tenant.message(i))?));
            under_way.push(ahead.collect::<Result<_>>()?);
        }
        let (mut ends, mut arrived) = (vec![0; tenants.len()], vec![0; tenants.len()]);
        let mut moved = Vec::new();
        loop {
            // The oldest message of each tenant that has one.
            let oldest = under_way.iter().zip(tenants).enumerate().filter_map(|(index, (tags, tenant))| {
                tags.front().map(|tags| (index, (&tenant.slot, Awaited::Commands(tags))))
            });
            let (indices, awaited): (Vec<_>, Vec<_>) = oldest.unzip();
            if awaited.is_empty() {
                break;
            }
            let Some(found) = wait_for_one(&awaited, PATIENCE)? else {
                return wrong("messages that do not arrive");
            };
            let index = indices[found];
            let tenant = &tenants[index];
            let tags = under_way[index].pop_front().unwrap_or_default();
            let done = tenant.slot.wait(&tags)?;
            if let Some(bad) = done.iter().find(|completion| completion.status != Status::Ok) {
                return wrong(&format!("a move of slot {}: {:?}", tenant.slot.index(), bad.status));
            }
            ends[index] = done.last().map_or(0, |output| output.time - begun);
            arrived[index] += 1;
            let next = arrived[index] + under_way[index].len() as u64;
            if next < messages {
                under_way[index].push_back(tenant.slot.submit(&tenant.message(next))?);
            } else if arrived[index] == messages && moved.is_empty() {
                let after = self.opened.card.counters()?.1;
                let beats =
                    |tenant: &Tenant| after[tenant.slot.index()].since(&before[tenant.slot.index()]).host_wr;
                moved = tenants.iter().map(|tenant| u64::from(beats(tenant)) * self.beat()).collect();
            }
        }
        let after = self.opened.card.counters()?.1;
        for tenant in tenants {
            tenant.check(&self.stream)?;
            // What the card has charged to the slot is what it was given and what came back, to the beat.
            let index = tenant.slot.index();
            let counted = after[index].since(&before[index]);
            let beats = tenant.data.len() as u64 / self.beat();
            if [counted.host_rd, counted.host_wr].map(u64::from) != [beats; 2] {
                return wrong(&format!("{counted:?} of slot {index}, which moved {beats} beats each way"));
            }
        }
        Ok(Ran { ends, moved })
    }

    /// Bytes of a beat.
    fn beat(&self) -> u64 {
        self.opened.card.info().data_bytes as u64
    }

    /// Bytes per cycle that the link carries in its slower direction.
    fn limit(&self) -> f64 {
        let clock = f64::from(self.opened.card.info().clock_khz) / 1e6;
        link_limits(self.opened).iter().map(|(_, rate)| rate / clock).fold(f64::INFINITY, f64::min)
    }

    /// One tenant, two, and so on to all, with equal weights.
    fn even(&self, all: &[Tenant], messages: u64, figures: &mut Vec<Figure>) -> Result {
        for count in 1..=all.len() {
            let ran = self.run(&all[..count], messages)?;
            let rates = ran.rates();
            let sum: f64 = rates.iter().sum();
            let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let most = rates.iter().copied().fold(0.0, f64::max);
            figures.push(Figure {
                what: format!("{count} × {APP}, {messages} messages of 16 KiB each"),
                value: sum,
                unit: "B/cycle",
                note: format!(
                    "each way until the first is done, {:.3} of the link's payload limit; {least:.2} to {most:.2} each, Jain's index {:.4}",
                    sum / self.limit(),
                    jain(&rates),
                ),
            });
        }
        Ok(())
    }

    /// The first tenant with each schedule, beside two with the usual one, and alone.
    fn priority(
        &self,
        tenants: &[Tenant],
        messages: u64,
        figures: &mut Vec<Figure>,
        plot: &mut Plot,
    ) -> Result {
        let Some((preferred, _)) = tenants.split_first() else { return Ok(()) };
        let first = Schedule { first: true, ..Schedule::default() };
        let rate = |part: f64| {
            Some(Rate { bytes_per_second: (part * self.both_ways * 1e9) as u64, burst: 16 << 10 })
        };
        let weight = |weight| Schedule { weight, ..Schedule::default() };
        let [ahead, limit] = RATES;
        let schedules = [
            ("equal", "equal weights".to_owned(), weight(1), WINDOW),
            ("weight 4", "weight 4".to_owned(), weight(4), WINDOW),
            ("4, no window", "weight 4, a window of 4080 beats".to_owned(), weight(4), WIDE),
            ("weight 15", "weight 15".to_owned(), weight(Slot::MAX_WEIGHT), WINDOW),
            ("first", "priority".to_owned(), first, WINDOW),
            ("first, no window", "priority, a window of 4080 beats".to_owned(), first, WIDE),
            (
                "first, 50 %",
                format!("priority for {ahead} of the link"),
                Schedule { rate: rate(ahead), ..first },
                WINDOW,
            ),
            (
                "limit 20 %",
                format!("a limit of {limit} of the link"),
                Schedule { rate: rate(limit), limit: true, ..weight(1) },
                WINDOW,
            ),
        ];
        let (mut equal, mut alone) = (0, 0);
        for (label, name, schedule, window) in schedules {
            preferred.slot.set_schedule(&schedule)?;
            self.opened.card.set_host_window(window * self.beat())?;
            let ran = self.run(&tenants[..1], messages)?.ends[0];
            let shared = self.run(tenants, messages)?;
            preferred.slot.set_schedule(&Schedule::default())?;
            self.opened.card.set_host_window(WINDOW * self.beat())?;
            let end = shared.ends[0];
            if equal == 0 {
                (equal, alone) = (end, ran);
            }
            let rates = shared.rates();
            let least = rates[1..].iter().copied().fold(f64::INFINITY, f64::min);
            let sum: f64 = rates.iter().sum();
            plot.add(Kind::Ours, "the first app", label, 0.0, rates[0]);
            plot.add(Kind::Rival, "each of the others", label, 0.0, least);
            figures.push(Figure {
                what: format!("{} × {APP}, the first with {name}", tenants.len()),
                value: equal as f64 / end as f64,
                unit: "times",
                note: format!(
                    "as fast as with equal weights: {:.2} B/cycle each way, {:.3} of all; each of the others {least:.2}, {:.3}; alone {:.4} of alone with equal weights",
                    rates[0],
                    rates[0] / sum,
                    least / sum,
                    alone as f64 / ran as f64,
                ),
            });
        }
        Ok(())
    }
}
