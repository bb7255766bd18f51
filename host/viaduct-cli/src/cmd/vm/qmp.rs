// SPDX-License-Identifier: Apache-2.0
//! QEMU's control socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

/// Longest wait for the answer to one command.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a running QEMU.
pub struct Qmp {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Qmp {
    /// Takes over a connection that QEMU has just made.
    pub fn open(stream: UnixStream) -> Result<Self, String> {
        stream.set_read_timeout(Some(PATIENCE)).map_err(|e| e.to_string())?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(|e| e.to_string())?;
        let writer = stream.try_clone().map_err(|e| e.to_string())?;
        let mut qmp = Self { reader: BufReader::new(stream), writer };
        qmp.message()?;
        qmp.ask("qmp_capabilities", &json!({}))?;
        Ok(qmp)
    }

    /// One command and what it returns.
    pub fn ask(&mut self, command: &str, arguments: &Value) -> Result<Value, String> {
        let request = json!({ "execute": command, "arguments": arguments });
        writeln!(self.writer, "{request}").map_err(|e| format!("QEMU does not listen: {e}"))?;
        loop {
            let mut answer = self.message()?;
            if let Some(error) = answer.get("error") {
                let text = error["desc"].as_str().unwrap_or("no reason given");
                return Err(format!("QEMU refuses {command}: {text}"));
            }
            // What has neither tells of an event.
            if let Some(result) = answer.get_mut("return") {
                return Ok(result.take());
            }
        }
    }

    /// Asks until the named field of the answer satisfies; bounded by `limit`.
    pub fn wait(
        &mut self,
        command: &str,
        field: &str,
        limit: Duration,
        ok: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let end = std::time::Instant::now() + limit;
        loop {
            let answer = self.ask(command, &json!({}))?;
            let state = answer[field].as_str().unwrap_or("");
            if ok(state) {
                return Ok(());
            }
            if state == "failed" {
                return Err(format!("QEMU: {}", answer["error-desc"].as_str().unwrap_or("failed")));
            }
            if std::time::Instant::now() > end {
                return Err(format!("QEMU is still in state {state:?} after {} s", limit.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn message(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => Err("QEMU has ended".to_owned()),
            Ok(_) => serde_json::from_str(&line).map_err(|e| format!("QEMU answers no JSON: {e}")),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                Err(format!("QEMU does not answer within {} s", PATIENCE.as_secs()))
            }
            Err(e) => Err(format!("no answer from QEMU: {e}")),
        }
    }
}
