// SPDX-License-Identifier: Apache-2.0
//! Translations in the card: commands for them, and what completions say.

pub(in crate::pager) mod flight;
pub(in crate::pager) mod in_table;
pub(in crate::pager) mod translate;
pub(in crate::pager) mod visit;
