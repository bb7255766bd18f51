// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench loopback`: a disk of qemu-storage-daemon in one boot of a Linux guest, through kernel/loopback, through vDUSE,
//! and its file. The guest's clock counts instructions, so the figures are instructions for each request, of everything that
//! runs: fio, kernel, device process. They do not depend on how busy this machine is.

use viaduct_build::Project;

use super::made::made;
use super::{Figure, size_of, wrong};
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::cmd::vm::{self, INSTRUCTION_NS, Machine, Watcher};
use crate::fail::{Failure, Result, at};

/// Guest time of a measurement in microseconds.
const TIME_US: u32 = 300_000;
const PATTERNS: [(&str, &str); 2] = [("randread", "random reads"), ("randwrite", "random writes")];
const BYTES: [u64; 6] = [512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const QUICK_BYTES: [u64; 2] = [4 << 10, 64 << 10];
const DEPTHS: [u32; 2] = [1, 16];
/// Systems, as guest/loopback_bench.sh names them.
const SYSTEMS: [&str; 3] = ["ours", "vduse", "file"];

/// What was measured of a job.
#[derive(Default)]
struct Row {
    /// Instructions for each request, by system.
    instructions: [Option<f64>; 3],
    /// Bytes that the module has copied for each request.
    copied: f64,
    mapped: f64,
}

/// The lines of the script.
#[derive(Default)]
struct Reader {
    text: Vec<u8>,
}

impl Watcher for Reader {
    fn output(&mut self, bytes: &[u8], _: &mut Machine) -> Result {
        self.text.extend(bytes);
        Ok(())
    }
}

/// The row of a job in the script's output.
fn row(text: &str, job: &str) -> Result<Row> {
    let mut row = Row::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["result", of, system, numbers @ ..] = words.as_slice() else { continue };
        if *of != job {
            continue;
        }
        let numbers: Vec<f64> = numbers.iter().filter_map(|word| word.parse().ok()).collect();
        let (Some(index), [iops, requests, copied, mapped]) =
            (SYSTEMS.iter().position(|name| name == system), numbers.as_slice())
        else {
            return Err(Failure::Run(format!("unexpected line from the guest: {line:?}")));
        };
        if *iops < 1.0 {
            return wrong(&format!("{job} of {system}"));
        }
        row.instructions[index] = Some(1e9 / iops / INSTRUCTION_NS);
        if *system == "ours" {
            row.copied = copied / requests.max(1.0);
            row.mapped = mapped / requests.max(1.0);
        }
    }
    Ok(row)
}

/// Measures the figures of `viaduct bench loopback`.
pub fn loopback(project: &Project, kernel: &str, quick: bool, plots: &mut Vec<Plot>) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir().map_err(at("a folder"))?;
    let devices = folder.path().join("devices.tar");
    std::os::unix::fs::symlink(made(project, "guest_devices.sh", &[])?, &devices)
        .map_err(at(devices.display()))?;
    let module = made(project, "guest_module.sh", &[kernel, "loopback"])?;
    let program = std::env::current_exe().map_err(at("this program"))?;
    let script = project.root().join("guest/loopback_bench.sh");

    let bytes = if quick { QUICK_BYTES.as_slice() } else { BYTES.as_slice() };
    let depths = if quick { &DEPTHS[..1] } else { DEPTHS.as_slice() };
    let mut jobs = Vec::new();
    for (pattern, name) in PATTERNS {
        for bytes in bytes {
            for depth in depths {
                jobs.push((format!("{pattern}:{bytes}:{depth}"), name, *bytes, *depth));
            }
        }
    }
    let mut words: Vec<std::ffi::OsString> =
        ["--kernel", kernel, "--function", "none", "--instruction-clock", "--memory", "1024"]
            .map(Into::into)
            .to_vec();
    for file in [&module, &devices, &program] {
        words.extend(["--copy".into(), file.into()]);
    }
    words.extend(["--script".into(), script.into(), "--timeout".into(), "7200".into(), "--".into()]);
    words.push(TIME_US.to_string().into());
    words.extend(jobs.iter().map(|job| job.0.clone().into()));

    let mut reader = Reader::default();
    let code = vm::watched(vm::Args::of(&words)?, &mut reader)?;
    let text = String::from_utf8_lossy(&reader.text);
    if code != 0 || text.lines().last() != Some("done") {
        return wrong(&format!("requests in the guest, which ends with exit code {code}"));
    }
    let mut plot = Plot::new(
        "loopback",
        Form::Bars,
        "A disk of qemu-storage-daemon on the host's own kernel",
        "random reads one at a time; instructions of the guest, all that runs included".to_owned(),
        ["bytes of a request", "thousand instructions for each"],
    );
    let mut figures = Vec::new();
    let mut ratios = Vec::new();
    for (job, name, bytes, depth) in &jobs {
        let row = row(&text, job)?;
        let [Some(ours), Some(vduse), Some(file)] = row.instructions else {
            return wrong(&format!("requests of job {job}"));
        };
        if *depth == 1 && *name == PATTERNS[0].1 {
            for (kind, system, value) in [
                (Kind::Ours, "viaduct loopback", ours),
                (Kind::Rival, "vDUSE", vduse),
                (Kind::Rival, "the file", file),
            ] {
                plot.add(kind, system, &size_of(*bytes), 0.0, value / 1e3);
            }
        }
        ratios.push(vduse / ours);
        figures.push(Figure {
            what: format!("loopback, {name} of {}, {depth} at a time", size_of(*bytes)),
            value: ours / 1e3,
            unit: "k instr.",
            note: format!(
                "for each; vDUSE {:.1}, {:.2} times as many; the file {:.1}; copied {:.0} B, mapped {:.0} B",
                vduse / 1e3,
                vduse / ours,
                file / 1e3,
                row.copied,
                row.mapped
            ),
        });
    }
    plots.push(plot);
    figures.push(Figure {
        what: "loopback: vDUSE's instructions to ours".to_owned(),
        value: (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp(),
        unit: "",
        note: format!(
            "geometric mean of all rows; the least is {:.2}",
            ratios.iter().copied().fold(f64::INFINITY, f64::min)
        ),
    });
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "result randread:4096:1 ours 1000 10 40960 0\nresult randread:4096:1 vduse 500 0 0 0\n";

    #[test]
    fn instructions_follow_from_the_rate() {
        let row = row(TEXT, "randread:4096:1").unwrap();
        assert_eq!(row.instructions, [Some(125_000.0), Some(250_000.0), None]);
        assert_eq!((row.copied, row.mapped), (4096.0, 0.0));
    }

    #[test]
    fn lines_that_are_no_results_are_refused() {
        assert!(row("result a ours 1000 10", "a").is_err());
        assert!(row("result a theirs 1000 10 1 1", "a").is_err());
        assert!(row("result a ours 0 10 1 1", "a").is_err());
    }
}
