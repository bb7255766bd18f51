// SPDX-License-Identifier: Apache-2.0
//! Messages between viaductd and its clients. The first byte says which way. An accepted one is the same when it is written again, and is
//! not longer then: nothing in it makes the reader hold more than what was sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use viaductd::wire::{Call, MAX_REQUEST, Response, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let Some((way, bytes)) = bytes.split_first() else { return };
    let again = if way % 2 == 0 {
        let Ok(call) = decode::<Call>(bytes) else { return };
        let again = encode(&call).unwrap();
        let same = decode::<Call>(&again).unwrap();
        assert_eq!(format!("{call:?}"), format!("{same:?}"));
        again
    } else {
        let Ok(response) = decode::<Response>(bytes) else { return };
        let again = encode(&response).unwrap();
        let same = decode::<Response>(&again).unwrap();
        assert_eq!(format!("{response:?}"), format!("{same:?}"));
        again
    };
    assert!(again.len() <= bytes.len() && again.len() <= MAX_REQUEST);
});
