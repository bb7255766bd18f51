// SPDX-License-Identifier: Apache-2.0
//! A client whose server dies or breaks the protocol: always an error, never a hang or a panic.

mod common;

use common::{Copier, eventually, socket};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use viaduct_pci::vfio_user::{Client, ClientOptions, Server};
use viaduct_pci::{DmaAccess, HostMemory, PciError, PciFunction};

const SOCKET: &str = "VIADUCT_TEST_SERVE_AT";

/// Not a test: the process that the next one kills.
#[test]
fn serve_if_asked_to() {
    if let Some(path) = std::env::var_os(SOCKET) {
        let _server = Server::bind(path.as_ref(), Copier::new()).unwrap();
        std::thread::sleep(Duration::from_secs(60));
    }
}

#[test]
fn a_killed_server_is_gone_for_every_caller() {
    let (_dir, path) = socket();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "serve_if_asked_to"])
        .env(SOCKET, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("server in its own process", || Client::connect(&path).is_ok());
    let client = Client::connect(&path).unwrap();
    let memory = Arc::new(HostMemory::new(0x1000).unwrap());
    client.dma_map(0, memory.clone(), DmaAccess::ReadWrite).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| client.wait_irq(1, Duration::from_secs(60)));
        let reader = scope.spawn(|| {
            loop {
                if let Err(error) = client.read32(0, 0) {
                    return error;
                }
            }
        });
        std::thread::sleep(Duration::from_millis(50));
        let begin = Instant::now();
        process.kill().unwrap();
        assert!(matches!(waiter.join().unwrap(), Err(PciError::Gone(_))));
        assert!(matches!(reader.join().unwrap(), PciError::Gone(_)));
        assert!(begin.elapsed() < Duration::from_secs(30));
    });
    process.wait().unwrap();
    assert!(matches!(client.dma_unmap(0), Err(PciError::Gone(_))));
    memory.write(0, b"our memory is still ours");
    // The socket file is still there; the next server takes its place.
    let _server = Server::bind(&path, Copier::new()).unwrap();
    Client::connect(&path).unwrap();
}

/// Reads requests, and answers with what `answer` makes of the correct reply, until it returns `None`.
fn serve(mut stream: UnixStream, mut answer: impl FnMut(u8, Vec<u8>) -> Option<Vec<u8>>) {
    let mut header = [0; 16];
    while stream.read_exact(&mut header).is_ok() {
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let (command, size, flags) = (header[2], word(4) as usize, word(8));
        let mut body = vec![0; size - 16];
        if stream.read_exact(&mut body).is_err() {
            return;
        }
        if flags & 0x10 != 0 {
            continue;
        }
        let response: Vec<u8> = match command {
            1 => b"\0\0\x01\0{\"capabilities\":{\"max_msg_fds\":8}}\0".to_vec(),
            4 => [16u32, 3, 9, 5].iter().flat_map(|w| w.to_le_bytes()).collect(),
            5 => [32u32, 3, 0, 0, 0x1000, 0, 0, 0].iter().flat_map(|w| w.to_le_bytes()).collect(),
            7 => [16u32, 1, 2, 20].iter().flat_map(|w| w.to_le_bytes()).collect(),
            9 => [body.clone(), vec![0; body[12] as usize]].concat(),
            10 => body[..16].to_vec(),
            3 => body,
            _ => vec![],
        };
        header[4..8].copy_from_slice(&(16 + response.len() as u32).to_le_bytes());
        header[8] = 1;
        match answer(command, [&header[..], &response].concat()) {
            Some(bytes) if stream.write_all(&bytes).is_ok() => {}
            _ => return,
        }
    }
}

/// Corrupts some replies.
fn babble(stream: UnixStream, mut random: impl FnMut(usize) -> usize) {
    serve(stream, |_, mut bytes| {
        if random(4) == 0 {
            let at = random(bytes.len());
            match random(5) {
                0 => bytes[at] ^= 1 << random(8),
                1 => bytes[at] = random(256) as u8,
                2 => bytes.truncate(at),
                3 => bytes.extend(vec![random(256) as u8; random(40)]),
                _ => bytes.insert(at, random(256) as u8),
            }
        }
        Some(bytes)
    });
}

/// A server may send requests to its client, but not make a call wait for ever with them.
#[test]
fn requests_without_end_do_not_replace_a_reply() {
    const RESET: u8 = 13;
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut flood = theirs.try_clone().unwrap();
    let server = std::thread::spawn(move || {
        serve(theirs, |command, reply| (command != RESET).then_some(reply));
        // Requests that want no reply, until the client disconnects.
        let request = [[1, 0, 11, 0, 16, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0]; 64].concat();
        while flood.write_all(&request).is_ok() {}
    });
    let (done, wait) = std::sync::mpsc::channel();
    let caller = std::thread::spawn(move || {
        let limit = Duration::from_millis(300);
        let client = Client::on(ours, ClientOptions { reply_time: limit }).unwrap();
        done.send(client.reset()).unwrap();
    });
    let result = wait.recv_timeout(Duration::from_secs(60)).expect("a call ends");
    assert!(matches!(result, Err(PciError::Timeout(_))), "{result:?}");
    caller.join().unwrap();
    server.join().unwrap();
}

#[test]
fn nonsense_from_a_server_is_an_error_at_worst() {
    let limit = Duration::from_millis(40);
    let mut connected = 0;
    for seed in 1..150u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let (ours, theirs) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || babble(theirs, random));
        let begin = Instant::now();
        let mut calls = 1;
        if let Ok(client) = Client::on(ours, ClientOptions { reply_time: limit }) {
            connected += 1;
            let memory = Arc::new(HostMemory::new(0x1000).unwrap());
            for i in 0..8 {
                let _ = client.read32(0, 4 * i);
                let _ = client.write32(0, 4 * i, 1);
                let _ = client.config_read(0, &mut [0; 4]);
                let _ = client.dma_map(i << 12, memory.clone(), DmaAccess::Read);
                let _ = client.wait_irq(1, Duration::from_millis(1));
                let _ = client.dma_unmap(i << 12);
                let _ = client.reset();
                calls += 7;
            }
        }
        assert!(begin.elapsed() < limit * (calls + 12) * 20, "seed {seed}");
        server.join().unwrap();
    }
    assert!(connected > 5, "{connected} connections were established");
}
