// SPDX-License-Identifier: Apache-2.0
//! Translations of pages: the commands of a batch, and what their completions say.

use crate::dispatch::Dispatcher;
use crate::error::{Error, Result};
use crate::pager::state::batch::{Composed, Group, Part};
use crate::pager::state::region::PageRef;
use crate::pager::state::space::Space;
use crate::protocol::desc::*;
use crate::protocol::regs::{VIA_SLOT_CTRL, VIA_SLOT_CTRL_ISOLATE_MASK};

/// How a batch ended, apart from translations, which are recorded with their pages.
#[derive(Default)]
pub(in crate::pager) struct Entered {
    /// Pages that hold bytes of another owner, because the copy failed that should have filled them.
    pub(in crate::pager) spoiled: Vec<PageRef>,
    /// Denials that the card has answered, by their index in the list.
    pub(in crate::pager) denied: Vec<usize>,
    /// The first error.
    pub(in crate::pager) error: Option<Error>,
}

impl Space {
    /// Commands that fill and map pages, and then deny accesses. From now on the card may hold the pages.
    pub(in crate::pager) fn compose(
        &mut self,
        d: &Dispatcher,
        groups: &[Group],
        denials: &[u64],
    ) -> Composed {
        let (mut commands, mut parts) = (Vec::new(), Vec::new());
        for Group { start, pages, write, copies, .. } in groups {
            let region = &self.regions[start];
            let (rights, huge, step, table) = (region.prot, region.huge(), region.page_bytes(), region.table);
            // Each page is in the TLBs as soon as it is in card memory, while the next ones are being copied. If these displace the first
            // one, which the fault is on, it comes again at the end.
            let again = pages.first().filter(|_| pages.len() as u64 > d.card.info().held(region.size));
            for (nth, &(n, place)) in pages.iter().chain(again).enumerate() {
                if let Some(copy) = copies.get(nth) {
                    commands.push(*copy);
                    parts.push(Part::Copy((*start, n)));
                }
                let mut prot = rights;
                if let Some(unclean) = self.paged(*start).and_then(|paged| paged.unclean.as_mut()) {
                    if *write && prot.write {
                        unclean.insert(n);
                    }
                    prot.write &= unclean.contains(&n);
                }
                commands.push(Command::map(start + n * step, place, prot, huge).in_table(table));
                parts.push(Part::Map((*start, n)));
            }
            for &(number, _) in pages {
                if let Some(page) = self.page(*start, number) {
                    page.mapped = true;
                    page.since = 0;
                }
            }
        }
        // Denials come last: on a page with a right that others have, only what still lacks one is denied.
        commands.extend(denials.iter().map(|&va| Command::deny(va)));
        parts.extend(denials.iter().map(|_| Part::Deny));
        Composed { commands, parts }
    }

    /// Records how a batch has ended. Each command's completion counts, however others have ended.
    pub(in crate::pager) fn note(
        &mut self,
        d: &Dispatcher,
        composed: &Composed,
        done: &[Completion],
    ) -> Result<Entered> {
        let Composed { commands, parts } = composed;
        let mut entered = Entered::default();
        for ((part, command), done) in parts.iter().zip(commands).zip(done) {
            if let (Part::Copy(at), false) = (part, done.status == Status::Ok) {
                entered.spoiled.push(*at);
                entered.error.get_or_insert_with(|| Error::Command {
                    slot: d.slot,
                    what: command.to_string(),
                    status: done.status,
                });
            }
        }
        if !entered.spoiled.is_empty() {
            // They are mapped by now: the card maps only after all earlier copies are complete, however these ended.
            d.card.write_slot(d.slot, VIA_SLOT_CTRL, VIA_SLOT_CTRL_ISOLATE_MASK)?;
        }
        let mut denial = 0;
        for (part, done) in parts.iter().zip(done) {
            match *part {
                Part::Copy(_) => {}
                Part::Map((start, number)) => {
                    if done.has(CPL_VICTIM) {
                        self.displaced(done);
                    }
                    // It may have evicted an older translation of itself.
                    if let Some(page) = self.page(start, number) {
                        page.mapped = true;
                        page.since = if done.status == Status::Ok { done.number + 1 } else { 0 };
                        page.mapped_at = done.time;
                    }
                    let in_table = self.regions.get(&start).is_some_and(|region| region.table);
                    let what = match in_table && done.status == Status::CardErr {
                        true => {
                            // What it holds cannot be trusted any more, and the card does not. See `plan`.
                            self.table_failed = true;
                            "writing the page table in card memory"
                        }
                        false => "mapping a page",
                    };
                    if let Err(error) = d.check(what, done) {
                        entered.error.get_or_insert(error);
                    }
                }
                Part::Look((start, number), run) => {
                    let Some(page) = self.page(start, number) else { continue };
                    page.accessed |= done.has(CPL_ACCESSED);
                    let used = page.accessed;
                    if let Some(paged) = self.paged(start) {
                        paged.ahead.judge(run, used);
                    }
                }
                Part::Deny => {
                    // A denied fault no longer exists if the slot was reset meanwhile.
                    entered.denied.push(denial);
                    denial += 1;
                }
            }
        }
        Ok(entered)
    }

    /// A translation left the card's TLBs; its page stays resident.
    fn displaced(&mut self, done: &Completion) {
        let Some((start, region)) = self.find(done.info) else { return };
        if region.huge() != done.has(CPL_VICTIM_HUGE) {
            return;
        }
        let number = (done.info - start) / region.page_bytes();
        if let Some(page) = self.page(start, number) {
            page.mapped = false;
            page.since = 0;
            page.accessed |= done.has(CPL_VICTIM_ACCESSED);
            page.dirty |= done.has(CPL_VICTIM_DIRTY);
        }
    }
}
