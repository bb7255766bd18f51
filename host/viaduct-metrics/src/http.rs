// SPDX-License-Identifier: Apache-2.0
//! Serves counters over HTTP/1, to collectors that may be slow, hostile, or many.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::snapshot::Snapshot;
use crate::text::text;

/// For a collector's request, and for it to take the response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections at a time; further ones are closed at once.
const CONNECTIONS: usize = 16;
/// Longest request.
const MOST_REQUEST: usize = 8 << 10;
/// Longest response that is accepted.
const MOST_RESPONSE: u64 = 1 << 20;
/// Header lines of a request or response.
const HEADERS: usize = 64;

/// Errors of serving or getting counters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// The address cannot be used.
    #[error("{address}: {source}")]
    Address {
        /// The address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// What is served there are no counters of a card.
    #[error(
        "{address}: no counters of a card come from there: {why}; it takes the address that `viaduct card --metrics` prints"
    )]
    NotCounters {
        /// The address.
        address: String,
        /// What is wrong.
        why: String,
    },
}

/// The addresses of `HOST:PORT`.
fn resolve(address: &str) -> Result<Vec<SocketAddr>, MetricsError> {
    let failed = |source| MetricsError::Address { address: address.to_owned(), source };
    if address.rsplit_once(':').is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err()) {
        return Err(failed(io::Error::other("write HOST:PORT, as in 127.0.0.1:9464")));
    }
    Ok(address.to_socket_addrs().map_err(failed)?.collect())
}

/// Serves counters until it is dropped.
pub struct Server {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `address` (`HOST:PORT`; port 0: any free one), and calls `take` for each request.
    pub fn start(
        address: &str,
        take: impl Fn() -> Snapshot + Send + Sync + 'static,
    ) -> Result<Self, MetricsError> {
        let failed = |source| MetricsError::Address { address: address.to_owned(), source };
        let listener = TcpListener::bind(&resolve(address)?[..]).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        let over = Arc::new(AtomicBool::new(false));
        let (ends, take) = (Arc::clone(&over), Arc::new(take));
        let accept = move || accept(&listener, &ends, &take);
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(accept).map_err(failed)?;
        Ok(Self { address: local, over, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts. If that fails, it ends with the program.
        let woken = TcpStream::connect_timeout(&self.address, PATIENCE);
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

/// A connection counts as long as this exists.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn accept(
    listener: &TcpListener,
    over: &AtomicBool,
    take: &Arc<impl Fn() -> Snapshot + Send + Sync + 'static>,
) {
    let open = Arc::new(AtomicUsize::new(0));
    for connection in listener.incoming() {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let connection = match connection {
            Ok(connection) => connection,
            Err(error) => {
                // Out of descriptors, for example: not for ever, and not a hundred thousand times a second.
                tracing::warn!(%error, "no connection of a collector can be accepted");
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        let counted = Counted(Arc::clone(&open));
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            tracing::warn!("{CONNECTIONS} collectors are connected: another one was turned away");
            continue;
        }
        let take = Arc::clone(take);
        let serve = move || {
            let _counted = counted;
            if let Err(error) = serve(connection, &*take) {
                tracing::debug!(%error, "a collector was not served");
            }
        };
        if let Err(error) = std::thread::Builder::new().name("collector".into()).spawn(serve) {
            tracing::warn!(%error, "no thread can be started for a collector");
        }
    }
}

/// Time that is left, or an error.
fn left(end: Instant) -> io::Result<Duration> {
    match end.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// Reads until `whole` finds what it looks for: at most `most` bytes, until `end`.
fn read<T>(
    from: &mut TcpStream,
    most: usize,
    end: Instant,
    whole: impl Fn(&[u8]) -> io::Result<Option<T>>,
) -> io::Result<T> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        from.set_read_timeout(Some(left(end)?))?;
        let count = from.read(&mut part)?;
        bytes.extend_from_slice(&part[..count]);
        if let Some(found) = whole(&bytes)? {
            return Ok(found);
        }
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if bytes.len() > most {
            return Err(io::Error::other("too long"));
        }
    }
}

/// Writes all until `end`.
fn write(to: &mut TcpStream, mut bytes: &[u8], end: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        to.set_write_timeout(Some(left(end)?))?;
        match to.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

fn serve(mut connection: TcpStream, take: &impl Fn() -> Snapshot) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let asked = read(&mut connection, MOST_REQUEST, end, |bytes| {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let complete = request.parse(bytes).map_err(io::Error::other)?.is_complete();
        let (method, path) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
        Ok(complete.then(|| (method.to_owned(), path.split('?').next().unwrap_or_default().to_owned())))
    });
    let head_only = asked.as_ref().is_ok_and(|(method, _)| method == "HEAD");
    let (status, kind, body) = match asked {
        Ok((method, _)) if method != "GET" && method != "HEAD" => {
            ("405 Method Not Allowed\r\nAllow: GET, HEAD", "text/plain", String::new())
        }
        Ok((_, path)) => match path.as_str() {
            "/metrics" => {
                ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", text(take()))
            }
            "/counters" => ("200 OK", "application/json", serde_json::to_string(&take())?),
            _ => ("404 Not Found", "text/plain", "There are /metrics and /counters.\n".to_owned()),
        },
        Err(error) if error.kind() == io::ErrorKind::Other => {
            ("400 Bad Request", "text/plain", String::new())
        }
        Err(error) => return Err(error),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    write(&mut connection, (head + if head_only { "" } else { &body }).as_bytes(), end)
}

/// Gets the counters that are served at `address` (`HOST:PORT`).
pub fn fetch(address: &str) -> Result<Snapshot, MetricsError> {
    let failed = |source| MetricsError::Address { address: address.to_owned(), source };
    let refused = |why: String| MetricsError::NotCounters { address: address.to_owned(), why };
    let end = Instant::now() + PATIENCE;
    let mut last = io::Error::other("the name has no address");
    let mut connection = None;
    for at in resolve(address)? {
        match TcpStream::connect_timeout(&at, left(end).map_err(failed)?) {
            Ok(connected) => {
                connection = Some(connected);
                break;
            }
            Err(error) => last = error,
        }
    }
    let Some(mut connection) = connection else { return Err(failed(last)) };
    let request = format!("GET /counters HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    write(&mut connection, request.as_bytes(), end).map_err(failed)?;
    let body = read(&mut connection, MOST_RESPONSE as usize, end, |bytes| {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(head) = response.parse(bytes).map_err(io::Error::other)? else {
            return Ok(None);
        };
        if response.code != Some(200) {
            return Err(io::Error::other(format!("status {}", response.code.unwrap_or_default())));
        }
        let length = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case("content-length"));
        let length: Option<usize> = length.and_then(|h| std::str::from_utf8(h.value).ok()?.parse().ok());
        let Some(length) = length else { return Err(io::Error::other("no length")) };
        Ok(bytes.get(head..).filter(|body| body.len() >= length).map(|body| body[..length].to_vec()))
    });
    let body = body.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            refused(format!("no answer within {} s", PATIENCE.as_secs()))
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            refused(format!("closed without an answer, as if {CONNECTIONS} others were connected"))
        }
        _ => refused(error.to_string()),
    })?;
    serde_json::from_slice(&body).map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        let take =
            || Snapshot { board: "test".into(), clock_khz: 250_000, cycles: 42, ..Snapshot::default() };
        Server::start("127.0.0.1:0", take).unwrap()
    }

    fn exchange(server: &Server, request: &[u8]) -> String {
        let mut connection = TcpStream::connect(server.address()).unwrap();
        connection.write_all(request).unwrap();
        let mut response = String::new();
        // What a server closes with input unread may end with a reset.
        let _ = connection.read_to_string(&mut response);
        response
    }

    #[test]
    fn counters_are_served_as_text_and_fetched() {
        let server = server();
        let text = exchange(&server, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("openmetrics-text"), "{text}");
        assert!(
            text.contains("viaduct_cycles_total{board=\"test\"} 42\n") && text.ends_with("# EOF\n"),
            "{text}"
        );
        assert_eq!(fetch(&server.address().to_string()).unwrap().cycles, 42);
    }

    #[test]
    fn what_is_no_request_gets_a_status() {
        let server = server();
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"HEAD /metrics HTTP/1.0\r\n\r\n", "200"),
            (b"\x00\xff\xfe nonsense\r\n\r\n", "400"),
            (&[b"GET /".to_vec(), vec![b'a'; 20 << 10]].concat(), "400"),
        ] {
            let response = exchange(&server, request);
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response:?}");
        }
    }

    #[test]
    fn collectors_that_hang_hold_up_nobody_and_are_bounded() {
        let server = server();
        let mut silent: Vec<_> =
            (0..CONNECTIONS - 1).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        for connection in &mut silent {
            connection.write_all(b"GET /metr").unwrap();
        }
        assert_eq!(fetch(&server.address().to_string()).unwrap().cycles, 42);
        // One more than there may be is closed at once.
        silent.push(TcpStream::connect(server.address()).unwrap());
        let begun = Instant::now();
        while fetch(&server.address().to_string()).is_ok() {
            assert!(begun.elapsed() < PATIENCE, "more connections than there may be");
        }
        drop(silent);
        let begun = Instant::now();
        while fetch(&server.address().to_string()).is_err() {
            assert!(begun.elapsed() < 4 * PATIENCE, "connections that are closed still count");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn an_address_without_counters_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let error = Server::start(&address, Snapshot::default).err().unwrap();
        assert!(error.to_string().starts_with(&format!("{address}: ")), "{error}");
        let other = std::thread::spawn(move || {
            let mut connection = listener.accept().unwrap().0;
            let mut some = [0; 16];
            let _ = connection.read(&mut some);
            connection.write_all(b"220 mail\r\n").unwrap();
        });
        let error = fetch(&address).unwrap_err();
        assert!(matches!(error, MetricsError::NotCounters { .. }), "{error}");
        other.join().unwrap();
        assert!(matches!(fetch("127.0.0.1:1").unwrap_err(), MetricsError::Address { .. }));
    }
}
