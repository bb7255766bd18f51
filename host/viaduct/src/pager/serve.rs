// SPDX-License-Identifier: Apache-2.0
//! Faults in batches.

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
            let later = match self.serve_batch(d, batch.clone()) {
                Ok(later) => later,
                Err(error) => {
                    // Those that were answered are recognised as such: they are older than their pages' translations.
                    let mut st = d.lock();
                    batch.into_iter().rev().for_each(|fault| st.faults.push_front(fault));
                    return Err(error);
                }
            };
            left = left.saturating_sub(given.saturating_sub(later.len()).max(1));
            let mut st = d.lock();
            later.into_iter().rev().for_each(|fault| st.faults.push_front(fault));
        }
        Ok(())
    }

    /// Serves faults with one batch of commands. Those that there is no room for are returned; at least one is served.
    pub(super) fn serve_batch(&mut self, d: &Dispatcher, faults: Vec<Event>) -> Result<Vec<Event>> {
        let mut plan = Plan::default();
        for fault in faults {
            self.plan(fault, &mut plan);
        }
        self.pinned.clone_from(&plan.taken);
        let served = self.carry_out(d, &mut plan);
        self.pinned.clear();
        served.map(|()| plan.later)
    }
}
