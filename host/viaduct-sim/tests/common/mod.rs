// SPDX-License-Identifier: Apache-2.0
//! A card with functions, if one is built. `VIADUCT_BUILD` names a build folder other than that of this checkout.
#![allow(dead_code)] // every test binary uses a part

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use viaduct_pci::PciFunction;
use viaduct_sim::{Profile, SimCard, SimConfig, SimError, function_name};

pub const LONG: Duration = Duration::from_secs(60);

pub fn open() -> Option<Arc<SimCard>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    let build = std::env::var_os("VIADUCT_BUILD").map_or(here, PathBuf::from);
    let config = SimConfig {
        profile: Profile::GEN3X16,
        card_object: build.join("card/libviaduct_card_functions.so"),
        image_dir: build.join("apps"),
        chan_mib: Some(64),
    };
    match SimCard::open(config) {
        Ok(card) => Some(Arc::new(card)),
        Err(error @ SimError::NoCard { .. }) if std::env::var_os("VIADUCT_BUILD").is_none() => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A function, if the card has it.
pub fn function(card: &Arc<SimCard>, number: usize) -> Option<Arc<dyn PciFunction>> {
    let function = card.function(number).unwrap();
    if function.is_none() {
        eprintln!("skipped: this card has no function {}", function_name(number).unwrap());
    }
    function
}

/// Connects a function to the board's port.
pub fn connect(card: &SimCard, number: usize) {
    const UP: u32 = 1;
    const BOARD: u32 = 1 << 4;
    const OFFER: u64 = 0x58;
    let base = 0x30000 + 0x100 * number as u64;
    card.write32(0, base, UP | BOARD).unwrap();
    // All features, including those that are offered on request only.
    card.write32(0, base + OFFER, u32::MAX).unwrap();
    card.write32(0, base + OFFER + 4, u32::MAX).unwrap();
}
