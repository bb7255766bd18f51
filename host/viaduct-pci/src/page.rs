// SPDX-License-Identifier: Apache-2.0
//! Pages of host memory.

/// Bytes in a page; mappings begin and end on page boundaries.
pub const PAGE_SIZE: usize = 4096;
