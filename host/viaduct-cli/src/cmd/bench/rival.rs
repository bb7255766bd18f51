// SPDX-License-Identifier: Apache-2.0
//! Programs with the systems that benches compare the card with (`sim/rivals`).

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use viaduct_build::end_with_us;

use crate::fail::{Failure, Result, at};

/// Runs a program on its input, and returns what it prints. `name`: whom an error is about.
pub fn obey(program: &Path, name: &str, input: String) -> Result<String> {
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    end_with_us(&mut command);
    let mut child = command.spawn().map_err(at(program.display()))?;
    let mut to = child.stdin.take();
    let done = std::thread::scope(|scope| {
        scope.spawn(move || {
            // It may end before it has read everything, and then says why.
            let _ = to.take().map(|mut to| to.write_all(input.as_bytes()));
        });
        child.wait_with_output()
    });
    let done = done.map_err(at(program.display()))?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr);
        return Err(Failure::Run(format!("{name}: {}", why.trim())));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The numbers of each line of an output that begins with `word`, in order.
pub fn numbers(said: &str, word: &str) -> Result<Vec<Vec<u64>>> {
    let lines = said.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    let parsed = lines.map(|line| line.split(' ').map(str::parse).collect::<std::result::Result<_, _>>());
    parsed
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| Failure::Run(format!("a line {word:?} of a program of the bench is no row of numbers")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_named_lines() {
        let said = "ran 1 2\nother 3\nran 4 5\n";
        assert_eq!(numbers(said, "ran").unwrap(), [[1, 2], [4, 5]]);
        assert!(numbers("ran 1 x", "ran").is_err());
        assert!(numbers("range 1", "ran").unwrap().is_empty());
    }
}
