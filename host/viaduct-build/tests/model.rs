// SPDX-License-Identifier: Apache-2.0
//! Golden models: inputs, outputs, and errors of a broken one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use viaduct_build::{Manifest, run_model};

fn run(body: &str, input: &[u8]) -> viaduct_build::Result<Vec<u8>> {
    run_in(tempfile::tempdir().unwrap().path(), body, input)
}

fn run_in(folder: &Path, body: &str, input: &[u8]) -> viaduct_build::Result<Vec<u8>> {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::write(folder.join("model.py"), body).unwrap();
    std::fs::write(folder.join("data"), input).unwrap();
    let toml = "[app]\nname='t'\nversion='0.1.0'\nsummary='t'\ntop='t'\n[model]\npython='model.py'\n\
                [[stream_in]]\nname='in'\n[[register]]\nname='key'\nwidth=72\naccess='rw'\nreset='0x010203040506070809'\n";
    let app = Manifest::parse(folder, toml).unwrap();
    let inputs = BTreeMap::from([("in".to_owned(), folder.join("data"))]);
    let registers = app.register_values([]).unwrap();
    run_model(&root, &app, &inputs, &registers)?.bytes("out")
}

#[test]
fn bytes_and_registers_arrive() {
    let out =
        run("def model(i, r):\n    return {'out': i['in'][::-1] + r['key'].to_bytes(9, 'big')}\n", b"abc");
    assert_eq!(out.unwrap(), b"cba\x01\x02\x03\x04\x05\x06\x07\x08\x09");
    let big = vec![7; 3_000_000];
    assert_eq!(run("def model(i, r):\n    return {'out': i['in']}\n", &big).unwrap(), big);
}

#[test]
fn a_path_need_not_be_text() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join(OsStr::from_bytes(b"name\xff\xfe"));
    std::fs::create_dir(&folder).unwrap();
    let out = run_in(&folder, "def model(i, r):\n    return {'out': i['in']}\n", b"abc");
    assert_eq!(out.unwrap(), b"abc");
}

#[test]
fn a_broken_model_is_shown() {
    for (body, expected) in [
        ("def model(i, r):\n    return {'out': i['nope']}\n", "KeyError: 'nope'"),
        ("def model(i, r):\n    return 5\n", "returned int, not a dict"),
        ("def model(i, r):\n    return {'out': 'text'}\n", "returned str for 'out', not bytes"),
        ("x = 1\n", "does not define the function model"),
    ] {
        let error = run(body, b"").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn an_error_in_a_model_is_told_in_one_line_with_its_place() {
    for (body, expected, line) in [
        ("def model(i, r):\n    raise RuntimeError('x\\ny')\n", "RuntimeError: x (", 2),
        ("def model(i, r):\n    f()\ndef f():\n    raise ValueError\n", "ValueError (", 4),
        ("import json\ndef model(i, r):\n    json.loads('')\n", "JSONDecodeError: Expecting value", 3),
        ("import sys\nsys.exit('no')\n", "SystemExit: no (", 2),
        ("\ndef model(:\n", "SyntaxError: invalid syntax (", 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let error = run_in(folder.path(), body, b"").unwrap_err().to_string();
        let place = format!("({}:{line})", folder.path().join("model.py").display());
        assert!(error.contains(expected) && error.ends_with(&place) && !error.contains('\n'), "{error}");
    }
}
