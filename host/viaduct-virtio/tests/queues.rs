// SPDX-License-Identifier: Apache-2.0
//! The driver's rings against a literal device in software, with every combination of features.

mod common;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use common::{Chain, Model, SIZE};
use proptest::prelude::*;
use viaduct_pci::PciFunction;
use viaduct_virtio::{Arena, Buffer, Device, VirtioError, feature};

const IOVA: u64 = 0x7_0000_0000;
const BYTES: usize = 1 << 20;

fn bits(list: &[u32]) -> u64 {
    list.iter().fold(0, |all, bit| all | 1 << bit)
}

fn all_features() -> [u32; 5] {
    use feature::{EVENT_IDX, IN_ORDER, INDIRECT_DESC, NOTIFICATION_DATA, RING_PACKED};
    [INDIRECT_DESC, EVENT_IDX, RING_PACKED, IN_ORDER, NOTIFICATION_DATA]
}

fn open(model: &Arc<Model>, wanted: u64) -> (Device, Arena) {
    let function: Arc<dyn PciFunction> = Arc::clone(model) as _;
    let mut device = Device::open(Arc::clone(&function)).unwrap();
    assert_eq!(device.negotiate(wanted).unwrap(), wanted | 1 << feature::VERSION_1);
    (device, Arena::new(function, IOVA, BYTES).unwrap())
}

/// Token, readable bytes, writable ranges.
type Offered = (u64, Vec<u8>, Vec<(u64, u32)>);

#[derive(Debug, Clone)]
enum Step {
    Add { readable: Vec<u16>, writable: Vec<u16> },
    Kick,
    Serve(u8),
    GiveBack { count: u8, only_last: bool },
    Reap,
    Arm,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let sizes = || prop::collection::vec(1u16..300, 0..4);
    let step = prop_oneof![
        4 => (sizes(), sizes()).prop_map(|(readable, writable)| Step::Add { readable, writable }),
        2 => Just(Step::Kick),
        3 => (1u8..20).prop_map(Step::Serve),
        3 => (1u8..20, any::<bool>()).prop_map(|(count, only_last)| Step::GiveBack { count, only_last }),
        3 => Just(Step::Reap),
        1 => Just(Step::Arm),
    ];
    prop::collection::vec(step, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_out_comes_back(mix in 0u32..32, steps in steps()) {
        let wanted = bits(&all_features().into_iter().enumerate().filter(|(i, _)| mix >> i & 1 != 0).map(|(_, b)| b).collect::<Vec<_>>());
        let model = Model::new(bits(&all_features()));
        let (device, mut arena) = open(&model, wanted);
        let mut queue = device.queue(&mut arena, 1, 16, Some(2)).unwrap();
        device.start().unwrap();
        let in_order = wanted >> feature::IN_ORDER & 1 != 0;

        let mut token = 0u64;
        let mut offered: VecDeque<Offered> = VecDeque::new();
        let mut held: Vec<(u64, Chain)> = Vec::new();
        let mut returned: VecDeque<(u64, Option<u32>)> = VecDeque::new();
        let mut armed: Option<u32> = None;
        for step in steps {
            match step {
                Step::Add { readable, writable } => {
                    let mut chain = Vec::new();
                    let mut content = Vec::new();
                    let need: usize = readable.iter().chain(&writable).map(|l| usize::from(*l)).sum();
                    if need == 0 {
                        prop_assert!(queue.add(&[], 0).is_err());
                        continue;
                    }
                    let Ok(mut at) = arena.take(need, 1) else { continue };
                    for len in &readable {
                        let bytes: Vec<u8> = (0..*len).map(|i| (token as u8).wrapping_mul(31).wrapping_add(i as u8)).collect();
                        arena.memory().write(at, &bytes);
                        chain.push(Buffer { addr: arena.bus(at), len: u32::from(*len), writable: false });
                        content.extend(bytes);
                        at += usize::from(*len);
                    }
                    let mut room = Vec::new();
                    for len in &writable {
                        chain.push(Buffer { addr: arena.bus(at), len: u32::from(*len), writable: true });
                        room.push((arena.bus(at), u32::from(*len)));
                        at += usize::from(*len);
                    }
                    if queue.add(&chain, token).unwrap() {
                        offered.push_back((token, content, room));
                    } else {
                        prop_assert!(queue.open() > 0, "an empty ring has space");
                    }
                    token += 1;
                }
                Step::Kick => {
                    let kicked = queue.kick().unwrap();
                    let seen = model.notified();
                    prop_assert_eq!(seen.len(), usize::from(kicked));
                    if wanted >> feature::NOTIFICATION_DATA & 1 == 0 {
                        prop_assert!(seen.iter().all(|n| n >> 16 == 0));
                    }
                }
                Step::Serve(count) => {
                    for _ in 0..count {
                        let Some(chain) = model.next(1) else { break };
                        let (token, content, room) = offered.pop_front().expect("only offered chains are used");
                        prop_assert_eq!(&chain.readable, &content);
                        prop_assert_eq!(&chain.writable, &room);
                        held.push((token, chain));
                    }
                }
                Step::GiveBack { count, only_last } => {
                    let count = usize::from(count).min(held.len());
                    if count == 0 {
                        continue;
                    }
                    // Without IN_ORDER, any order will do.
                    let batch: Vec<(u64, Chain)> = if in_order {
                        held.drain(..count).collect()
                    } else {
                        (0..count).map(|i| held.remove((i * 7) % held.len())).collect()
                    };
                    let only_last = only_last && in_order;
                    let before = model.interrupts(2);
                    let list: Vec<_> = batch.iter().map(|(t, c)| (c, *t as u32)).collect();
                    model.give_back(1, &list, only_last);
                    for (i, (t, _)) in batch.iter().enumerate() {
                        let told = !in_order || !only_last || i + 1 == batch.len();
                        returned.push_back((*t, told.then_some(*t as u32)));
                    }
                    if let Some(asked) = armed.take() {
                        prop_assert_eq!(before, asked);
                        prop_assert!(model.interrupts(2) > before, "the requested interrupt");
                    }
                }
                Step::Reap => {
                    armed = None;
                    while let Some(used) = queue.used().unwrap() {
                        let (token, len) = returned.pop_front().expect("only returned chains");
                        prop_assert_eq!(used.token, token);
                        if let Some(len) = len {
                            prop_assert_eq!(used.len, len);
                        }
                    }
                    prop_assert!(returned.is_empty());
                    prop_assert_eq!(queue.open(), offered.len() + held.len());
                }
                Step::Arm => {
                    let waiting = queue.arm();
                    prop_assert_eq!(waiting, !returned.is_empty());
                    armed = (!waiting).then(|| model.interrupts(2));
                }
            }
        }
        let tokens: HashSet<u64> = offered.iter().map(|o| o.0).chain(held.iter().map(|h| h.0)).collect();
        prop_assert_eq!(tokens.len(), offered.len() + held.len());
    }
}

#[test]
fn a_device_that_returns_what_it_was_not_given_is_found_out() {
    for packed in [false, true] {
        let wanted = if packed { bits(&[feature::RING_PACKED]) } else { 0 };
        let model = Model::new(wanted);
        let (device, mut arena) = open(&model, wanted);
        let mut queue = device.queue(&mut arena, 0, SIZE, None).unwrap();
        device.start().unwrap();
        let at = arena.take(8, 1).unwrap();
        assert!(queue.add(&[Buffer { addr: arena.bus(at), len: 8, writable: true }], 5).unwrap());
        queue.kick().unwrap();
        let mut chain = model.next(0).unwrap();
        chain.id = 9;
        model.give_back(0, &[(&chain, 8)], false);
        assert!(matches!(queue.used(), Err(VirtioError::BadUsed { queue: 0, id: 9 })));
    }
}

#[test]
fn arguments_are_checked() {
    let model = Model::new(0);
    let (device, mut arena) = open(&model, 0);
    assert_eq!(device.kind(), 1);
    assert_eq!(device.queue_size(0).unwrap(), SIZE);
    for size in [0, 3, SIZE * 2] {
        assert!(matches!(device.queue(&mut arena, 0, size, None), Err(VirtioError::Argument(_))));
    }
    assert!(matches!(device.queue(&mut arena, 0, 8, Some(3)), Err(VirtioError::Device(_))), "no such vector");
    let mut queue = device.queue(&mut arena, 0, 8, None).unwrap();
    let buffer = |writable| Buffer { addr: IOVA, len: 1, writable };
    assert!(queue.add(&[buffer(true), buffer(false)], 0).is_err(), "readable after writable");
    assert!(queue.add(&[buffer(true); 9], 0).is_err(), "longer than the queue");
    assert!(queue.add(&[Buffer { addr: IOVA, len: 0, writable: true }], 0).is_err());
}
