// SPDX-License-Identifier: Apache-2.0
//! Runs the project's Python tools. None outlives this process, and a signal that this process holds back ends them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MemFdCreateFlag, memfd_create};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, getppid};

use crate::installed::require_checkout;
use crate::{Error, Result};

/// How often signals are checked for.
const LOOK: u16 = 100;
/// How long a tool may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// Tools whose last line is an error that says what to do.
const OURS: [&str; 2] = ["verilate: ", "run_model: "];

/// The project's Python, with the pinned tools.
pub(crate) fn venv_python(root: &Path, what: &str) -> Result<PathBuf> {
    require_checkout(root, what)?;
    let python = root.join(".venv/bin/python");
    if python.is_file() {
        return Ok(python);
    }
    Err(Error::Tool {
        what: what.to_owned(),
        problem: "the pinned tools are not installed; run `make setup`".to_owned(),
        output: String::new(),
    })
}

/// Runs a tool and passes on its standard output line by line. `usual` is the error text for a failure with the tool's own messages.
pub(crate) fn run(
    mut command: Command,
    what: &str,
    usual: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    let io = || Error::io(what);
    // In memory: that the folder of temporary files is full may be what the tool has to say.
    let messages = memfd_create(c"messages", MemFdCreateFlag::MFD_CLOEXEC);
    let mut messages = File::from(messages.map_err(|e| io()(e.into()))?);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(messages.try_clone().map_err(io())?);
    end_with_us(&mut command);
    let mut child = command.spawn().map_err(Error::io(command.get_program()))?;
    let mut signal = None;
    if let Some(out) = child.stdout.take() {
        let mut out = BufReader::new(out);
        let mut line = Vec::new();
        loop {
            let mut ready = [PollFd::new(out.get_ref().as_fd(), PollFlags::POLLIN)];
            // Interrupted or not: the relevant conditions are checked next.
            let came = poll(&mut ready, PollTimeout::from(LOOK)).unwrap_or(0) > 0;
            signal = held_back();
            if signal.is_some() {
                end(&mut child);
                break;
            }
            if !came {
                continue;
            }
            let bytes = match out.fill_buf() {
                Ok([]) | Err(_) => break,
                Ok(bytes) => bytes.to_vec(),
            };
            out.consume(bytes.len());
            for byte in bytes {
                if byte == b'\n' {
                    progress(&String::from_utf8_lossy(&line));
                    line.clear();
                } else {
                    line.push(byte);
                }
            }
        }
    }
    let status = child.wait().map_err(io())?;
    // The terminal sends Ctrl-C to the tool as well.
    if let Some(signal) = signal.or_else(held_back).filter(|_| !status.success()) {
        return Err(Error::Ended { what: what.to_owned(), signal: signal as i32 });
    }
    if status.success() {
        return Ok(());
    }
    let mut output = Vec::new();
    messages.seek(SeekFrom::Start(0)).and_then(|_| messages.read_to_end(&mut output)).map_err(io())?;
    let (output, problem) = reason(&String::from_utf8_lossy(&output), status, usual);
    Err(Error::Tool { what: what.to_owned(), output, problem })
}

/// Makes a program get SIGTERM when the thread that starts it ends in any way; signals blocked by this thread are unblocked in it.
pub fn end_with_us(command: &mut Command) {
    signal_with_us(command, Signal::SIGTERM);
}

/// As [`end_with_us`], for one that may be unable to end by itself then.
pub fn kill_with_us(command: &mut Command) {
    signal_with_us(command, Signal::SIGKILL);
}

fn signal_with_us(command: &mut Command, signal: Signal) {
    let us = Pid::this();
    // SAFETY: between fork and exec only three system calls are made, which need no lock and no memory.
    unsafe {
        command.pre_exec(move || {
            set_pdeathsig(signal)?;
            SigSet::empty().thread_set_mask()?;
            // The parent may have ended before.
            if getppid() == us { Ok(()) } else { Err(nix::Error::ESRCH.into()) }
        });
    }
}

/// A pending signal that is to end this process and that this thread has blocked.
pub fn held_back() -> Option<Signal> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is written to before it is read.
    let pending = unsafe {
        if libc::sigpending(set.as_mut_ptr()) != 0 {
            return None;
        }
        SigSet::from_sigset_t_unchecked(set.assume_init())
    };
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().find(|s| pending.contains(*s))
}

/// Ends a tool, which ends its children.
fn end(child: &mut Child) {
    // A child that has ended already is no error.
    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
    let limit = Instant::now() + GRACE;
    while Instant::now() < limit {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
}

/// The output of a tool without its error line, and that line, or how it ended.
fn reason(printed: &str, status: ExitStatus, usual: &str) -> (String, String) {
    let printed = printed.trim_end();
    let (before, last) = printed.rsplit_once('\n').unwrap_or(("", printed));
    if let Some((_, problem)) = last.split_once("error: ").filter(|(tool, _)| OURS.contains(tool)) {
        return (first_errors(before), problem.to_owned());
    }
    let places = || before.lines().filter(|line| line.starts_with("  File \"") && status.signal().is_none());
    // An app's generator: what is wrong is in the app, or with what it imports.
    if let Some(place) = places().rfind(|line| line.contains("/apps/") && !line.contains("/apps/common/")) {
        let module = last.strip_prefix("ModuleNotFoundError: No module named '");
        let problem = match module.and_then(|m| m.strip_suffix('\'')) {
            Some(module) => format!(
                "Python has no module {module}; put its package into tools/requirements.txt if it is not there, and run `make setup`"
            ),
            None => format!("{} ({})", last.trim(), place.trim()),
        };
        return (String::new(), problem);
    }
    // A tool that is itself damaged: Python says in the last line what is wrong, above it where.
    if let Some(place) = places().next_back() {
        return (String::new(), format!("{} ({}); is the checkout complete?", last.trim(), place.trim()));
    }
    let problem = match status.signal() {
        Some(9) => {
            "its program was killed; memory may be short: end other programs, then run the same command again"
                .to_owned()
        }
        Some(signal) => format!("its program was ended by signal {signal}; run the same command again"),
        None => match status.code() {
            Some(code) if printed.is_empty() => {
                format!("its program ended with status {code} without a message")
            }
            _ => usual.to_owned(),
        },
    };
    (first_errors(printed), problem)
}

/// From Verilator's first error on, if there is one; its warnings come before and would hide it.
fn first_errors(text: &str) -> String {
    const LINES: usize = 40;
    match text.find("%Error") {
        Some(at) => text[at..].lines().take(LINES).collect::<Vec<_>>().join("\n"),
        None => tail(text, LINES),
    }
}

/// The last lines of a tool's output.
fn tail(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(most);
    let mut out = lines[skipped..].join("\n");
    if skipped > 0 {
        out.insert_str(0, &format!("… {skipped} lines before\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn failure(script: &str) -> String {
        run(shell(script), "building x", "see above", &mut |_| ()).unwrap_err().to_string()
    }

    #[test]
    fn tails_say_what_they_leave_out() {
        let long: String = (0..100).map(|i| format!("{i}\n")).collect();
        let t = tail(&long, 40);
        assert!(t.starts_with("… 60 lines before\n60\n") && t.ends_with("99"), "{t}");
    }

    #[test]
    fn lines_come_one_by_one() {
        let mut lines = Vec::new();
        run(shell("echo a; printf 'b\\nc'; echo; printf d"), "x", "", &mut |l| lines.push(l.to_owned()))
            .unwrap();
        assert_eq!(lines, ["a", "b", "c"]);
    }

    #[test]
    fn every_end_has_a_reason() {
        let killed = failure("kill -9 $$");
        assert!(
            killed.starts_with("building x failed: ") && killed.contains("memory may be short"),
            "{killed}"
        );
        assert!(failure("kill -11 $$").contains("signal 11"));
        assert!(failure("exit 7").contains("status 7"));
        assert_eq!(failure("echo one >&2; exit 1"), "one\nbuilding x failed: see above");
        assert_eq!(
            failure("echo 1 >&2; echo 'verilate: error: two' >&2; exit 1"),
            "1\nbuilding x failed: two"
        );
        let damaged = r#"printf 'Traceback (most recent call last):\n  File "a.py", line 7, in <module>\n    import b\nModuleNotFoundError: none\n' >&2"#;
        assert_eq!(
            failure(&format!("{damaged}; exit 1")),
            "building x failed: ModuleNotFoundError: none (File \"a.py\", line 7, in <module>); is the checkout complete?"
        );
    }

    #[test]
    fn errors_of_an_apps_generator_are_the_apps() {
        let printed = |error: &str| {
            let trace = r#"Traceback\n  File "/x/apps/a/design.py", line 7, in <module>\n  File "/x/apps/common/flow.py", line 1\n"#;
            failure(&format!(r#"printf '%b' '{trace}{error}\n' >&2; exit 1"#))
        };
        assert_eq!(
            printed(r"ModuleNotFoundError: No module named \047pyrtl\047"),
            "building x failed: Python has no module pyrtl; put its package into tools/requirements.txt if it is not there, and run `make setup`"
        );
        assert_eq!(
            printed("TypeError: no"),
            "building x failed: TypeError: no (File \"/x/apps/a/design.py\", line 7, in <module>)"
        );
    }

    #[test]
    fn a_signal_that_is_held_back_ends_it() {
        let mut set = SigSet::empty();
        set.add(Signal::SIGHUP);
        set.thread_block().unwrap();
        nix::sys::signal::raise(Signal::SIGHUP).unwrap();
        let begun = Instant::now();
        let error = run(shell("exec sleep 600"), "building x", "", &mut |_| ()).unwrap_err();
        assert!(matches!(error, Error::Ended { signal: 1, .. }), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(300));
        // This thread ends with the test, and the signal pending for it with it.
    }
}
