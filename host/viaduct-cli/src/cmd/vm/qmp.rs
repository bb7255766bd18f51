// SPDX-License-Identifier: Apache-2.0
//! QEMU's control socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use viaduct_build::held_back;

/// Longest wait for the reply to one command.
const PATIENCE: Duration = Duration::from_secs(600);

/// How often signals are checked for.
const LOOK: Duration = Duration::from_millis(100);

/// A connection to a running QEMU.
pub struct Qmp {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    patience: Duration,
}

impl Qmp {
    /// Uses a new connection from QEMU.
    pub fn open(stream: UnixStream) -> Result<Self, String> {
        let writer = stream.try_clone().map_err(|e| e.to_string())?;
        // Both are one socket.
        writer.set_read_timeout(Some(LOOK)).map_err(|e| e.to_string())?;
        writer.set_write_timeout(Some(PATIENCE)).map_err(|e| e.to_string())?;
        let mut qmp = Self { reader: BufReader::new(stream), writer, patience: PATIENCE };
        qmp.message()?;
        qmp.ask("qmp_capabilities", &json!({}))?;
        Ok(qmp)
    }

    /// Sets the longest wait for each reply from now on.
    pub fn wait_at_most(&mut self, limit: Duration) -> Result<(), String> {
        self.patience = limit;
        self.writer.set_write_timeout(Some(limit)).map_err(|e| e.to_string())
    }

    /// One command and what it returns.
    pub fn ask(&mut self, command: &str, arguments: &Value) -> Result<Value, String> {
        let request = json!({ "execute": command, "arguments": arguments });
        writeln!(self.writer, "{request}").map_err(|e| format!("QEMU does not listen: {e}"))?;
        loop {
            let mut response = self.message()?;
            if let Some(error) = response.get("error") {
                let text = error["desc"].as_str().unwrap_or("no reason given");
                return Err(format!("QEMU refuses {command}: {text}"));
            }
            // A message with neither is an event.
            if let Some(result) = response.get_mut("return") {
                return Ok(result.take());
            }
        }
    }

    /// Repeats a query until the named field of the reply has the expected value; at most for `limit`.
    pub fn wait(
        &mut self,
        command: &str,
        field: &str,
        limit: Duration,
        ok: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let end = Instant::now() + limit;
        loop {
            let response = self.ask(command, &json!({}))?;
            let state = response[field].as_str().unwrap_or("");
            if ok(state) {
                return Ok(());
            }
            if state == "failed" {
                return Err(format!("QEMU: {}", response["error-desc"].as_str().unwrap_or("failed")));
            }
            if Instant::now() > end {
                return Err(format!("QEMU is still in state {state:?} after {} s", limit.as_secs()));
            }
            unless_ended()?;
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn message(&mut self) -> Result<Value, String> {
        let end = Instant::now() + self.patience;
        let mut line = Vec::new();
        loop {
            match self.reader.read_until(b'\n', &mut line) {
                Ok(_) if line.is_empty() => return Err("QEMU has ended".to_owned()),
                Ok(_) => {
                    return serde_json::from_slice(&line)
                        .map_err(|e| format!("QEMU does not reply in JSON: {e}"));
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(format!("no reply from QEMU: {e}")),
            }
            if Instant::now() > end {
                return Err(format!("QEMU does not reply within {} s", self.patience.as_secs()));
            }
            unless_ended()?;
        }
    }
}

/// Fails if the user has ended the run.
pub fn unless_ended() -> Result<(), String> {
    held_back().map_or(Ok(()), |signal| Err(format!("ended by signal {}", signal as i32)))
}
