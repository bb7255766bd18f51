// SPDX-License-Identifier: Apache-2.0
//! The system monitor of the simulated card. Needs `make card` and `viaduct build pass`; without them these tests are skipped with a message.

mod built;

use std::time::Duration;

use built::card;
use viaduct::*;
use viaduct_pci::PciFunction;

#[test]
fn the_die_warms_up_with_time_and_more_with_work_and_the_readings_are_those_of_a_model() {
    let Some((card, sim, image)) = card("pass") else { return };
    let read = || card.system_monitor().unwrap().expect("the simulated board has a monitor");
    let first = read();
    assert!(first.model);
    let Measured { last, min, max } = first.temperature;
    assert!((29.9..31.0).contains(&last) && min <= last && last <= max, "{first:?}");
    assert!((0.8..0.85).contains(&first.vccint.last) && (1.79..1.81).contains(&first.vccaux.last));

    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    let data = vec![1; 4 << 20];
    let out = SharedBytes::default();
    StreamJob::new(&slot)
        .input(0, Endpoint::bytes("in", SharedBytes::new(data)))
        .output(0, Endpoint::bytes("out", out), OutLength::Same)
        .run()
        .unwrap();
    // The model averages over a millisecond.
    sim.charge(Duration::from_millis(1));
    let worked = read();
    assert!(worked.temperature.last > first.temperature.last);
    // The supply was lower under load than it is at rest; its extremes say so, and that is kept.
    sim.charge(Duration::from_millis(100));
    let rested = read();
    assert!(rested.vccint.min < rested.vccint.last && rested.vccint.min <= worked.vccint.min);
    assert!(rested.temperature.last > worked.temperature.last, "it goes on to its value at rest");
    let power = rested.power().expect("the simulated board measures the current");
    assert!((power - rested.current.unwrap() * rested.vccint.last).abs() < 1e-9 && power > 10.0, "{power}");
}
