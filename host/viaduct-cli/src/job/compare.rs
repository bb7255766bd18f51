// SPDX-License-Identifier: Apache-2.0
//! Finds the first difference of two files.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use crate::fail::{Result, at};

/// Bytes compared at a time.
const CHUNK: usize = 1 << 20;

/// Compares an app's output with that of its golden model: `Ok` is the number of equal bytes, `Err` the difference.
pub fn files(got: &Path, expected: &Path) -> Result<std::result::Result<u64, String>> {
    let open = |path: &Path| File::open(path).map_err(at(path.display()));
    let (mut got_file, mut expected_file) = (BufReader::new(open(got)?), BufReader::new(open(expected)?));
    let mut same = 0u64;
    let (mut a, mut b) = (vec![0; CHUNK], vec![0; CHUNK]);
    loop {
        let n = fill(&mut got_file, &mut a).map_err(at(got.display()))?;
        let m = fill(&mut expected_file, &mut b).map_err(at(expected.display()))?;
        if let Some(k) = a[..n].iter().zip(&b[..m]).position(|(x, y)| x != y) {
            return Ok(Err(format!(
                "byte {} is {:#04x}, the golden model says {:#04x}",
                same + k as u64,
                a[k],
                b[k]
            )));
        }
        same += n.min(m) as u64;
        if n != m {
            let length = |path: &Path| std::fs::metadata(path).map(|d| d.len()).map_err(at(path.display()));
            let (n, m) = (length(got)?, length(expected)?);
            return Ok(Err(format!("{n} bytes, the golden model says {m}; the first {same} are equal")));
        }
        if n == 0 {
            return Ok(Ok(same));
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut n = 0;
    while n < buffer.len() {
        match file.read(&mut buffer[n..]) {
            Ok(0) => break,
            Ok(k) => n += k,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let compare = |a: &[u8], b: &[u8]| {
            let (x, y) = (dir.path().join("x"), dir.path().join("y"));
            std::fs::write(&x, a).unwrap();
            std::fs::write(&y, b).unwrap();
            files(&x, &y).unwrap()
        };
        let mut big = vec![5; CHUNK + 100];
        assert_eq!(compare(&big, &big.clone()), Ok(CHUNK as u64 + 100));
        assert_eq!(compare(b"", b""), Ok(0));
        assert_eq!(
            compare(b"abc", b"ab"),
            Err("3 bytes, the golden model says 2; the first 2 are equal".into())
        );
        assert_eq!(compare(b"", b"a"), Err("0 bytes, the golden model says 1; the first 0 are equal".into()));
        let old = big.clone();
        big[CHUNK + 7] = 6;
        assert_eq!(
            compare(&big, &old),
            Err(format!("byte {} is 0x06, the golden model says 0x05", CHUNK + 7))
        );
    }
}
