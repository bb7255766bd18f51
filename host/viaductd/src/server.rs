// SPDX-License-Identifier: Apache-2.0
//! The daemon: accepts connections, checks who is there, and runs requests. Each connection has a thread, and each request that may
//! take time another one; their number is bounded by the quotas.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::socket::{UnixCredentials, getsockopt, sockopt::PeerCredentials};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{Shutdown, SocketFlags, accept_with, shutdown};
use viaduct::Card;
use viaduct_pci::SocketFile;

use crate::account::{Account, Charge, Config};
use crate::tenant::{Apps, Tenant};
use crate::wire::{
    Call, Kind, MAGIC, MAX_REQUEST, Refusal, Reply, Request, Response, VERSION, WireError, receive, send,
};

/// A daemon that serves a card. Dropping it ends it in order: connections are closed, and changed pages written to their files.
pub struct Daemon {
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    // Its file is removed before the socket is closed.
    _file: SocketFile,
    listener: Arc<OwnedFd>,
}

struct Shared {
    card: Arc<Card>,
    apps: Arc<dyn Apps>,
    config: Config,
    clients: Mutex<Clients>,
    left: Condvar,
    ending: AtomicBool,
}

#[derive(Default)]
struct Clients {
    last: u64,
    connected: BTreeMap<u64, Connected>,
}

struct Connected {
    uid: u32,
    socket: Arc<OwnedFd>,
}

impl Daemon {
    /// Serves a card on a socket at `path`.
    pub fn start(path: &Path, card: Arc<Card>, apps: Arc<dyn Apps>, config: Config) -> io::Result<Self> {
        let (listener, file) = SocketFile::packets(path)?;
        let listener = Arc::new(listener);
        let shared = Arc::new(Shared {
            card,
            apps,
            config,
            clients: Mutex::default(),
            left: Condvar::new(),
            ending: AtomicBool::new(false),
        });
        let (ours, sockets) = (Arc::clone(&shared), Arc::clone(&listener));
        let accepting =
            thread::Builder::new().name("accept".into()).spawn(move || ours.accept_all(&sockets))?;
        Ok(Self { shared, accepting: Some(accepting), _file: file, listener })
    }

    /// Connections at present, those included that are being released.
    pub fn clients(&self) -> usize {
        self.shared.clients().connected.len()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = shutdown(&self.listener, Shutdown::Both);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let mut clients = self.shared.clients();
        for client in clients.connected.values() {
            let _ = shutdown(&client.socket, Shutdown::Both);
        }
        while !clients.connected.is_empty() {
            clients = self.shared.left.wait(clients).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Shared {
    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept_all(self: &Arc<Self>, listener: &OwnedFd) {
        while !self.ending.load(Ordering::Relaxed) {
            match accept_with(listener, SocketFlags::CLOEXEC) {
                Ok(socket) => self.admit(Arc::new(socket)),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) if self.ending.load(Ordering::Relaxed) => {}
                Err(error) => {
                    // Out of descriptors, most likely: others may be closed meanwhile.
                    tracing::warn!(%error, "no connection can be accepted");
                    thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    /// Lets a client in, or tells it why not. Never waits for it.
    fn admit(self: &Arc<Self>, socket: Arc<OwnedFd>) {
        let patience = Some(self.config.patience);
        let limits = set_socket_timeout(&socket, Timeout::Send, patience)
            .and_then(|()| set_socket_timeout(&socket, Timeout::Recv, patience));
        if let Err(error) = limits {
            return tracing::warn!(%error, "a client was turned away: its connection has no time limits");
        }
        let peer = match getsockopt(&socket, PeerCredentials) {
            Ok(peer) => peer,
            Err(error) => return tracing::warn!(%error, "a client without credentials was turned away"),
        };
        let (pid, uid, gid) = (peer.pid(), peer.uid(), peer.gid());
        match self.register(peer, &socket) {
            Ok(client) => {
                tracing::info!(client, pid, uid, gid, "connected");
                let place = Place { shared: Arc::clone(self), client };
                let thread = thread::Builder::new().name(format!("client {client}"));
                if let Err(error) = thread.spawn(move || place.shared.serve(place.client, uid, &socket)) {
                    tracing::warn!(client, %error, "no thread can be started for a client");
                }
            }
            Err(refusal) => {
                tracing::warn!(pid, uid, gid, why = refusal.text, "a client was turned away");
                // The buffer of a new connection has room.
                let _ = send(socket.as_fd(), &Response { id: 0, result: Err(refusal) }, None);
            }
        }
    }

    fn register(&self, peer: UnixCredentials, socket: &Arc<OwnedFd>) -> Result<u64, Refusal> {
        let (uid, gid) = (peer.uid(), peer.gid());
        if !self.config.uids.contains(&uid) && !self.config.gids.contains(&gid) {
            let text = format!(
                "user {uid}, group {gid} may not use this card; ask its owner for viaductd --allow-uid or --allow-gid"
            );
            return Err(Refusal::new(Kind::Access, Errno::ACCESS.raw_os_error(), text));
        }
        let mut clients = self.clients();
        let full = |what: String| {
            Err(Refusal::new(Kind::Quota, Errno::AGAIN.raw_os_error(), format!("{what}; try again later")))
        };
        let (all, most) = (clients.connected.len(), self.config.clients);
        if all >= most {
            return full(format!("{all} clients are connected, no more than {most} may be"));
        }
        let same = clients.connected.values().filter(|client| client.uid == uid).count();
        if same >= self.config.clients_per_uid {
            return full(format!("{same} clients of user {uid} are connected, no more may be"));
        }
        clients.last += 1;
        let number = clients.last;
        clients.connected.insert(number, Connected { uid, socket: Arc::clone(socket) });
        Ok(number)
    }

    /// Serves a client until it disconnects, then releases what it has.
    fn serve(&self, client: u64, uid: u32, socket: &OwnedFd) {
        if let Err(why) = self.greet(socket) {
            tracing::warn!(client, %why, "the client did not greet as it must");
            return;
        }
        let tenant = Tenant::new(client, uid, Arc::clone(&self.card), Arc::clone(&self.apps), &self.config);
        let requests = self.config.quotas.requests;
        let account = |most| Account::new("unanswered requests", most, Errno::AGAIN.raw_os_error());
        // A client may send its next request before the thread of the last one has ended.
        let (requests, threads) = (account(requests), account(2 * requests));
        let gone = AtomicBool::new(false);
        let end = thread::scope(|scope| {
            let end = loop {
                let (call, file) = match receive::<Call>(socket.as_fd(), MAX_REQUEST) {
                    Ok(message) => message,
                    Err(end) => break end,
                };
                let charges = requests.charge(1).and_then(|one| Ok((one, threads.charge(1)?)));
                let (request, thread) = match charges {
                    Ok(charges) => charges,
                    Err(refusal) => {
                        respond(socket, call.id, Err(refusal));
                        continue;
                    }
                };
                let ticket = Ticket { socket, id: call.id, request: Some(request), _thread: thread };
                let (tenant, gone) = (&tenant, &gone);
                let quick = is_quick(&call.request);
                let work = move || ticket.respond(tenant.handle(call.request, file, gone));
                if quick {
                    work();
                } else if let Err(error) = thread::Builder::new().spawn_scoped(scope, work) {
                    // The ticket has answered.
                    tracing::warn!(client, %error, "no thread can be started for a request");
                }
            };
            gone.store(true, Ordering::Relaxed);
            if let WireError::Malformed(why) = &end {
                let refusal = Refusal::new(Kind::Protocol, Errno::PROTO.raw_os_error(), why.clone());
                respond(socket, 0, Err(refusal));
            }
            // Answers have no taker any more.
            let _ = shutdown(socket, Shutdown::Both);
            end
        });
        match end {
            WireError::Closed => tracing::info!(client, "disconnected"),
            end => tracing::warn!(client, why = %end, "the connection was ended"),
        }
    }

    /// The first message of a client comes in time and has our version.
    fn greet(&self, socket: &OwnedFd) -> Result<(), WireError> {
        let refuse = |why: String| {
            let refusal = Refusal::new(Kind::Protocol, Errno::PROTO.raw_os_error(), why.clone());
            respond(socket, 0, Err(refusal));
            Err(WireError::Malformed(why))
        };
        let call = match receive::<Call>(socket.as_fd(), MAX_REQUEST) {
            Ok((call, _)) => call,
            Err(WireError::Malformed(why)) => return refuse(why),
            Err(other) => return Err(other),
        };
        match call.request {
            Request::Hello { magic: MAGIC, version: VERSION } => {}
            Request::Hello { magic: MAGIC, version } => {
                return refuse(format!(
                    "the client speaks version {version} of the protocol, the daemon {VERSION}; install both from one \
                     version of Viaduct"
                ));
            }
            _ => return refuse("the first message is no greeting".into()),
        }
        set_socket_timeout(socket, Timeout::Recv, None).map_err(WireError::Os)?;
        let slots = self.card.info().slots as u32;
        let yours = self.config.quotas.slots.min(slots.into()) as u32;
        send(socket.as_fd(), &Response { id: call.id, result: Ok(Reply::Welcome { slots, yours }) }, None)
    }
}

/// A client's place among those connected, given up when dropped.
struct Place {
    shared: Arc<Shared>,
    client: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.clients().connected.remove(&self.client);
        self.shared.left.notify_all();
    }
}

/// The duty to answer a request: it is met in any case.
struct Ticket<'a> {
    socket: &'a OwnedFd,
    id: u64,
    /// Until it is answered.
    request: Option<Charge>,
    _thread: Charge,
}

impl Ticket<'_> {
    fn respond(mut self, result: Result<Reply, Refusal>) {
        self.request = None;
        respond(self.socket, self.id, result);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if self.request.take().is_some() {
            let text = "the daemon could not do this: an internal error, or no thread could be started";
            respond(
                self.socket,
                self.id,
                Err(Refusal::new(Kind::Card, Errno::IO.raw_os_error(), text.into())),
            );
        }
    }
}

/// Sends a response. A client that does not take it in time loses the connection.
fn respond(socket: &OwnedFd, id: u64, result: Result<Reply, Refusal>) {
    if let Err(error) = send(socket.as_fd(), &Response { id, result }, None) {
        if error != WireError::Closed {
            tracing::warn!(%error, "a response could not be sent; the connection ends");
        }
        let _ = shutdown(socket, Shutdown::Both);
    }
}

/// Whether a request takes no longer than a few accesses to the card: the thread that receives does it itself.
fn is_quick(request: &Request) -> bool {
    matches!(
        request,
        Request::Hello { .. }
            | Request::Check { .. }
            | Request::Status { .. }
            | Request::ReadRegister { .. }
            | Request::WriteRegister { .. }
            | Request::ReadWide { .. }
            | Request::WriteWide { .. }
            | Request::Irqs { .. }
    )
}
