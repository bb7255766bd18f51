// SPDX-License-Identifier: Apache-2.0
//! Faults, as they come.

use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::faults::plan::Plan;
use crate::pager::state::space::Space;
use crate::protocol::desc::Event;

/// Faults taken together.
const FAULTS: usize = 256;

impl Space {
    /// Serves the pending faults, as many as possible at once: commands for them are under way when this returns. An app may fault again
    /// immediately and for ever: the caller checks the time.
    pub fn serve(&mut self, d: &Dispatcher) -> Result<()> {
        self.starved = false;
        self.land(d);
        self.take_in(d);
        self.look_after(d)?;
        self.retire(d)?;
        self.unpark(d);
        let mut left = d.lock().faults.len();
        // Without room, faults wait for the end of something, but nobody else waits for that.
        while left > 0 && self.can_launch() {
            let batch: Vec<Event> = {
                let mut st = d.lock();
                let count = st.faults.len().min(left).min(FAULTS);
                st.faults.drain(..count).collect()
            };
            let given = batch.len();
            if !self.service_time.is_zero() {
                d.card.pci().charge(self.service_time * given as u32);
            }
            let (rest, served) = self.serve_batch(d, &batch);
            let taken = given - rest.len();
            left = left.saturating_sub(taken);
            {
                let mut st = d.lock();
                rest.into_iter().rev().for_each(|fault| st.faults.push_front(fault));
            }
            served?;
            self.look_after(d)?;
            if taken == 0 {
                self.starved = !self.any_under_way() && self.is_writing();
                break;
            }
        }
        self.note_parked(d);
        self.drop_passed(d)?;
        self.send_complete(d)?;
        self.retire(d)?;
        self.load_rest(d);
        self.watch_all(d, left);
        Ok(())
    }

    /// Whether faults are left for which there are frames once pages have been written.
    pub fn is_starved(&self) -> bool {
        self.starved
    }

    /// Serves faults with one batch of commands, and reads that are begun. Returns those for which there was no room, in their order; if
    /// nothing is under way, at least one is served.
    fn serve_batch(&mut self, d: &Dispatcher, faults: &[Event]) -> (Vec<Event>, Result<()>) {
        if let Err(error) = self.choose_sizes(d, faults) {
            return (faults.to_vec(), Err(error));
        }
        let alone = faults.len() == 1 && self.batches.is_empty() && self.reads.is_empty();
        let mut plan = Plan { alone, ..Plan::default() };
        for fault in faults.iter().copied().enumerate() {
            self.plan(fault, &mut plan);
        }
        self.pinned.extend(&plan.taken);
        let served = self.carry_out(d, &mut plan, faults);
        for at in &plan.taken {
            if !self.batches.iter().any(|batch| batch.taken.contains(at)) {
                self.pinned.remove(at);
            }
        }
        let rest = match &served {
            Ok(()) => {
                plan.later.sort_unstable_by_key(|&(number, _)| number);
                plan.later.into_iter().map(|(_, fault)| fault).collect()
            }
            Err(_) => {
                let left = faults.iter().enumerate().filter(|(number, _)| !plan.away.contains(number));
                left.map(|(_, fault)| *fault).collect()
            }
        };
        (rest, served)
    }
}
