// SPDX-License-Identifier: Apache-2.0
//! Page faults: what they take, and how that is carried out.

pub(in crate::pager) mod carry;
pub(in crate::pager) mod decide;
pub(in crate::pager) mod parked;
pub(in crate::pager) mod plan;
pub(in crate::pager) mod reads;
pub(in crate::pager) mod rest;
pub(in crate::pager) mod sent;
pub(in crate::pager) mod serve;
pub(in crate::pager) mod sizes;
