// SPDX-License-Identifier: Apache-2.0
//! Mappings come and go; operations on ranges of addresses.

pub(in crate::pager) mod mappings;
pub(in crate::pager) mod sync;
