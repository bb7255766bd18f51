// SPDX-License-Identifier: Apache-2.0
//! App images. The encoding is unique: an accepted image is the same bytes when written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use viaduct_build::{CONTAINER_LEN, Container, Geometry};

fuzz_target!(|bytes: &[u8]| {
    match Container::decode(Path::new("a.via"), bytes) {
        Ok(container) => {
            assert_eq!(bytes.len(), CONTAINER_LEN);
            assert_eq!(container.encode(), bytes, "{container:?}");
            if let Some(geometry) = Geometry::from_word(container.geometry) {
                // The word also contains numbers of slots and channels, which do not concern an app.
                assert_eq!(geometry.word(), container.geometry & 0xffff_0000);
            }
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("a.via") && text.lines().count() == 1, "{text}");
        }
    }
});
