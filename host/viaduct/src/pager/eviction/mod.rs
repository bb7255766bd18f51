// SPDX-License-Identifier: Apache-2.0
//! Frames for pages, and which pages give theirs up.

pub(in crate::pager) mod frames;
pub(in crate::pager) mod overflow;
pub(in crate::pager) mod replace;
pub(in crate::pager) mod retire;
pub(in crate::pager) mod write_back;
