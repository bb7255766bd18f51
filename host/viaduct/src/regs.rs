// SPDX-License-Identifier: Apache-2.0
//! Registers of a card. Made by tools/gen_regs.py from rtl/regs/viaduct.rdl: do not edit.
//!
//! Offsets of registers are relative to their block; that of slot `s` lies at `BASE + s * STRIDE` in its `BAR`,
//! that of function `f`, 1 to 6, at `BASE + (f - 1) * STRIDE`.

/// Card: BAR.
pub const VIA_CARD_BAR: u32 = 0;
/// Card: offset in its BAR.
pub const VIA_CARD_BASE: u64 = 0x00;
/// Magic number.
pub const VIA_CARD_ID: u64 = 0x00;
/// Value of `ID`.
pub const VIA_CARD_ID_VALUE_RESET: u32 = 0x5649_4144;
/// Version of this register map.
pub const VIA_CARD_VERSION: u64 = 0x04;
/// Grows with each compatible addition. Lowest bit.
pub const VIA_CARD_VERSION_MINOR_LSB: u32 = 0;
/// Grows with each compatible addition. Mask in place.
pub const VIA_CARD_VERSION_MINOR_MASK: u32 = 0xffff;
/// Differs if software written for another value cannot drive the card. Lowest bit.
pub const VIA_CARD_VERSION_MAJOR_LSB: u32 = 16;
/// Differs if software written for another value cannot drive the card. Mask in place.
pub const VIA_CARD_VERSION_MAJOR_MASK: u32 = 0xffff_0000;
/// Geometry.
pub const VIA_CARD_GEOMETRY: u64 = 0x08;
/// Slots. Lowest bit.
pub const VIA_CARD_GEOMETRY_SLOTS_LSB: u32 = 0;
/// Slots. Mask in place.
pub const VIA_CARD_GEOMETRY_SLOTS_MASK: u32 = 0xff;
/// DRAM channels. Lowest bit.
pub const VIA_CARD_GEOMETRY_CHANNELS_LSB: u32 = 8;
/// DRAM channels. Mask in place.
pub const VIA_CARD_GEOMETRY_CHANNELS_MASK: u32 = 0xff00;
/// Input streams of a slot, and output streams of a slot. Lowest bit.
pub const VIA_CARD_GEOMETRY_STREAMS_LSB: u32 = 16;
/// Input streams of a slot, and output streams of a slot. Mask in place.
pub const VIA_CARD_GEOMETRY_STREAMS_MASK: u32 = 0x00ff_0000;
/// Base-2 logarithm of the data path's width in bytes: 3 to 6. Lowest bit.
pub const VIA_CARD_GEOMETRY_DATA_LOG2_LSB: u32 = 24;
/// Base-2 logarithm of the data path's width in bytes: 3 to 6. Mask in place.
pub const VIA_CARD_GEOMETRY_DATA_LOG2_MASK: u32 = 0xff00_0000;
/// Clock.
pub const VIA_CARD_CLOCK_KHZ: u64 = 0x0c;
/// Time, low half.
pub const VIA_CARD_TIME_LO: u64 = 0x10;
/// Time, high half.
pub const VIA_CARD_TIME_HI: u64 = 0x14;
/// DRAM size.
pub const VIA_CARD_CHAN_MIB: u64 = 0x18;
/// Scratch.
pub const VIA_CARD_SCRATCH: u64 = 0x1c;
/// Translations of 4 KiB pages.
pub const VIA_CARD_TLB_PAGE: u64 = 0x20;
/// Ways. Lowest bit.
pub const VIA_CARD_TLB_PAGE_WAYS_LSB: u32 = 0;
/// Ways. Mask in place.
pub const VIA_CARD_TLB_PAGE_WAYS_MASK: u32 = 0xffff;
/// Base-2 logarithm of the number of sets a slot has. Lowest bit.
pub const VIA_CARD_TLB_PAGE_SETS_LOG2_LSB: u32 = 16;
/// Base-2 logarithm of the number of sets a slot has. Mask in place.
pub const VIA_CARD_TLB_PAGE_SETS_LOG2_MASK: u32 = 0xffff_0000;
/// Translations of 2 MiB pages.
pub const VIA_CARD_TLB_HUGE: u64 = 0x24;
/// Ways. Lowest bit.
pub const VIA_CARD_TLB_HUGE_WAYS_LSB: u32 = 0;
/// Ways. Mask in place.
pub const VIA_CARD_TLB_HUGE_WAYS_MASK: u32 = 0xffff;
/// Base-2 logarithm of the number of sets a slot has. Lowest bit.
pub const VIA_CARD_TLB_HUGE_SETS_LOG2_LSB: u32 = 16;
/// Base-2 logarithm of the number of sets a slot has. Mask in place.
pub const VIA_CARD_TLB_HUGE_SETS_LOG2_MASK: u32 = 0xffff_0000;
/// Status of the card.
pub const VIA_CARD_STATUS: u64 = 0x28;
/// Nothing was in flight in the shell when this read arrived. Lowest bit.
pub const VIA_CARD_STATUS_QUIET_LSB: u32 = 0;
/// Nothing was in flight in the shell when this read arrived. Mask in place.
pub const VIA_CARD_STATUS_QUIET_MASK: u32 = 0x01;
/// Bit s: slot s holds an app. Lowest bit.
pub const VIA_CARD_STATUS_LOADED_LSB: u32 = 16;
/// Bit s: slot s holds an app. Mask in place.
pub const VIA_CARD_STATUS_LOADED_MASK: u32 = 0xffff_0000;
/// Loading of an app image: control.
pub const VIA_CARD_ICAP_CTRL: u64 = 0x40;
/// Slot that is loaded. Give it in the same write as `START`. Lowest bit.
pub const VIA_CARD_ICAP_CTRL_SLOT_LSB: u32 = 0;
/// Slot that is loaded. Give it in the same write as `START`. Mask in place.
pub const VIA_CARD_ICAP_CTRL_SLOT_MASK: u32 = 0x0f;
/// Writing 1 starts an image for the slot in `SLOT` and drops what is left of an image not ended. Lowest bit.
pub const VIA_CARD_ICAP_CTRL_START_LSB: u32 = 8;
/// Writing 1 starts an image for the slot in `SLOT` and drops what is left of an image not ended. Mask in place.
pub const VIA_CARD_ICAP_CTRL_START_MASK: u32 = 0x100;
/// Writing 1 ends the image: acted upon once every word written before has been taken. Lowest bit.
pub const VIA_CARD_ICAP_CTRL_END_LSB: u32 = 9;
/// Writing 1 ends the image: acted upon once every word written before has been taken. Mask in place.
pub const VIA_CARD_ICAP_CTRL_END_MASK: u32 = 0x200;
/// Loading of an app image: data.
pub const VIA_CARD_ICAP_DATA: u64 = 0x44;
/// Loading of an app image: status.
pub const VIA_CARD_ICAP_STATUS: u64 = 0x48;
/// An image was started and is not done. Lowest bit.
pub const VIA_CARD_ICAP_STATUS_BUSY_LSB: u32 = 0;
/// An image was started and is not done. Mask in place.
pub const VIA_CARD_ICAP_STATUS_BUSY_MASK: u32 = 0x01;
/// The configuration logic has finished with the image. Lowest bit.
pub const VIA_CARD_ICAP_STATUS_DONE_LSB: u32 = 1;
/// The configuration logic has finished with the image. Mask in place.
pub const VIA_CARD_ICAP_STATUS_DONE_MASK: u32 = 0x02;
/// A word of this image was lost: write it again from `START`. Lowest bit.
pub const VIA_CARD_ICAP_STATUS_LOST_LSB: u32 = 2;
/// A word of this image was lost: write it again from `START`. Mask in place.
pub const VIA_CARD_ICAP_STATUS_LOST_MASK: u32 = 0x04;
/// Result of the last image, valid with `DONE`: 0 = loaded, otherwise the reason of the configuration logic. Lowest bit.
pub const VIA_CARD_ICAP_STATUS_CODE_LSB: u32 = 8;
/// Result of the last image, valid with `DONE`: 0 = loaded, otherwise the reason of the configuration logic. Mask in place.
pub const VIA_CARD_ICAP_STATUS_CODE_MASK: u32 = 0xff00;
/// Slot: BAR.
pub const VIA_SLOT_BAR: u32 = 0;
/// Slot of slot 0: offset in its BAR.
pub const VIA_SLOT_BASE: u64 = 0x0001_0000;
/// Slot: from one slot to the next.
pub const VIA_SLOT_STRIDE: u64 = 0x1000;
/// Control.
pub const VIA_SLOT_CTRL: u64 = 0x00;
/// The slot may run. Lowest bit.
pub const VIA_SLOT_CTRL_RUN_LSB: u32 = 0;
/// The slot may run. Mask in place.
pub const VIA_SLOT_CTRL_RUN_MASK: u32 = 0x01;
/// Accept nothing new from the app; let what is in flight finish (see `STATUS.QUIET`). Lowest bit.
pub const VIA_SLOT_CTRL_QUIESCE_LSB: u32 = 1;
/// Accept nothing new from the app; let what is in flight finish (see `STATUS.QUIET`). Mask in place.
pub const VIA_SLOT_CTRL_QUIESCE_MASK: u32 = 0x02;
/// Hold the app in reset. Implies `ISOLATE`. Lowest bit.
pub const VIA_SLOT_CTRL_RESET_LSB: u32 = 2;
/// Hold the app in reset. Implies `ISOLATE`. Mask in place.
pub const VIA_SLOT_CTRL_RESET_MASK: u32 = 0x04;
/// Cut the slot off: what the app sends is dropped, what is owed to it is answered. Lowest bit.
pub const VIA_SLOT_CTRL_ISOLATE_LSB: u32 = 3;
/// Cut the slot off: what the app sends is dropped, what is owed to it is answered. Mask in place.
pub const VIA_SLOT_CTRL_ISOLATE_MASK: u32 = 0x08;
/// Status.
pub const VIA_SLOT_STATUS: u64 = 0x04;
/// An app is in the slot. Lowest bit.
pub const VIA_SLOT_STATUS_LOADED_LSB: u32 = 0;
/// An app is in the slot. Mask in place.
pub const VIA_SLOT_STATUS_LOADED_MASK: u32 = 0x01;
/// Nothing of this slot is in flight. Lowest bit.
pub const VIA_SLOT_STATUS_QUIET_LSB: u32 = 1;
/// Nothing of this slot is in flight. Mask in place.
pub const VIA_SLOT_STATUS_QUIET_MASK: u32 = 0x02;
/// The app says that it computes. Lowest bit.
pub const VIA_SLOT_STATUS_BUSY_LSB: u32 = 2;
/// The app says that it computes. Mask in place.
pub const VIA_SLOT_STATUS_BUSY_MASK: u32 = 0x04;
/// The slot is cut off, by its guard or by the host. Lowest bit.
pub const VIA_SLOT_STATUS_ISOLATED_LSB: u32 = 3;
/// The slot is cut off, by its guard or by the host. Mask in place.
pub const VIA_SLOT_STATUS_ISOLATED_MASK: u32 = 0x08;
/// Why the slot was isolated (an event code), valid with `ISOLATED`. Lowest bit.
pub const VIA_SLOT_STATUS_CAUSE_LSB: u32 = 8;
/// Why the slot was isolated (an event code), valid with `ISOLATED`. Mask in place.
pub const VIA_SLOT_STATUS_CAUSE_MASK: u32 = 0xff00;
/// Status of the rings.
pub const VIA_SLOT_RING_STATUS: u64 = 0x08;
/// The command ring is in use. Lowest bit.
pub const VIA_SLOT_RING_STATUS_CMD_ON_LSB: u32 = 0;
/// The command ring is in use. Mask in place.
pub const VIA_SLOT_RING_STATUS_CMD_ON_MASK: u32 = 0x01;
/// The completion ring is in use. Lowest bit.
pub const VIA_SLOT_RING_STATUS_CPL_ON_LSB: u32 = 1;
/// The completion ring is in use. Mask in place.
pub const VIA_SLOT_RING_STATUS_CPL_ON_MASK: u32 = 0x02;
/// The event ring is in use. Lowest bit.
pub const VIA_SLOT_RING_STATUS_EVT_ON_LSB: u32 = 2;
/// The event ring is in use. Mask in place.
pub const VIA_SLOT_RING_STATUS_EVT_ON_MASK: u32 = 0x04;
/// `CMD_TAIL` was set more than a ring's size ahead of `CMD_HEAD`. Lowest bit.
pub const VIA_SLOT_RING_STATUS_CMD_TAIL_ERR_LSB: u32 = 8;
/// `CMD_TAIL` was set more than a ring's size ahead of `CMD_HEAD`. Mask in place.
pub const VIA_SLOT_RING_STATUS_CMD_TAIL_ERR_MASK: u32 = 0x100;
/// The command ring could not be read. Lowest bit.
pub const VIA_SLOT_RING_STATUS_CMD_BUS_ERR_LSB: u32 = 9;
/// The command ring could not be read. Mask in place.
pub const VIA_SLOT_RING_STATUS_CMD_BUS_ERR_MASK: u32 = 0x200;
/// The completion ring could not be written; completions are dropped and no further command is fetched. Lowest bit.
pub const VIA_SLOT_RING_STATUS_CPL_ERR_LSB: u32 = 10;
/// The completion ring could not be written; completions are dropped and no further command is fetched. Mask in place.
pub const VIA_SLOT_RING_STATUS_CPL_ERR_MASK: u32 = 0x400;
/// The event ring could not be written; events are dropped. Lowest bit.
pub const VIA_SLOT_RING_STATUS_EVT_ERR_LSB: u32 = 11;
/// The event ring could not be written; events are dropped. Mask in place.
pub const VIA_SLOT_RING_STATUS_EVT_ERR_MASK: u32 = 0x800;
/// Ring base, low half.
pub const VIA_SLOT_CMD_BASE_LO: u64 = 0x10;
/// Bus address, bits 31:12. A ring is aligned to 4 KiB. Lowest bit.
pub const VIA_SLOT_CMD_BASE_LO_ADDR_LSB: u32 = 12;
/// Bus address, bits 31:12. A ring is aligned to 4 KiB. Mask in place.
pub const VIA_SLOT_CMD_BASE_LO_ADDR_MASK: u32 = 0xffff_f000;
/// Ring base, high half.
pub const VIA_SLOT_CMD_BASE_HI: u64 = 0x14;
/// Ring configuration.
pub const VIA_SLOT_CMD_CFG: u64 = 0x18;
/// Base-2 logarithm of the number of entries: 4 to 15. Less counts as 4. Lowest bit.
pub const VIA_SLOT_CMD_CFG_SIZE_LOG2_LSB: u32 = 0;
/// Base-2 logarithm of the number of entries: 4 to 15. Less counts as 4. Mask in place.
pub const VIA_SLOT_CMD_CFG_SIZE_LOG2_MASK: u32 = 0x0f;
/// A rising edge sets the card's index, and a low level the doorbell, to 0. Lowest bit.
pub const VIA_SLOT_CMD_CFG_ENABLE_LSB: u32 = 31;
/// A rising edge sets the card's index, and a low level the doorbell, to 0. Mask in place.
pub const VIA_SLOT_CMD_CFG_ENABLE_MASK: u32 = 0x8000_0000;
/// Command ring: fetched.
pub const VIA_SLOT_CMD_HEAD: u64 = 0x1c;
/// Index up to which commands have been fetched: their entries may be written again. Lowest bit.
pub const VIA_SLOT_CMD_HEAD_INDEX_LSB: u32 = 0;
/// Index up to which commands have been fetched: their entries may be written again. Mask in place.
pub const VIA_SLOT_CMD_HEAD_INDEX_MASK: u32 = 0xffff;
/// Ring base, low half.
pub const VIA_SLOT_CPL_BASE_LO: u64 = 0x20;
/// Bus address, bits 31:12. A ring is aligned to 4 KiB. Lowest bit.
pub const VIA_SLOT_CPL_BASE_LO_ADDR_LSB: u32 = 12;
/// Bus address, bits 31:12. A ring is aligned to 4 KiB. Mask in place.
pub const VIA_SLOT_CPL_BASE_LO_ADDR_MASK: u32 = 0xffff_f000;
/// Ring base, high half.
pub const VIA_SLOT_CPL_BASE_HI: u64 = 0x24;
/// Ring configuration.
pub const VIA_SLOT_CPL_CFG: u64 = 0x28;
/// Base-2 logarithm of the number of entries: 4 to 15. Less counts as 4. Lowest bit.
pub const VIA_SLOT_CPL_CFG_SIZE_LOG2_LSB: u32 = 0;
/// Base-2 logarithm of the number of entries: 4 to 15. Less counts as 4. Mask in place.
pub const VIA_SLOT_CPL_CFG_SIZE_LOG2_MASK: u32 = 0x0f;
/// A rising edge sets the card's index, and a low level the doorbell, to 0. Lowest bit.
pub const VIA_SLOT_CPL_CFG_ENABLE_LSB: u32 = 31;
/// A rising edge sets the card's index, and a low level the doorbell, to 0. Mask in place.
pub const VIA_SLOT_CPL_CFG_ENABLE_MASK: u32 = 0x8000_0000;
/// Completion ring: written.
pub const VIA_SLOT_CPL_TAIL: u64 = 0x2c;
/// Index up to which completions are in host memory. Lowest bit.
pub const VIA_SLOT_CPL_TAIL_INDEX_LSB: u32 = 0;
/// Index up to which completions are in host memory. Mask in place.
pub const VIA_SLOT_CPL_TAIL_INDEX_MASK: u32 = 0xffff;
/// Ring base, low half.
pub const VIA_SLOT_EVT_BASE_LO: u64 = 0x30;
/// Bus address, bits 31:12. A ring is aligned to 4 KiB. Lowest bit.
pub const VIA_SLOT_EVT_BASE_LO_ADDR_LSB: u32 = 12;
/// Bus address, bits 31:12. A ring is aligned to 4 KiB. Mask in place.
pub const VIA_SLOT_EVT_BASE_LO_ADDR_MASK: u32 = 0xffff_f000;
/// Ring base, high half.
pub const VIA_SLOT_EVT_BASE_HI: u64 = 0x34;
/// Ring configuration.
pub const VIA_SLOT_EVT_CFG: u64 = 0x38;
/// Base-2 logarithm of the number of entries: 4 to 15. Less counts as 4. Lowest bit.
pub const VIA_SLOT_EVT_CFG_SIZE_LOG2_LSB: u32 = 0;
/// Base-2 logarithm of the number of entries: 4 to 15. Less counts as 4. Mask in place.
pub const VIA_SLOT_EVT_CFG_SIZE_LOG2_MASK: u32 = 0x0f;
/// A rising edge sets the card's index, and a low level the doorbell, to 0. Lowest bit.
pub const VIA_SLOT_EVT_CFG_ENABLE_LSB: u32 = 31;
/// A rising edge sets the card's index, and a low level the doorbell, to 0. Mask in place.
pub const VIA_SLOT_EVT_CFG_ENABLE_MASK: u32 = 0x8000_0000;
/// Event ring: written.
pub const VIA_SLOT_EVT_TAIL: u64 = 0x3c;
/// Index up to which events are in host memory. Lowest bit.
pub const VIA_SLOT_EVT_TAIL_INDEX_LSB: u32 = 0;
/// Index up to which events are in host memory. Mask in place.
pub const VIA_SLOT_EVT_TAIL_INDEX_MASK: u32 = 0xffff;
/// Read bursts translated.
pub const VIA_SLOT_RD_TRANS: u64 = 0x80;
/// Write bursts translated.
pub const VIA_SLOT_WR_TRANS: u64 = 0x84;
/// Read bursts that found no translation.
pub const VIA_SLOT_RD_MISS: u64 = 0x88;
/// Write bursts that found no translation.
pub const VIA_SLOT_WR_MISS: u64 = 0x8c;
/// Beats handed to the app's input streams.
pub const VIA_SLOT_BEATS_IN: u64 = 0x90;
/// Beats taken from the app's output streams.
pub const VIA_SLOT_BEATS_OUT: u64 = 0x94;
/// Beats read through the app's memory port.
pub const VIA_SLOT_RD_BEATS: u64 = 0x98;
/// Beats written through the app's memory port.
pub const VIA_SLOT_WR_BEATS: u64 = 0x9c;
/// App registers: BAR.
pub const VIA_APP_BAR: u32 = 0;
/// App registers of slot 0: offset in its BAR.
pub const VIA_APP_BASE: u64 = 0x0002_0000;
/// App registers: from one slot to the next.
pub const VIA_APP_STRIDE: u64 = 0x1000;
/// App registers: bytes.
pub const VIA_APP_SIZE: u64 = 0x1000;
/// PCI function: BAR.
pub const VIA_FN_BAR: u32 = 0;
/// PCI function 1: offset in its BAR.
pub const VIA_FN_BASE: u64 = 0x0003_0100;
/// PCI function: from one function to the next.
pub const VIA_FN_STRIDE: u64 = 0x100;
/// Control.
pub const VIA_FN_CTRL: u64 = 0x00;
/// The link is up, the device is there. Lowest bit.
pub const VIA_FN_CTRL_UP_LSB: u32 = 0;
/// The link is up, the device is there. Mask in place.
pub const VIA_FN_CTRL_UP_MASK: u32 = 0x01;
/// Block device: refuse writes. Lowest bit.
pub const VIA_FN_CTRL_READ_ONLY_LSB: u32 = 1;
/// Block device: refuse writes. Mask in place.
pub const VIA_FN_CTRL_READ_ONLY_MASK: u32 = 0x02;
/// Block device: each message to the user side begins with 64 bytes that name its sector. Lowest bit.
pub const VIA_FN_CTRL_HEADER_LSB: u32 = 2;
/// Block device: each message to the user side begins with 64 bytes that name its sector. Mask in place.
pub const VIA_FN_CTRL_HEADER_MASK: u32 = 0x04;
/// Where the user side is connected: 0 nowhere, 1 the board's port, 2 stream 0 of a slot. Of two functions that ask for one slot the lower one gets it. While a function has the stream, moves on it end with `StAborted`. Lowest bit.
pub const VIA_FN_CTRL_KIND_LSB: u32 = 4;
/// Where the user side is connected: 0 nowhere, 1 the board's port, 2 stream 0 of a slot. Of two functions that ask for one slot the lower one gets it. While a function has the stream, moves on it end with `StAborted`. Mask in place.
pub const VIA_FN_CTRL_KIND_MASK: u32 = 0x30;
/// Slot whose stream 0 the function uses, if `KIND` = 2. Lowest bit.
pub const VIA_FN_CTRL_SLOT_LSB: u32 = 8;
/// Slot whose stream 0 the function uses, if `KIND` = 2. Mask in place.
pub const VIA_FN_CTRL_SLOT_MASK: u32 = 0xf00;
/// Block device: slot in whose address space the disk lies. Lowest bit.
pub const VIA_FN_CTRL_STORE_LSB: u32 = 12;
/// Block device: slot in whose address space the disk lies. Mask in place.
pub const VIA_FN_CTRL_STORE_MASK: u32 = 0xf000;
/// Least cycles between two interrupts of a queue; 0 = each at once. Lowest bit.
pub const VIA_FN_CTRL_MODERATE_LSB: u32 = 16;
/// Least cycles between two interrupts of a queue; 0 = each at once. Mask in place.
pub const VIA_FN_CTRL_MODERATE_MASK: u32 = 0xffff_0000;
/// MAC address, first four bytes.
pub const VIA_FN_MAC_LO: u64 = 0x04;
/// MAC address, last two bytes.
pub const VIA_FN_MAC_HI: u64 = 0x08;
/// Fifth byte in the lowest byte. Lowest bit.
pub const VIA_FN_MAC_HI_VALUE_LSB: u32 = 0;
/// Fifth byte in the lowest byte. Mask in place.
pub const VIA_FN_MAC_HI_VALUE_MASK: u32 = 0xffff;
/// Size of the console.
pub const VIA_FN_CONSOLE_SIZE: u64 = 0x0c;
/// Columns. The driver is told of a change. Lowest bit.
pub const VIA_FN_CONSOLE_SIZE_COLS_LSB: u32 = 0;
/// Columns. The driver is told of a change. Mask in place.
pub const VIA_FN_CONSOLE_SIZE_COLS_MASK: u32 = 0xffff;
/// Rows. Lowest bit.
pub const VIA_FN_CONSOLE_SIZE_ROWS_LSB: u32 = 16;
/// Rows. Mask in place.
pub const VIA_FN_CONSOLE_SIZE_ROWS_MASK: u32 = 0xffff_0000;
/// First byte of the disk, low half.
pub const VIA_FN_BASE_LO: u64 = 0x10;
/// First byte of the disk, high half.
pub const VIA_FN_BASE_HI: u64 = 0x14;
/// Virtual address in slot `STORE`, bits 47:32. Lowest bit.
pub const VIA_FN_BASE_HI_VALUE_LSB: u32 = 0;
/// Virtual address in slot `STORE`, bits 47:32. Mask in place.
pub const VIA_FN_BASE_HI_VALUE_MASK: u32 = 0xffff;
/// Size of the disk, low half.
pub const VIA_FN_SECTORS_LO: u64 = 0x18;
/// Size of the disk, high half.
pub const VIA_FN_SECTORS_HI: u64 = 0x1c;
/// Sectors of 512 bytes, bits 39:32. Lowest bit.
pub const VIA_FN_SECTORS_HI_VALUE_LSB: u32 = 0;
/// Sectors of 512 bytes, bits 39:32. Mask in place.
pub const VIA_FN_SECTORS_HI_VALUE_MASK: u32 = 0xff;
/// Status.
pub const VIA_FN_STATUS: u64 = 0x20;
/// virtio device status as the driver set it: 1 acknowledge, 2 driver, 4 driver ok, 8 features ok, 64 needs reset, 128 failed. Lowest bit.
pub const VIA_FN_STATUS_DEVICE_LSB: u32 = 0;
/// virtio device status as the driver set it: 1 acknowledge, 2 driver, 4 driver ok, 8 features ok, 64 needs reset, 128 failed. Mask in place.
pub const VIA_FN_STATUS_DEVICE_MASK: u32 = 0xff;
/// The user side is connected: to the board, or to a slot that is not isolated. Lowest bit.
pub const VIA_FN_STATUS_ATTACHED_LSB: u32 = 8;
/// The user side is connected: to the board, or to a slot that is not isolated. Mask in place.
pub const VIA_FN_STATUS_ATTACHED_MASK: u32 = 0x100;
/// The card has this function. Lowest bit.
pub const VIA_FN_STATUS_PRESENT_LSB: u32 = 9;
/// The card has this function. Mask in place.
pub const VIA_FN_STATUS_PRESENT_MASK: u32 = 0x200;
/// Negotiated features, low half.
pub const VIA_FN_FEATURES_LO: u64 = 0x24;
/// Negotiated features, high half.
pub const VIA_FN_FEATURES_HI: u64 = 0x28;
/// Flush: how long it waits for the host.
pub const VIA_FN_FLUSH_LIMIT: u64 = 0x2c;
/// In 2^18 cycles; a flush that waited longer fails. 0 = what is in the store is safe, a flush waits for nobody, and one that waits fails. Lowest bit.
pub const VIA_FN_FLUSH_LIMIT_LIMIT_LSB: u32 = 0;
/// In 2^18 cycles; a flush that waited longer fails. 0 = what is in the store is safe, a flush waits for nobody, and one that waits fails. Mask in place.
pub const VIA_FN_FLUSH_LIMIT_LIMIT_MASK: u32 = 0xffff;
/// Flush: what the host has done.
pub const VIA_FN_FLUSH_DONE: u64 = 0x30;
/// Answers the flush that made `FLUSH_ASKED` this number. Lowest bit.
pub const VIA_FN_FLUSH_DONE_COUNT_LSB: u32 = 0;
/// Answers the flush that made `FLUSH_ASKED` this number. Mask in place.
pub const VIA_FN_FLUSH_DONE_COUNT_MASK: u32 = 0xffff;
/// What was written could not be brought to its place: the flush fails. Lowest bit.
pub const VIA_FN_FLUSH_DONE_FAILED_LSB: u32 = 31;
/// What was written could not be brought to its place: the flush fails. Mask in place.
pub const VIA_FN_FLUSH_DONE_FAILED_MASK: u32 = 0x8000_0000;
/// Flush: what the driver wants.
pub const VIA_FN_FLUSH_ASKED: u64 = 0x34;
/// Flushes that have waited for the host since power-up, modulo 2^16. Each posts `EvFlush` in slot `STORE`. Lowest bit.
pub const VIA_FN_FLUSH_ASKED_COUNT_LSB: u32 = 0;
/// Flushes that have waited for the host since power-up, modulo 2^16. Each posts `EvFlush` in slot `STORE`. Mask in place.
pub const VIA_FN_FLUSH_ASKED_COUNT_MASK: u32 = 0xffff;
/// Looking for buffers without a notification.
pub const VIA_FN_LOOK: u64 = 0x38;
/// While data waits and its queue seems to hold no buffer: cycles between two looks at what the driver has made available; 0 = it is not looked at without a notification. Lowest bit.
pub const VIA_FN_LOOK_PERIOD_LSB: u32 = 0;
/// While data waits and its queue seems to hold no buffer: cycles between two looks at what the driver has made available; 0 = it is not looked at without a notification. Mask in place.
pub const VIA_FN_LOOK_PERIOD_MASK: u32 = 0xffff;
/// Looks in a row that find nothing before the queue rests, until data comes or the driver notifies; 0 = without end. Lowest bit.
pub const VIA_FN_LOOK_COUNT_LSB: u32 = 16;
/// Looks in a row that find nothing before the queue rests, until data comes or the driver notifies; 0 = without end. Mask in place.
pub const VIA_FN_LOOK_COUNT_MASK: u32 = 0xffff_0000;
/// Messages the function sent to its user side.
pub const VIA_FN_TX_MESSAGES: u64 = 0x40;
/// Messages the user side sent to the function.
pub const VIA_FN_RX_MESSAGES: u64 = 0x44;
/// Messages ended early, because the connection changed, the slot was isolated, or the function was reset.
pub const VIA_FN_CUT_MESSAGES: u64 = 0x48;
/// Slots that the user BAR reaches.
pub const VIA_FN_REACH: u64 = 0x50;
/// XDMA: bit s: its driver may use the registers of the app in slot s. Those of the others read all ones for it and ignore writes. An access that has reached the app when its slot is closed still ends: before the next of the management function to an app. Lowest bit.
pub const VIA_FN_REACH_SLOTS_LSB: u32 = 0;
/// XDMA: bit s: its driver may use the registers of the app in slot s. Those of the others read all ones for it and ignore writes. An access that has reached the app when its slot is closed still ends: before the next of the management function to an app. Mask in place.
pub const VIA_FN_REACH_SLOTS_MASK: u32 = 0xffff;
/// Features that may be offered, low half.
pub const VIA_FN_OFFER_LO: u64 = 0x58;
/// Value of `OFFER_LO`.
pub const VIA_FN_OFFER_LO_VALUE_RESET: u32 = 0xffff_ffff;
/// Features that may be offered, high half.
pub const VIA_FN_OFFER_HI: u64 = 0x5c;
/// Value of `OFFER_HI`.
pub const VIA_FN_OFFER_HI_VALUE_RESET: u32 = 0xffff_fffb;
/// Features offered, low half.
pub const VIA_FN_OFFERED_LO: u64 = 0x60;
/// Features offered, high half.
pub const VIA_FN_OFFERED_HI: u64 = 0x64;
/// Features supported, low half.
pub const VIA_FN_SUPPORTED_LO: u64 = 0x68;
/// Features supported, high half.
pub const VIA_FN_SUPPORTED_HI: u64 = 0x6c;
/// Doorbells: BAR.
pub const VIA_BELL_BAR: u32 = 2;
/// Doorbells of slot 0: offset in its BAR.
pub const VIA_BELL_BASE: u64 = 0x00;
/// Doorbells: from one slot to the next.
pub const VIA_BELL_STRIDE: u64 = 0x1000;
/// Command ring: producer.
pub const VIA_BELL_CMD_TAIL: u64 = 0x00;
/// Index up to which the host has written commands. Lowest bit.
pub const VIA_BELL_CMD_TAIL_INDEX_LSB: u32 = 0;
/// Index up to which the host has written commands. Mask in place.
pub const VIA_BELL_CMD_TAIL_INDEX_MASK: u32 = 0xffff;
/// Completion ring: consumer.
pub const VIA_BELL_CPL_HEAD: u64 = 0x04;
/// Index up to which the host has read completions. Lowest bit.
pub const VIA_BELL_CPL_HEAD_INDEX_LSB: u32 = 0;
/// Index up to which the host has read completions. Mask in place.
pub const VIA_BELL_CPL_HEAD_INDEX_MASK: u32 = 0xffff;
/// Writing 1 asks for one interrupt (vector 2s) as soon as the ring holds an entry at or past `INDEX`: at once, if it already does. Lowest bit.
pub const VIA_BELL_CPL_HEAD_ARM_LSB: u32 = 31;
/// Writing 1 asks for one interrupt (vector 2s) as soon as the ring holds an entry at or past `INDEX`: at once, if it already does. Mask in place.
pub const VIA_BELL_CPL_HEAD_ARM_MASK: u32 = 0x8000_0000;
/// Event ring: consumer.
pub const VIA_BELL_EVT_HEAD: u64 = 0x08;
/// Index up to which the host has read events. Lowest bit.
pub const VIA_BELL_EVT_HEAD_INDEX_LSB: u32 = 0;
/// Index up to which the host has read events. Mask in place.
pub const VIA_BELL_EVT_HEAD_INDEX_MASK: u32 = 0xffff;
/// Writing 1 asks for one interrupt (vector 2s + 1) as soon as the ring holds an entry at or past `INDEX`: at once, if it already does. Lowest bit.
pub const VIA_BELL_EVT_HEAD_ARM_LSB: u32 = 31;
/// Writing 1 asks for one interrupt (vector 2s + 1) as soon as the ring holds an entry at or past `INDEX`: at once, if it already does. Mask in place.
pub const VIA_BELL_EVT_HEAD_ARM_MASK: u32 = 0x8000_0000;
