// SPDX-License-Identifier: Apache-2.0
use std::error::Error;
use std::sync::Arc;

use viaduct::{Card, Endpoint, OutLength, StreamJob};
use viaduct_build::{Geometry, Project, Variant};
use viaduct_sim::{Profile, SimCard, SimConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [key, iv, input, output] = &arguments[..] else {
        return Err("usage: encrypt KEY IV INPUT OUTPUT".into());
    };

    // The simulated card and the app's image; both are built first if needed.
    let project = Project::find(".")?;
    let app = project.load("aes")?;
    let image = project.build(&app, &Geometry::default())?;
    let profile = Profile::default();
    let sim = SimCard::open(SimConfig {
        card_object: project.build_card(Variant::Fast, profile.channels, &mut |line| eprintln!("{line}"))?,
        profile,
        image_dir: project.images(Variant::Fast),
        chan_mib: None,
    })?;

    let card = Card::open(Arc::new(sim))?;
    let slot = card.any_slot()?;
    slot.load(&std::fs::read(&image.container)?)?;
    for (name, text) in [("key", key), ("iv", iv)] {
        let register = app.register(name).ok_or("the app has no such register")?;
        for (offset, word) in (register.offset..).step_by(4).zip(register.parse(text)?) {
            slot.write_register(offset, word)?;
        }
    }

    let report = StreamJob::new(&slot)
        .input(0, Endpoint::File(input.into()))
        .output(0, Endpoint::File(output.into()), OutLength::Same)
        .on_progress(|p| eprintln!("{} of {} bytes", p.bytes_in, p.total_in))
        .run()?;
    println!("{} bytes, {} cycles", report.bytes_out, report.cycles);
    Ok(())
}
