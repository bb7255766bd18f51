// SPDX-License-Identifier: Apache-2.0
//! Files generated from odd and ordinary manifests are accepted by Verilator -Wall, cc -Wall -Werror, rustc and Python.

use std::path::{Path, PathBuf};
use std::process::Command;

use viaduct_build::{Generated, Geometry, Manifest, Project};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A separate project folder that uses the real one's tools.
fn project(folder: &Path) -> Project {
    std::fs::create_dir_all(folder.join("apps")).unwrap();
    for shared in ["tools", "rtl", "sim", ".venv"] {
        std::os::unix::fs::symlink(root().join(shared), folder.join(shared)).unwrap();
    }
    Project::find(folder).unwrap()
}

fn check(command: &mut Command) {
    let done = command.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}\n{text}");
}

/// A module with the ports on the reference page, which drives every output with zero.
fn empty_app(page: &str, top: &str) -> String {
    let head = page.split("```systemverilog\n").nth(1).unwrap().split("```").next().unwrap();
    let outputs = head.lines().filter(|l| l.trim_start().starts_with("output"));
    let names = outputs.map(|l| l.split_whitespace().last().unwrap().trim_end_matches(','));
    let assigns: String = names.map(|n| format!("  assign {n} = '0;\n")).collect();
    format!("/* verilator lint_off UNUSEDSIGNAL */\n{head}{assigns}endmodule\n// {top}\n")
}

fn check_verilog(app: &Manifest, generated: &Generated, defines: &[&str]) {
    let verilator = root().join(".venv/bin/verilator");
    let mut command = Command::new(verilator);
    command.args(["--lint-only", "-Wall", "--top-module", "via_slot", "-DVIA_SIM"]).args(defines);
    command.arg("-y").arg(app.dir.join("rtl")).arg("-y").arg(root().join("rtl/common"));
    command.arg(root().join("tools/lint.vlt")).arg(root().join("rtl/common/via_pkg.sv"));
    command.args(app.sources.iter().map(|s| app.dir.join(s))).args(&generated.verilog);
    check(&mut command);
}

fn check_accessors(generated: &Generated, folder: &Path) {
    check(
        Command::new("cc")
            .args([
                "-std=c11",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused-function",
                "-fsyntax-only",
                "-x",
                "c",
            ])
            .arg(&generated.c),
    );
    let lib = folder.join("lib.rs");
    let text = std::fs::read_to_string(&generated.rust).unwrap();
    std::fs::write(&lib, format!("#![deny(warnings, missing_docs)]\n{}", text.replace("//!", "//"))).unwrap();
    let lib_text = format!("//! Test.\n{}", std::fs::read_to_string(&lib).unwrap());
    std::fs::write(&lib, lib_text).unwrap();
    check(
        Command::new("rustc")
            .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--out-dir"])
            .arg(folder)
            .arg(&lib),
    );
    check(
        Command::new(root().join(".venv/bin/python"))
            .args(["-c", "import sys; exec(compile(open(sys.argv[1]).read(), sys.argv[1], 'exec'), {})"])
            .arg(&generated.python),
    );
}

const MANIFESTS: [(&str, &str); 8] = [
    (
        "streams",
        "[[stream_in]]\nname='a'\nlanes=16\n[[stream_in]]\nname='b'\n[[stream_out]]\nname='c'\n[[stream_out]]\nname='d'\nlength='message:32'\n",
    ),
    (
        "source",
        "busy=true\nirq=true\n[[stream_out]]\nname='out'\n[[register]]\nname='seed'\nwidth=1\naccess='rw'\nreset=1\nrequired=true\n",
    ),
    ("sink", "[[stream_in]]\nname='in'\n"),
    (
        "memory",
        "[[memory]]\nname='mem'\nbase='base'\nbytes='bytes'\nstart='go'\ndone='done'\n\
         [[register]]\nname='base'\nwidth=48\naccess='rw'\n[[register]]\nname='bytes'\nwidth=64\naccess='rw'\nstrobe=true\n\
         [[register]]\nname='go'\nwidth=1\naccess='pulse'\n[[register]]\nname='done'\nwidth=1\naccess='ro'\n",
    ),
    (
        "registers",
        "[[register]]\nname='wide'\nwidth=1024\naccess='rw'\nreset='0x123456789abcdef0f'\n[[register]]\nname='ro33'\nwidth=33\naccess='ro'\n\
         [[register]]\nname='ro32'\nwidth=32\naccess='ro'\n[[register]]\nname='ro7'\nwidth=7\naccess='ro'\n\
         [[register]]\nname='property'\nwidth=32\naccess='rw'\n[[register]]\nname='class'\nwidth=95\naccess='rw'\nstrobe=true\n\
         [[register]]\nname='kick'\nwidth=32\naccess='pulse'\ndoc='Pipe | and \"quotes\" \\ end'\n",
    ),
    // No written register has more than one word; none as many as a read-only one.
    (
        "results",
        "[[register]]\nname='seed'\nwidth=32\naccess='rw'\n[[register]]\nname='sum'\nwidth=64\naccess='ro'\n",
    ),
    (
        "digest",
        "[[register]]\nname='seed'\nwidth=40\naccess='rw'\n[[register]]\nname='sum'\nwidth=128\naccess='ro'\n",
    ),
    ("pulse_only", "[[register]]\nname='p'\nwidth=3\naccess='pulse'\n"),
];

#[test]
fn odd_manifests_give_clean_files() {
    let temp = tempfile::tempdir().unwrap();
    let project = project(temp.path());
    for (name, body) in MANIFESTS {
        let dir = temp.path().join("apps").join(name);
        std::fs::create_dir_all(dir.join("rtl")).unwrap();
        let top = format!("{name}_app");
        std::fs::write(
            dir.join("app.toml"),
            format!("[app]\nname='{name}'\nversion='1.2.3'\nsummary='A test'\ntop='{top}'\n{body}"),
        )
        .unwrap();
        std::fs::write(dir.join(format!("rtl/{top}.sv")), "").unwrap();
        let app = project.load(name).unwrap();
        let generated = project.generate(&app).unwrap();
        let page = std::fs::read_to_string(&generated.page).unwrap();
        std::fs::write(dir.join(format!("rtl/{top}.sv")), empty_app(&page, &top)).unwrap();
        check_verilog(&app, &generated, &["-DVIA_NUM_STREAMS=4"]);
        check_verilog(&app, &generated, &["-DVIA_NUM_STREAMS=2", "-DVIA_DATA_W=64"]);
        check_accessors(&generated, temp.path());
        // A second time, no file changes.
        let stamp = |p: &PathBuf| std::fs::metadata(p).unwrap().modified().unwrap();
        let before: Vec<_> = generated.verilog.iter().map(stamp).collect();
        let again = project.generate(&app).unwrap();
        assert_eq!(before, again.verilog.iter().map(stamp).collect::<Vec<_>>());
    }
}

#[test]
fn a_new_app_lints_clean() {
    let temp = tempfile::tempdir().unwrap();
    let project = project(temp.path());
    let files = project.scaffold("fresh").unwrap();
    assert!(files.iter().all(|f| f.is_file()), "{files:?}");
    let app = project.load("fresh").unwrap();
    let generated = project.generate(&app).unwrap();
    check_verilog(&app, &generated, &[]);
    check_accessors(&generated, temp.path());
    let error = project.scaffold("fresh").unwrap_err().to_string();
    assert!(error.contains("exists"), "{error}");
    for bad in ["", "Up", "a b", "../x", "via_x", "none", "x/y", "0a", &"a".repeat(32)] {
        assert!(project.scaffold(bad).is_err(), "{bad}");
    }
    assert_eq!(project.apps().unwrap(), ["fresh"]);
}

#[test]
fn real_apps_are_read() {
    let project = Project::find(root()).unwrap();
    for name in project.apps().unwrap() {
        let app = project.load(&name).unwrap();
        // An app that responds only to some messages is not a function of its input; it has its own tests instead.
        let tests = root().join(format!("apps/{name}/test_{name}.py"));
        assert!(app.model.is_some() || tests.is_file(), "{name} has neither golden model nor tests");
    }
}

#[test]
fn an_app_is_not_built_for_a_width_that_it_does_not_support() {
    let project = Project::find(root()).unwrap();
    let app = project.load("udp_echo").unwrap();
    let error = project.build(&app, &Geometry { data_width: 64, streams: 1 }).unwrap_err().to_string();
    assert_eq!(
        error,
        "app udp_echo is for beats of 512 bits (`data_width` in its app.toml), this card has 64"
    );
}
