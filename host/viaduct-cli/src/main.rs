// SPDX-License-Identifier: Apache-2.0
//! `viaduct`: runs apps on a card, builds and tests them. See docs/cli.md.
// They panic if their output cannot be written: see `tell`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod process;

mod card;
mod cmd;
mod drawing;
mod ethernet;
mod fail;
mod functions;
mod job;
mod line;
mod managed;
mod options;
mod project;
mod random;
mod route;
mod settings;
mod terminal;
mod trace;
mod watched;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

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
    Top(cmd::top::Args),
    Sched(cmd::sched::Args),
    Route(cmd::route::Args),
    Reset(cmd::reset::Args),
    Graph(cmd::graph::Args),
    Loopback(cmd::loopback::Args),
    Vm(cmd::vm::Args),
    Bench(cmd::bench::Args),
    Build(cmd::build::Args),
    Doctor(cmd::doctor::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
}

fn main() -> ExitCode {
    process::signals::fail_on_large_files();
    let cli = match options().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return no_command(error),
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

/// The options. A negative number is the value of the option before it, which says what it takes, and no option of its own.
fn options() -> clap::Command {
    let negative = |arg: clap::Arg| {
        let of_option = !arg.is_positional() && arg.get_action().takes_values();
        if of_option { arg.allow_negative_numbers(true) } else { arg }
    };
    Cli::command().mut_subcommands(|command| command.mut_args(negative))
}

/// Prints the help or version that was asked for, or the error of the parser.
fn no_command(mut error: clap::Error) -> ExitCode {
    let result = match not_text(error.kind()) {
        Some(failure) => Err(failure),
        None if error.use_stderr() => {
            name_given_ones(&mut error);
            let rendered = match terminal::style::coloured(&std::io::stderr()) {
                true => error.render().ansi().to_string(),
                false => error.render().to_string(),
            };
            tell!("{}", viaduct_log::plain_words(rendered.trim_end()));
            return ExitCode::from(2);
        }
        None if terminal::style::coloured(&std::io::stdout()) => {
            process::tell::out(error.render().ansi().to_string().trim_end())
        }
        None => process::tell::out(error.render().to_string().trim_end()),
    };
    ended(result)
}

/// Leaves out of a conflict with many options those that were not given.
fn name_given_ones(error: &mut clap::Error) {
    let Some(ContextValue::Strings(all)) = error.get(ContextKind::PriorArg) else { return };
    let given: Vec<String> = std::env::args_os().filter_map(|word| word.into_string().ok()).collect();
    let is_given = |option: &&String| {
        let name = option.split([' ', '=']).next().unwrap_or_default();
        given
            .iter()
            .any(|word| word == name || word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
    };
    let few = match all.iter().filter(is_given).cloned().collect::<Vec<_>>() {
        none if none.is_empty() => return,
        mut one if one.len() == 1 => ContextValue::String(one.remove(0)),
        several => ContextValue::Strings(several),
    };
    error.insert(ContextKind::PriorArg, few);
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
        Command::Top(args) => cmd::top::run(args),
        Command::Sched(args) => cmd::sched::run(args),
        Command::Route(args) => cmd::route::run(args),
        Command::Reset(args) => cmd::reset::run(args),
        Command::Graph(args) => cmd::graph::run(args),
        Command::Loopback(args) => cmd::loopback::run(args),
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
