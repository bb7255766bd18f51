// SPDX-License-Identifier: Apache-2.0
//! A QEMU that is not ours, or not right in the head: what `viaduct vm` reads from the control socket.
//!
//! A command returns what the first reply to it says, and an error is one line that is safe for a terminal; every call ends, and
//! each is one line to QEMU.
#![no_main]

// The code is part of a program, so it is compiled from its files.
#[path = "../../host/viaduct-cli/src/cmd/vm/qmp.rs"]
mod qmp;
#[allow(dead_code)] // what others need of it
#[path = "../../host/viaduct-cli/src/terminal/text.rs"]
mod text;
mod terminal {
    pub(crate) use super::text;
}

use libfuzzer_sys::arbitrary::{Result as Taken, Unstructured};
use libfuzzer_sys::fuzz_target;
use qmp::Qmp;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Most commands of a run.
const MOST_CALLS: usize = 32;

/// What QEMU says, and what is asked of it: for each command, whether its state is waited for.
struct Script {
    said: Vec<u8>,
    waits: Vec<bool>,
}

impl Script {
    fn take(u: &mut Unstructured) -> Taken<Self> {
        let mut script = Self { said: Vec::new(), waits: Vec::new() };
        if u.arbitrary::<u8>()? & 7 != 0 {
            script.said.extend(b"{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n{\"return\": {}}\r\n");
        }
        while !u.is_empty() && script.waits.len() < MOST_CALLS {
            let kind: u8 = u.arbitrary()?;
            let len = usize::from(u.arbitrary::<u8>()?).min(u.len());
            let bytes = u.bytes(len)?;
            let text = String::from_utf8_lossy(bytes);
            let line = match kind & 7 {
                0 => json!({ "return": {} }),
                1 => json!({ "return": { "status": text, "error-desc": text } }),
                2 => json!({ "return": { "status": "failed", "error-desc": text } }),
                3 => json!({ "error": { "class": "GenericError", "desc": text } }),
                4 => json!({ "event": "STOP", "data": { "why": text } }),
                5 => json!({ "error": text }),
                _ => Value::Null,
            };
            match line {
                Value::Null => script.said.extend(bytes),
                line => script.said.extend(line.to_string().bytes()),
            }
            script.said.extend(if kind & 8 == 0 { &b"\r\n"[..] } else { b"" });
            if kind & 16 == 0 {
                script.waits.push(kind & 32 != 0);
            }
        }
        Ok(script)
    }
}

/// What the next reply among these lines is: `None` if there is none.
fn reply<'a>(lines: &mut impl Iterator<Item = &'a [u8]>) -> Option<Result<Value, ()>> {
    for line in lines {
        let message: Value = serde_json::from_slice(line).ok()?;
        if message.get("error").is_some() {
            return Some(Err(()));
        }
        if let Some(result) = message.get("return") {
            return Some(Ok(result.clone()));
        }
    }
    None
}

fn check_error(text: &str) {
    assert!(!text.is_empty() && text.len() < 4000 && !text.chars().any(char::is_control), "{text:?}");
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(script) = Script::take(&mut Unstructured::new(bytes)) else { return };
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&script.said).unwrap();
    theirs.shutdown(Shutdown::Write).unwrap();

    let mut lines = script.said.split_inclusive(|byte| *byte == b'\n');
    let greeted = lines.next().is_some_and(|line| serde_json::from_slice::<Value>(line).is_ok());
    let expected = greeted.then(|| reply(&mut lines)).flatten();
    let mut asked = usize::from(greeted);
    match Qmp::open(ours) {
        Err(why) => {
            assert!(!matches!(expected, Some(Ok(_))), "{why}");
            check_error(&why);
        }
        Ok(mut qmp) => {
            assert!(matches!(expected, Some(Ok(_))));
            qmp.wait_at_most(Duration::from_secs(300)).unwrap();
            for wait in &script.waits {
                asked += 1;
                let expected = reply(&mut lines);
                if *wait {
                    let result =
                        qmp.wait("query-status", "status", Duration::ZERO, |state| state == "paused");
                    let paused = matches!(&expected, Some(Ok(reply)) if reply["status"] == "paused");
                    assert_eq!(result.is_ok(), paused, "{result:?} instead of {expected:?}");
                    result.unwrap_or_else(|why| check_error(&why));
                } else {
                    let result = qmp.ask("device_add", &json!({ "id": "line\nbreak" }));
                    assert_eq!(
                        result.clone().map_err(drop),
                        expected.clone().unwrap_or(Err(())),
                        "{result:?}"
                    );
                    result.map_or_else(|why| check_error(&why), drop);
                }
                if expected.is_none() {
                    break;
                }
            }
        }
    }
    let mut said = String::new();
    theirs.read_to_string(&mut said).unwrap();
    assert!(said.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    assert_eq!(said.lines().count(), asked, "a line for each command");
});
