// SPDX-License-Identifier: Apache-2.0
//! Captures of Ethernet frames, as the far end of a line. The first byte selects the pace.
#![no_main]

use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use nix::sys::memfd::{MemFdCreateFlag, memfd_create};
use viaduct_sim::backend::{CaptureSource, Pace};
use viaduct_sim::{FrameSource, LONGEST_SENT};

fuzz_target!(|bytes: &[u8]| {
    let Some((pace, data)) = bytes.split_first() else { return };
    let pace = if pace & 1 == 0 { Pace::Line } else { Pace::Stamps };
    let Ok(file) = memfd_create(c"capture", MemFdCreateFlag::MFD_CLOEXEC) else { return };
    assert_eq!(nix::unistd::write(&file, data), Ok(data.len()));
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let says = |error: String| {
        let named = error.starts_with(path.to_str().unwrap_or_default());
        assert!(named && error.lines().count() == 1, "{error}");
    };
    let mut source = match CaptureSource::open(&path, pace) {
        Ok(source) => source,
        Err(error) => return says(error.to_string()),
    };
    let (mut frame, mut frames) = (Vec::new(), 0);
    while let Some(info) = source.next(&mut frame) {
        assert!((1..=LONGEST_SENT).contains(&frame.len()));
        assert!(info.after <= Duration::from_secs(3600) && (pace == Pace::Stamps || info.after.is_zero()));
        frame.clear();
        frames += 1;
    }
    // Each frame has a header of at least 16 bytes in the file.
    assert!(frames <= data.len() / 16, "{frames} frames");
    let error = source.error();
    assert!(source.next(&mut frame).is_none() && frame.is_empty() && source.error() == error);
    error.into_iter().for_each(says);
});
