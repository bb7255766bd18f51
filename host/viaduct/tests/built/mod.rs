// SPDX-License-Identifier: Apache-2.0
//! The built simulated card. `VIADUCT_BUILD` names a build folder other than that of this checkout.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use viaduct::*;
use viaduct_sim::{Profile, SimCard, SimConfig};

fn build() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    std::env::var_os("VIADUCT_BUILD").map_or(here, PathBuf::from)
}

/// A card and the image of an app, if both are built.
pub fn card(app: &str) -> Option<(Arc<Card>, Arc<SimCard>, Vec<u8>)> {
    let card_object = build().join("card/libviaduct_card_functions.so");
    let image_dir = build().join("apps");
    let image = std::fs::read(image_dir.join(app).join(app).with_extension("via"));
    let (Ok(image), true) = (image, card_object.is_file()) else {
        assert!(std::env::var_os("VIADUCT_BUILD").is_none(), "VIADUCT_BUILD has no card or no app {app}");
        eprintln!("skipped: build the card and the app {app} first (`make build`)");
        return None;
    };
    let config = SimConfig { profile: Profile::default(), card_object, image_dir, chan_mib: Some(64) };
    let sim = Arc::new(SimCard::open(config).unwrap());
    let wait = Duration::from_secs(20);
    let timeouts = Timeouts { stall: wait, busy: wait, control: wait };
    Some((Card::open_with(sim.clone(), timeouts).unwrap(), sim, image))
}
