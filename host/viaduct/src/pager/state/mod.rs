// SPDX-License-Identifier: Apache-2.0
//! The state: the mappings of a slot, their pages, and what is under way for them.

pub(in crate::pager) mod advice;
pub(in crate::pager) mod ahead;
pub(in crate::pager) mod batch;
pub(in crate::pager) mod budget;
pub(in crate::pager) mod clock;
pub(in crate::pager) mod load;
pub(in crate::pager) mod passed;
pub(in crate::pager) mod region;
pub(in crate::pager) mod space;
pub(in crate::pager) mod staging;
pub(in crate::pager) mod stats;
pub(in crate::pager) mod store;
pub(in crate::pager) mod table;
