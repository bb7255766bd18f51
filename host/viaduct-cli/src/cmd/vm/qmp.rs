// SPDX-License-Identifier: Apache-2.0
//! QEMU's control socket.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use viaduct_build::held_back;

use crate::terminal::text::plain;

/// Longest wait for the reply to one command.
const PATIENCE: Duration = Duration::from_secs(600);

/// Longest message, and longest text of QEMU's in an error.
const LONGEST: usize = 1 << 20;
const SHOWN: usize = 300;

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
        qmp.message(Instant::now() + PATIENCE)?;
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
        // In one piece: each piece takes room in the socket's buffer.
        let request = format!("{}\n", json!({ "execute": command, "arguments": arguments }));
        self.writer.write_all(request.as_bytes()).map_err(|e| format!("QEMU does not listen: {e}"))?;
        // For the whole, however many events come before the reply.
        let end = Instant::now() + self.patience;
        loop {
            let mut response = self.message(end)?;
            if let Some(error) = response.get("error") {
                let text = error["desc"].as_str().unwrap_or("no reason given");
                return Err(format!("QEMU refuses {command}: {}", shown(text)));
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
                let why = response["error-desc"].as_str().unwrap_or("failed");
                return Err(format!("QEMU: {}", shown(why)));
            }
            if Instant::now() > end {
                let state = shown(state);
                return Err(format!("QEMU is still in state \"{state}\" after {} s", limit.as_secs()));
            }
            unless_ended()?;
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The next message, before `end`.
    fn message(&mut self, end: Instant) -> Result<Value, String> {
        let mut line = Vec::new();
        loop {
            match self.reader.fill_buf() {
                Ok([]) if line.is_empty() => return Err("QEMU has ended".to_owned()),
                Ok(bytes) => {
                    let newline = bytes.iter().position(|byte| *byte == b'\n');
                    let taken = newline.map_or(bytes.len(), |at| at + 1);
                    line.extend_from_slice(&bytes[..taken]);
                    self.reader.consume(taken);
                    if line.len() > LONGEST {
                        return Err(format!("QEMU sends a message of more than {} MiB", LONGEST >> 20));
                    }
                    if newline.is_some() || taken == 0 {
                        return serde_json::from_slice(&line)
                            .map_err(|e| format!("QEMU does not reply in JSON: {e}"));
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(e) => return Err(format!("no reply from QEMU: {e}")),
            }
            if Instant::now() > end {
                return Err(format!("QEMU does not reply within {} s", self.patience.as_secs()));
            }
            unless_ended()?;
        }
    }
}

/// QEMU's text for a terminal.
fn shown(text: &str) -> String {
    plain(&text.chars().take(SHOWN).collect::<String>())
}

/// Fails if the user has ended the run.
pub fn unless_ended() -> Result<(), String> {
    held_back().map_or(Ok(()), |signal| Err(format!("ended by signal {}", signal as i32)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Shutdown;

    const GREETING: &[u8] = b"{\"QMP\": {}}\n{\"return\": {}}\n";

    /// A connection on which QEMU has said this, and is still there.
    fn said(text: &[u8]) -> (Qmp, UnixStream) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(&[GREETING, text].concat()).unwrap();
        (Qmp::open(ours).unwrap(), theirs)
    }

    #[test]
    fn events_are_skipped_and_the_reply_is_returned() {
        let (mut qmp, _theirs) = said(b"{\"event\": \"STOP\"}\n{\"return\": {\"status\": \"paused\"}}\n");
        assert_eq!(qmp.ask("query-status", &json!({})).unwrap()["status"], "paused");
    }

    #[test]
    fn what_qemu_says_is_safe_for_a_terminal() {
        let (mut qmp, _theirs) = said(b"{\"error\": {\"desc\": \"\\u001b[2Jgone\\n\"}}\n");
        let error = qmp.ask("cont", &json!({})).unwrap_err();
        assert_eq!(error, r"QEMU refuses cont: \u{1b}[2Jgone\n");
        let (mut qmp, _theirs) = said(b"{\"return\": {\"status\": \"\\u001b\"}}\n");
        let error = qmp.wait("query-status", "status", Duration::ZERO, |_| false).unwrap_err();
        assert!(!error.chars().any(char::is_control), "{error:?}");
    }

    /// Sends the same for as long as it is read.
    fn endless(text: &'static [u8], mut to: UnixStream) -> std::thread::JoinHandle<()> {
        std::thread::spawn(move || while to.write_all(text).is_ok() {})
    }

    #[test]
    fn events_without_end_are_not_waited_for() {
        let (mut qmp, theirs) = said(b"");
        let thread = endless(b"{\"event\": \"STOP\"}\n", theirs);
        qmp.wait_at_most(Duration::from_millis(100)).unwrap();
        let error = qmp.ask("cont", &json!({})).unwrap_err();
        assert!(error.contains("does not reply within"), "{error}");
        drop(qmp);
        thread.join().unwrap();
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let (mut qmp, theirs) = said(b"");
        let thread = endless(&[b' '; 4096], theirs);
        let error = qmp.ask("cont", &json!({})).unwrap_err();
        assert!(error.contains("more than 1 MiB"), "{error}");
        drop(qmp);
        thread.join().unwrap();
    }

    #[test]
    fn the_end_within_a_message_is_an_error() {
        let (mut qmp, theirs) = said(b"{\"return\":");
        theirs.shutdown(Shutdown::Write).unwrap();
        assert!(qmp.ask("cont", &json!({})).unwrap_err().contains("JSON"));
        assert!(qmp.ask("cont", &json!({})).unwrap_err().contains("has ended"));
    }
}
