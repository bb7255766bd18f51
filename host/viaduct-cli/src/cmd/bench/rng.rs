// SPDX-License-Identifier: Apache-2.0
//! What app `rng` does, as its README describes it.

/// Addresses that app rng accesses in a memory of `len` bytes: the generator in its README.
pub fn offsets(size: u64, count: u64, seed: u64, len: u64) -> impl Iterator<Item = u64> {
    let mut x = seed;
    (0..count).map(move |_| {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        let star = x.wrapping_mul(0x2545_f491_4f6c_dd1d);
        (((star >> 32) * (len / size)) >> 32) * size
    })
}

/// The checksum of app rng for these reads.
pub fn expected_sum(data: &[u8], size: u64, count: u64, seed: u64) -> u64 {
    let words = |at: u64| data[at as usize..(at + size) as usize].chunks_exact(8);
    offsets(size, count, seed, data.len() as u64)
        .flat_map(words)
        .map(|w| w.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b)))
        .fold(0, u64::wrapping_add)
}
