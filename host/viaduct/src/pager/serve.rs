// SPDX-License-Identifier: Apache-2.0
//! Faults in batches.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::pager::plan::Plan;
use crate::pager::space::Space;
use crate::protocol::desc::Event;
use crate::slot::dispatch::Dispatcher;

/// Faults taken together.
const FAULTS: usize = 256;

impl Space {
    /// Serves the pending faults, as many as possible at once. An app may fault again immediately and for ever: the caller checks the
    /// time.
    pub fn serve(&mut self, d: &Dispatcher) -> Result<()> {
        let mut left = d.lock().faults.len();
        while left > 0 {
            let batch: Vec<Event> = {
                let mut st = d.lock();
                let count = st.faults.len().min(left).min(FAULTS);
                st.faults.drain(..count).collect()
            };
            let given = batch.len();
            let (rest, served) = self.serve_batch(d, &batch);
            let answered = given - rest.len();
            self.stats.faults += answered as u64;
            left = left.saturating_sub(answered.max(1));
            let mut st = d.lock();
            rest.into_iter().rev().for_each(|fault| st.faults.push_front(fault));
            served?;
        }
        Ok(())
    }

    /// Serves faults with one batch of commands. Returns those that are not answered, in their order: there was no room for them, or
    /// something failed. At least one is answered unless something failed.
    fn serve_batch(&mut self, d: &Dispatcher, faults: &[Event]) -> (Vec<Event>, Result<()>) {
        let mut plan = Plan::default();
        for fault in faults.iter().copied().enumerate() {
            self.plan(fault, &mut plan);
        }
        self.pinned.clone_from(&plan.taken);
        let mut denied = BTreeSet::new();
        let served = self.carry_out(d, &mut plan, &mut denied);
        self.pinned.clear();
        let rest = match &served {
            Ok(()) => {
                plan.later.sort_unstable_by_key(|&(number, _)| number);
                plan.later.into_iter().map(|(_, fault)| fault).collect()
            }
            // Those whose pages have been mapped are recognised as such: they are older than their pages' translations.
            Err(_) => {
                let left = faults.iter().enumerate().filter(|(number, _)| !denied.contains(number));
                left.map(|(_, fault)| *fault).collect()
            }
        };
        (rest, served)
    }
}
