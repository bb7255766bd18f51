// SPDX-License-Identifier: Apache-2.0
//! What a program says of the card's functions, as their drivers find it. Needs `make functions` and `viaduct build pass`; without them these
//! tests are skipped with a message.

mod built;

use std::time::Duration;

use viaduct::*;
use viaduct_virtio::net::Net;

const IOVA: u64 = 0x2_0000_0000;
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

fn frame(seed: u8) -> Vec<u8> {
    (0..64).map(|i| seed.wrapping_add(i)).collect()
}

#[test]
fn a_driver_that_does_not_notify_is_polled_as_often_as_the_program_says() {
    let Some((card, sim, _)) = built::card("pass") else { return };
    let function = card.function(FunctionKind::Net).unwrap();
    function.attach(Attachment::Board).unwrap();
    function.set_up(true).unwrap();
    let pci = sim.function(FunctionKind::Net as usize).unwrap().expect("the card has this function");
    let port = sim.port(FunctionKind::Net as usize).unwrap();
    for (period, count, polled) in [(1024, 0, true), (0, 0, false), (16, 2, false)] {
        function.look_for_buffers(period, count).unwrap();
        // All buffers are used, and put back without a notification.
        let mut net = Net::open(pci.clone(), 0, 4, IOVA, 0).unwrap();
        net.rx.kick().unwrap();
        for seed in 0..4 {
            port.send(0, &frame(seed), LONG).unwrap();
            assert_eq!(net.wait(LONG).unwrap(), frame(seed));
        }
        port.send(0, &frame(9), LONG).unwrap();
        // Time for all polls that are allowed.
        let _ = net.wait(SHORT);
        net.rx.publish();
        let got = net.wait(if polled { LONG } else { SHORT });
        assert_eq!(got.is_ok(), polled, "{period} cycles, {count} times");
        let mut rest = if polled { vec![] } else { vec![9] };
        if count > 0 {
            // It polls again when more data comes, and nothing was lost.
            port.send(0, &frame(7), LONG).unwrap();
            rest.push(7);
        }
        if period > 0 {
            rest.into_iter().for_each(|seed| assert_eq!(net.wait(LONG).unwrap(), frame(seed)));
        }
        pci.reset().unwrap();
    }
}
