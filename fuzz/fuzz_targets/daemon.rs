// SPDX-License-Identifier: Apache-2.0
//! Messages between viaductd and its clients. The first byte says which way. An accepted one is the same when it is written again, and is
//! not longer then: nothing in it makes the reader hold more than what was sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use viaductd::wire::{Answer, Call, MAX_REQUEST, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let Some((way, bytes)) = bytes.split_first() else { return };
    let again = if way % 2 == 0 {
        let Ok(call) = decode::<Call>(bytes) else { return };
        let again = encode(&call).unwrap();
        let same = decode::<Call>(&again).unwrap();
        assert_eq!(format!("{call:?}"), format!("{same:?}"));
        again
    } else {
        let Ok(answer) = decode::<Answer>(bytes) else { return };
        let again = encode(&answer).unwrap();
        let same = decode::<Answer>(&again).unwrap();
        assert_eq!(format!("{answer:?}"), format!("{same:?}"));
        again
    };
    assert!(again.len() <= bytes.len() && again.len() <= MAX_REQUEST);
});
