// SPDX-License-Identifier: Apache-2.0
//! Options of commands.

/// Options as they are unless given.
pub fn usual<A: clap::Args>() -> A {
    let matches = A::augment_args(clap::Command::new("")).get_matches_from([""]);
    A::from_arg_matches(&matches).expect("no option is required")
}
