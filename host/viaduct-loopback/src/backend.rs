// SPDX-License-Identifier: Apache-2.0
//! A connection to the device process: the front end of vhost-user.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::ReceiveTimeout};
use nix::sys::time::TimeVal;

use vhost::vhost_user::message::{
    VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserProtocolFeatures, VhostUserVirtioFeatures,
};
use vhost::vhost_user::{
    Frontend, FrontendReqHandler, HandlerResult, VhostUserFrontend, VhostUserFrontendReqHandler,
};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vmm_sys_util::eventfd::EventFd;

use crate::control::{MAX_QUEUES, Rings};
use crate::error::{Error, Result, system};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(4);

/// Feature bit of devices as VIRTIO 1 has them.
pub const VERSION_1: u64 = 1 << 32;

/// The memory that the device process maps.
pub struct Memory {
    /// Descriptor, mapped from offset 0.
    pub fd: OwnedFd,
    /// Its start as a device address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

/// What the device process says of itself: that its configuration space has changed. Everything else is refused.
#[derive(Default)]
struct News(AtomicBool);

impl VhostUserFrontendReqHandler for News {
    fn handle_config_change(&self) -> HandlerResult<u64> {
        self.0.store(true, Ordering::Relaxed);
        Ok(0)
    }
}

/// A connection.
pub struct Backend {
    frontend: Frontend,
    news: Option<(FrontendReqHandler<News>, Arc<News>)>,
    /// Features of the device, with those of the transport.
    pub features: u64,
    protocol: VhostUserProtocolFeatures,
    /// Queues that it can have, if it says so.
    pub max_queues: Option<u64>,
}

/// A number that is passed to a crate.
struct Descriptor(std::os::fd::RawFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0
    }
}

fn protocol(what: &'static str) -> impl FnOnce(vhost::Error) -> Error {
    move |e| Error::Protocol(what, e)
}

impl Backend {
    /// Begins on a connected socket.
    pub fn new(stream: UnixStream) -> Result<Backend> {
        stream.set_read_timeout(Some(ANSWER)).map_err(system("the device process's socket"))?;
        stream.set_write_timeout(Some(ANSWER)).map_err(system("the device process's socket"))?;
        let mut frontend = Frontend::from_stream(stream, MAX_QUEUES.into());
        frontend.set_owner().map_err(protocol("SET_OWNER"))?;
        let features = frontend.get_features().map_err(protocol("GET_FEATURES"))?;
        let mut all = VhostUserProtocolFeatures::empty();
        let mut max_queues = None;
        if features & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() != 0 {
            // The crate demands it before the others; the device's own are set with its driver.
            let first = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() | VERSION_1;
            frontend.set_features(first & features).map_err(protocol("SET_FEATURES"))?;
            let wanted = VhostUserProtocolFeatures::CONFIG
                | VhostUserProtocolFeatures::BACKEND_REQ
                | VhostUserProtocolFeatures::MQ
                | VhostUserProtocolFeatures::REPLY_ACK;
            let offered = frontend.get_protocol_features().map_err(protocol("GET_PROTOCOL_FEATURES"))?;
            all = offered & wanted;
            frontend.set_protocol_features(all).map_err(protocol("SET_PROTOCOL_FEATURES"))?;
            if all.contains(VhostUserProtocolFeatures::REPLY_ACK) {
                frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
            }
            if all.contains(VhostUserProtocolFeatures::MQ) {
                max_queues = Some(frontend.get_queue_num().map_err(protocol("GET_QUEUE_NUM"))?);
            }
        }
        let mut news = None;
        if all.contains(VhostUserProtocolFeatures::BACKEND_REQ) {
            let told = Arc::new(News::default());
            let mut handler = FrontendReqHandler::new(Arc::clone(&told))
                .map_err(|e| Error::System("a pair of sockets", std::io::Error::other(e)))?;
            handler.set_reply_ack_flag(all.contains(VhostUserProtocolFeatures::REPLY_ACK));
            // SAFETY: the handler owns the descriptor, and outlives the borrow.
            let own = unsafe { BorrowedFd::borrow_raw(handler.as_raw_fd()) };
            let limit = TimeVal::new(ANSWER.as_secs() as i64, 0);
            setsockopt(&own, ReceiveTimeout, &limit).map_err(system("a pair of sockets"))?;
            let other = Descriptor(handler.get_tx_raw_fd());
            frontend.set_backend_request_fd(&other).map_err(protocol("SET_BACKEND_REQ_FD"))?;
            news = Some((handler, told));
        }
        Ok(Backend { frontend, news, features, protocol: all, max_queues })
    }

    /// Readable when the device process has said something, if it can.
    pub fn news_fd(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the handler owns the descriptor, and outlives the borrow.
        self.news.as_ref().map(|(handler, _)| unsafe { BorrowedFd::borrow_raw(handler.as_raw_fd()) })
    }

    /// Reads what it has said; returns whether its configuration space has changed.
    pub fn hear(&mut self) -> Result<bool> {
        let Some((handler, told)) = &mut self.news else { return Ok(false) };
        handler.handle_request().map_err(|e| Error::Protocol("a message of its own", e.into()))?;
        Ok(told.0.swap(false, Ordering::Relaxed))
    }

    /// The connection, to see whether it is closed.
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the front end owns the descriptor, and outlives the borrow.
        unsafe { BorrowedFd::borrow_raw(self.frontend.as_raw_fd()) }
    }

    /// The device's configuration space; empty if the process has none.
    pub fn config(&mut self, size: u32) -> Result<Vec<u8>> {
        if size == 0 || !self.protocol.contains(VhostUserProtocolFeatures::CONFIG) {
            return Ok(Vec::new());
        }
        let buffer = vec![0; size as usize];
        let (_, config) = self
            .frontend
            .get_config(0, size, VhostUserConfigFlags::WRITABLE, &buffer)
            .map_err(protocol("GET_CONFIG"))?;
        Ok(config)
    }

    /// Passes on what the driver has written.
    pub fn set_config(&mut self, config: &[u8]) -> Result {
        if config.is_empty() || !self.protocol.contains(VhostUserProtocolFeatures::CONFIG) {
            return Ok(());
        }
        self.frontend.set_config(0, VhostUserConfigFlags::WRITABLE, config).map_err(protocol("SET_CONFIG"))
    }

    /// Starts the queues, whose rings begin at index 0: index, rings and eventfds of each.
    pub fn start<'a>(
        &mut self,
        features: u64,
        memory: &Memory,
        size: u16,
        queues: impl Iterator<Item = (u32, Rings, &'a EventFd, &'a EventFd)>,
    ) -> Result {
        let own = self.features & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();
        self.frontend.set_features(features | own).map_err(protocol("SET_FEATURES"))?;
        // What is called a user address here is never used as one: it only says where in the memory something is.
        let region = VhostUserMemoryRegionInfo {
            guest_phys_addr: memory.base,
            memory_size: memory.size,
            userspace_addr: memory.base,
            mmap_offset: 0,
            mmap_handle: memory.fd.as_raw_fd(),
        };
        self.frontend.set_mem_table(&[region]).map_err(protocol("SET_MEM_TABLE"))?;
        for (index, rings, kick, call) in queues {
            let index = index as usize;
            let config = VringConfigData {
                queue_max_size: size,
                queue_size: size,
                flags: 0,
                desc_table_addr: rings.desc,
                used_ring_addr: rings.used,
                avail_ring_addr: rings.avail,
                log_addr: None,
            };
            self.frontend.set_vring_num(index, size).map_err(protocol("SET_VRING_NUM"))?;
            self.frontend.set_vring_base(index, 0).map_err(protocol("SET_VRING_BASE"))?;
            self.frontend.set_vring_addr(index, &config).map_err(protocol("SET_VRING_ADDR"))?;
            self.frontend.set_vring_call(index, call).map_err(protocol("SET_VRING_CALL"))?;
            self.frontend.set_vring_kick(index, kick).map_err(protocol("SET_VRING_KICK"))?;
            if own != 0 {
                self.frontend.set_vring_enable(index, true).map_err(protocol("SET_VRING_ENABLE"))?;
            }
        }
        Ok(())
    }

    /// Stops queues.
    pub fn stop(&mut self, queues: &[u32]) -> Result {
        for index in queues {
            self.frontend.get_vring_base(*index as usize).map_err(protocol("GET_VRING_BASE"))?;
        }
        Ok(())
    }
}
