// SPDX-License-Identifier: Apache-2.0
//! `viaduct`: runs apps on a card, builds and tests them. See docs/cli.md.
// They panic if their output cannot be written: see `tell`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod process;

mod card;
mod cmd;
mod fail;
mod functions;
mod job;
mod options;
mod project;
mod random;
mod route;
mod settings;
mod terminal;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::fail::Failure;

/// I/O between host software and FPGA user logic.
#[derive(Parser)]
#[command(
    name = "viaduct",
    version,
    about,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 output differs from the golden model."
)]
struct Cli {
    /// Print more messages (twice: all)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(cmd::run::Args),
    Ls(cmd::ls::Args),
    Info(cmd::info::Args),
    New(cmd::new::Args),
    Test(cmd::test::Args),
    Wave(cmd::wave::Args),
    Card(cmd::card::Args),
    Vm(cmd::vm::Args),
    Bench(cmd::bench::Args),
    Build(cmd::build::Args),
    Doctor(cmd::doctor::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
}

fn main() -> ExitCode {
    process::signals::fail_on_large_files();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return no_command(&error),
    };
    let level = match cli.verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    viaduct_log::init(level);
    let code = run(cli.command);
    viaduct_log::finish();
    code
}

/// Prints the help or version that was asked for, or the error of the parser.
fn no_command(error: &clap::Error) -> ExitCode {
    let result = match not_text(error.kind()) {
        Some(failure) => Err(failure),
        None if error.use_stderr() => error.exit(),
        None if terminal::style::coloured(&std::io::stdout()) => {
            process::tell::out(error.render().ansi().to_string().trim_end())
        }
        None => process::tell::out(error.render().to_string().trim_end()),
    };
    ended(result)
}

/// The argument that is not UTF-8: the parser does not name it, and names of folders need not be UTF-8. It is the one that the parser
/// refuses while all others are UTF-8.
fn not_text(kind: ErrorKind) -> Option<Failure> {
    if kind != ErrorKind::InvalidUtf8 {
        return None;
    }
    let all: Vec<OsString> = std::env::args_os().collect();
    let minded = |wrong: &usize| {
        let text = |at: usize| OsString::from(all[at].to_string_lossy().into_owned());
        let line = (0..all.len()).map(|at| if at == *wrong { all[at].clone() } else { text(at) });
        Cli::try_parse_from(line).is_err_and(|error| error.kind() == ErrorKind::InvalidUtf8)
    };
    let wrong = (0..all.len()).filter(|at| all[*at].to_str().is_none()).find(minded)?;
    let why = "is not UTF-8; rename the file, or give it as standard input or output (`-`) or a descriptor (`fd:NUMBER`)";
    Some(Failure::Usage(format!("{}: {why}", all[wrong].as_bytes().escape_ascii())))
}

fn run(command: Command) -> ExitCode {
    let result = match command {
        Command::Run(args) => cmd::run::run(args),
        Command::Ls(args) => cmd::ls::run(args),
        Command::Info(args) => cmd::info::run(args),
        Command::Test(args) => cmd::test::run(args),
        Command::Wave(args) => cmd::wave::run(args),
        Command::Bench(args) => cmd::bench::run(args),
        Command::Card(args) => cmd::card::run(args),
        Command::Vm(args) => match cmd::vm::run(args) {
            Ok(code) => return ExitCode::from(code),
            Err(failure) => Err(failure),
        },
        Command::New(args) => cmd::new::run(args),
        Command::Build(args) => cmd::build::run(args),
        Command::Doctor(args) => cmd::doctor::run(args),
        Command::Completions(args) => cmd::completions::run(args, Cli::command()),
        Command::Man(args) => cmd::man::run(args, Cli::command()),
    };
    ended(result)
}

/// The exit code, after the message of a failure.
fn ended(result: fail::Result) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.code()
        }
    }
}
