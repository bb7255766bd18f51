// SPDX-License-Identifier: Apache-2.0
//! The daemon: accepts connections, checks who is there, and runs requests. Each connection has a thread, and each request that may
//! take time another one; their number is bounded by the quotas.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
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
use crate::manage::Manager;
use crate::overview::{COUNT, Overview};
use crate::tenant::{Apps, Tenant};
use crate::wire::{
    Call, Kind, MAGIC, MAX_REQUEST, Refusal, Reply, Request, Response, VERSION, WireError, receive, send,
};

/// Most connections that manage the card: of root and the owner together, and of all other users.
const MANAGERS: usize = 8;
/// Most of one user, but of root and the owner.
const MANAGERS_PER_UID: usize = 2;

/// A daemon that serves a card. Dropping it ends it in order: connections are closed, and changed pages written to their files.
pub struct Daemon {
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    /// The thread that counts, and what ends it.
    counting: Option<(Sender<()>, JoinHandle<()>)>,
    // Its file is removed before the socket is closed.
    _file: SocketFile,
    listener: Arc<OwnedFd>,
}

struct Shared {
    overview: Arc<Overview>,
    apps: Arc<dyn Apps>,
    config: Config,
    clients: Mutex<Clients>,
    left: Condvar,
    ending: AtomicBool,
}

#[derive(Default)]
struct Clients {
    last: u64,
    /// Tenants.
    connected: BTreeMap<u64, Connected>,
    /// Those who manage the card, or nothing else.
    managing: BTreeMap<u64, Connected>,
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
        let weights = config.schedules.values().map(|schedule| schedule.weight);
        let goes_on = !card.pci().stands_still();
        let overview = Arc::new(Overview::new(card, weights.max().unwrap_or(1)));
        let counting = if goes_on { Some(count(Arc::clone(&overview))?) } else { None };
        let shared = Arc::new(Shared {
            overview,
            apps,
            config,
            clients: Mutex::default(),
            left: Condvar::new(),
            ending: AtomicBool::new(false),
        });
        let (ours, sockets) = (Arc::clone(&shared), Arc::clone(&listener));
        let accepting =
            thread::Builder::new().name("accept".into()).spawn(move || ours.accept_all(&sockets))?;
        Ok(Self { shared, accepting: Some(accepting), counting, _file: file, listener })
    }

    /// Tenants at present, those included that are being released.
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
        if let Some((end, counting)) = self.counting.take() {
            drop(end);
            let _ = counting.join();
        }
        let mut clients = self.shared.clients();
        for client in clients.connected.values().chain(clients.managing.values()) {
            let _ = shutdown(&client.socket, Shutdown::Both);
        }
        while !clients.connected.is_empty() || !clients.managing.is_empty() {
            clients = self.shared.left.wait(clients).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Starts the thread that reads the counters from time to time.
fn count(overview: Arc<Overview>) -> io::Result<(Sender<()>, JoinHandle<()>)> {
    let (end, ended) = channel::<()>();
    let run = move || {
        while ended.recv_timeout(COUNT) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = overview.count() {
                tracing::warn!(%error, "the card's counters cannot be read");
            }
        }
    };
    Ok((end, thread::Builder::new().name("counters".into()).spawn(run)?))
}

/// What a connection may be.
struct Admitted {
    client: u64,
    /// Why it may not be a tenant.
    no_tenant: Option<Refusal>,
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
            Ok(Admitted { client, no_tenant }) => {
                tracing::info!(client, pid, uid, gid, "connected");
                let place = Place { shared: Arc::clone(self), client };
                let thread = thread::Builder::new().name(format!("client {client}"));
                let serve = move || place.shared.serve((place.client, uid, pid), no_tenant, &socket);
                if let Err(error) = thread.spawn(serve) {
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

    /// Enters a connection: as a tenant if it may be one, else as one of those who manage the card if it may be that.
    fn register(&self, peer: UnixCredentials, socket: &Arc<OwnedFd>) -> Result<Admitted, Refusal> {
        let uid = peer.uid();
        let mut clients = self.clients();
        let no_tenant = self.check_tenant(&clients, uid, peer.gid()).err();
        if let Some(refusal) = &no_tenant {
            // Where tenants have taken all places, the owner can still see which, and end them.
            if !self.config.managers.contains(&uid) || self.check_managing(&clients, uid).is_err() {
                return Err(refusal.clone());
            }
        }
        clients.last += 1;
        let number = clients.last;
        let connected = Connected { uid, socket: Arc::clone(socket) };
        match no_tenant {
            None => clients.connected.insert(number, connected),
            Some(_) => clients.managing.insert(number, connected),
        };
        Ok(Admitted { client: number, no_tenant })
    }

    fn check_tenant(&self, clients: &Clients, uid: u32, gid: u32) -> Result<(), Refusal> {
        if !self.config.uids.contains(&uid) && !self.config.gids.contains(&gid) {
            let text = format!(
                "user {uid}, group {gid} may not use this card; ask its owner for viaductd --allow-uid or --allow-gid"
            );
            return Err(Refusal::new(Kind::Access, Errno::ACCESS.raw_os_error(), text));
        }
        let (all, most) = (clients.connected.len(), self.config.clients);
        if all >= most {
            return Err(full(format!("{all} clients are connected, no more than {most} may be")));
        }
        let same = clients.connected.values().filter(|client| client.uid == uid).count();
        if same >= self.config.clients_per_uid {
            return Err(full(format!("{same} clients of user {uid} are connected, no more may be")));
        }
        Ok(())
    }

    /// Whether one more connection of a user may manage the card. Others have no part in the number of root and the owner.
    fn check_managing(&self, clients: &Clients, uid: u32) -> Result<(), Refusal> {
        let owns = |uid: u32| self.config.managers.contains(&uid);
        let of_kind = clients.managing.values().filter(|client| owns(client.uid) == owns(uid));
        let (all, same) = (of_kind.clone().count(), of_kind.filter(|client| client.uid == uid).count());
        if all >= MANAGERS || !owns(uid) && same >= MANAGERS_PER_UID {
            return Err(full(format!(
                "{all} connections manage the card, {same} of user {uid}; no more may"
            )));
        }
        Ok(())
    }

    /// Lets a connection that was entered as a tenant manage the card.
    fn move_to_managing(&self, client: u64) -> Result<(), Refusal> {
        let mut clients = self.clients();
        if clients.managing.contains_key(&client) {
            return Ok(());
        }
        let Some(uid) = clients.connected.get(&client).map(|connected| connected.uid) else { return Ok(()) };
        self.check_managing(&clients, uid)?;
        if let Some(connected) = clients.connected.remove(&client) {
            clients.managing.insert(client, connected);
        }
        Ok(())
    }

    /// Serves a client until it disconnects, then releases what it has.
    fn serve(&self, who: (u64, u32, i32), no_tenant: Option<Refusal>, socket: &OwnedFd) {
        let client = who.0;
        let guest = match self.greet(who, no_tenant, socket) {
            Ok(guest) => guest,
            Err(why) => {
                return tracing::warn!(client, %why, "the client did not greet as it must, or was refused");
            }
        };
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
                let (guest, gone) = (&guest, &gone);
                let quick = is_quick(&call.request);
                let work = move || ticket.respond(guest.handle(call.request, file, gone));
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
    fn greet(
        &self,
        who: (u64, u32, i32),
        no_tenant: Option<Refusal>,
        socket: &OwnedFd,
    ) -> Result<Guest, WireError> {
        let deny = |refusal: Refusal| {
            let why = refusal.text.clone();
            respond(socket, 0, Err(refusal));
            Err(WireError::Malformed(why))
        };
        let refuse = |why: String| deny(Refusal::new(Kind::Protocol, Errno::PROTO.raw_os_error(), why));
        let call = match receive::<Call>(socket.as_fd(), MAX_REQUEST) {
            Ok((call, _)) => call,
            Err(WireError::Malformed(why)) => return refuse(why),
            Err(other) => return Err(other),
        };
        let manages = match call.request {
            Request::Hello { magic: MAGIC, version: VERSION } => false,
            Request::Manage { magic: MAGIC, version: VERSION } => true,
            Request::Hello { magic: MAGIC, version } | Request::Manage { magic: MAGIC, version } => {
                return refuse(format!(
                    "the client speaks version {version} of the protocol, the daemon {VERSION}; install both from one \
                     version of Viaduct"
                ));
            }
            _ => return refuse("the first message is no greeting".into()),
        };
        let slots = self.overview.card.info().slots as u32;
        let overview = Arc::clone(&self.overview);
        let (guest, welcome) = if manages {
            if let Err(refusal) = self.move_to_managing(who.0) {
                return deny(refusal);
            }
            let all = self.config.managers.contains(&who.1);
            (Guest::Manager(Manager::new(who.0, who.1, all, overview)), Reply::Managing { slots, all })
        } else if let Some(refusal) = no_tenant {
            return deny(refusal);
        } else {
            let yours = self.config.quotas.slots.min(slots.into()) as u32;
            let tenant = Tenant::new(who, overview, Arc::clone(&self.apps), &self.config);
            (Guest::Tenant(tenant), Reply::Welcome { slots, yours })
        };
        set_socket_timeout(socket, Timeout::Recv, None).map_err(WireError::Os)?;
        send(socket.as_fd(), &Response { id: call.id, result: Ok(welcome) }, None)?;
        Ok(guest)
    }
}

/// What a connection has greeted as.
enum Guest {
    Tenant(Tenant),
    Manager(Manager),
}

impl Guest {
    fn handle(&self, request: Request, file: Option<OwnedFd>, gone: &AtomicBool) -> Result<Reply, Refusal> {
        match self {
            Self::Tenant(tenant) => tenant.handle(request, file, gone),
            Self::Manager(manager) => manager.handle(request),
        }
    }
}

fn full(what: String) -> Refusal {
    Refusal::new(Kind::Quota, Errno::AGAIN.raw_os_error(), format!("{what}; try again later"))
}

/// A client's place among those connected, given up when dropped.
struct Place {
    shared: Arc<Shared>,
    client: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        {
            let mut clients = self.shared.clients();
            clients.connected.remove(&self.client);
            clients.managing.remove(&self.client);
        }
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
