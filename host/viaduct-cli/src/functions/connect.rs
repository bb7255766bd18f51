// SPDX-License-Identifier: Apache-2.0
//! Attachment of the card's virtio functions: options of the commands that serve a card, and their execution.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use viaduct::{
    Attachment, Card, Disk, FeatureChange, Features, Function, FunctionKind, HostShare, SECTOR, SharedBytes,
    Sharing, Slot, Source, Through, Timeouts,
};
use viaduct_build::{Length, Manifest, Project, Variant};
use viaduct_sim::backend::{self, Cable};
use viaduct_sim::{Entropy, SimCard};

use crate::card::Opened;
use crate::ethernet::LineArgs;
use crate::fail::{Failure, Result, at, regular, usage};
use crate::job::set_registers;
use crate::settings::{registers, setting};
use crate::terminal::text::plain;

/// Address of the card's network device, if no other is chosen.
pub const MAC: [u8; 6] = [0x02, 0x56, 0x49, 0x41, 0x44, 0x01];

/// Options of commands that serve a card's functions.
#[derive(clap::Args, Clone)]
pub struct ConnectArgs {
    /// Far end of the network device: app:NAME (frames go through a slot), none, or the card's Ethernet port: board (no
    /// cable in it), tap:NAME, unix:PATH (one frame per datagram; unix:PATH,PEER sends to PEER), pcap:IN,OUT (captures: frames to the card,
    /// one after the other, and from it), pcap-times:IN,OUT (at the times of their stamps) or loop (sends back what the card sends).
    /// app:udp_echo unless given. Where a client connects the functions: the other end of the Ethernet port
    #[arg(long, value_name = "WHERE")]
    pub net: Option<Place<backend::Net>>,
    #[command(flatten)]
    pub line: LineArgs,
    /// Address of the network device: cards on one network need different ones
    #[arg(long, value_name = "ADDRESS", default_value_t = Mac(MAC))]
    pub mac: Mac,
    /// The disk: memory of this size (64M), file:PATH, copy:PATH (memory with the bytes of a file), or none
    #[arg(long, value_name = "WHAT", default_value = "64M")]
    pub disk: DiskSpec,
    /// The driver may not write to the disk
    #[arg(long)]
    pub read_only: bool,
    /// App that the disk's data passes through in both directions
    #[arg(long, value_name = "APP")]
    pub disk_app: Option<String>,
    /// Send the disk's app the first sector of each request: in 64 bytes ahead of the data, with 1 in its register `sectors`, if
    /// it has one
    #[arg(long, requires = "disk_app")]
    pub disk_sectors: bool,
    /// Value of a register of the disk's app
    #[arg(long = "set", value_name = "REGISTER=VALUE", value_parser = setting, requires = "disk_app")]
    pub set: Vec<(String, String)>,
    /// Far end of the console: app:NAME, none, or the card's UART: board (no cable in it), pty, unix:PATH or stdio
    #[arg(long, value_name = "WHERE", default_value = "board")]
    pub uart: Place<backend::Console>,
    /// Size of the console in characters; by default that of its terminal (--uart stdio), or 80x25
    #[arg(long, value_name = "COLUMNSxROWS")]
    pub console_size: Option<ConsoleSize>,
    /// App whose registers are in the user BAR of the XDMA-compatible function; may be given several times. The apps are loaded into the
    /// first slots, in this order: slot s at 0x1000 s
    #[arg(long, value_name = "APP")]
    pub xdma_app: Vec<String>,
    /// Virtio features that a function is to offer beyond the default, or not to offer, such as net:+packed,-mrg_rxbuf; those that need a
    /// withheld one are withheld too. `viaduct info card` shows them; packed rings are offered only if requested
    #[arg(long, value_name = "FUNCTION:+NAME,-NAME…")]
    pub features: Vec<FeatureChange>,
    /// Share of the link of a function (net=4), of loads and stores of pages (pages), or of what slots access in host memory (slots), beside
    /// the others, which have weight 1; with ,first it goes before those without
    #[arg(long, value_name = "WHO=WEIGHT[,first]")]
    pub share: Vec<HostShare>,
    /// Minimum card cycles between two interrupts of a queue
    #[arg(long, value_name = "CYCLES", default_value_t = 0)]
    pub moderate: u16,
}

/// Options that connect functions: not allowed where another process connects them. With `board`, also those of the Ethernet port: where
/// another process simulates the card.
pub fn connecting(board: bool) -> clap::ArgGroup {
    let of_board = ["net", "line", "max_frame"];
    let names = [
        "mac",
        "disk",
        "read_only",
        "disk_app",
        "disk_sectors",
        "set",
        "uart",
        "console_size",
        "xdma_app",
        "share",
        "moderate",
    ];
    let group = clap::ArgGroup::new("connecting").multiple(true).args(names);
    if board { group.args(of_board) } else { group }
}

/// Attachment of a function's user side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place<Cable> {
    /// Into a slot with this app.
    App(String),
    /// To the board's port, with a cable.
    Board(Cable),
    /// Not connected.
    None,
}

impl<Cable: FromStr<Err = String> + Default> FromStr for Place<Cable> {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once(':') {
            Some(("app", name)) if !name.is_empty() => Ok(Place::App(name.to_owned())),
            None if text == "board" => Ok(Place::Board(Cable::default())),
            None if text == "none" => Ok(Place::None),
            _ => text.parse().map(Place::Board).map_err(|why: String| format!("{why}; or app:NAME or board")),
        }
    }
}

impl<Cable> Place<Cable> {
    fn cable(&self) -> Option<&Cable> {
        match self {
            Place::Board(cable) => Some(cable),
            _ => None,
        }
    }
}

/// Address of a network device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mac([u8; 6]);

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let byte = |digits: &str| {
            let hex = digits.len() == 2 && digits.bytes().all(|c| c.is_ascii_hexdigit());
            hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
        };
        let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
        let mac: Option<[u8; 6]> = bytes.and_then(|bytes| bytes.try_into().ok());
        // Drivers use a random address instead of an invalid one.
        mac.filter(|mac| mac[0] & 1 == 0 && *mac != [0; 6]).map(Mac).ok_or_else(|| {
            "write six bytes such as 02:56:49:41:44:02, of one device: the first byte even, not all of them 0"
                .to_owned()
        })
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The store of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskSpec {
    /// Zeroed memory of this size, lost when the card ends.
    Memory(u64),
    /// A file.
    File(String),
    /// Memory with the bytes of a file, lost when the card ends.
    Copy(String),
    /// No disk.
    None,
}

impl FromStr for DiskSpec {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "none" {
            return Ok(DiskSpec::None);
        }
        if let Some(path) = text.strip_prefix("file:").filter(|path| !path.is_empty()) {
            return Ok(DiskSpec::File(path.to_owned()));
        }
        if let Some(path) = text.strip_prefix("copy:").filter(|path| !path.is_empty()) {
            return Ok(DiskSpec::Copy(path.to_owned()));
        }
        let (digits, shift) = match text.trim_end_matches(['K', 'M', 'G']) {
            digits if text.len() == digits.len() => (digits, 0),
            digits if text.ends_with('K') => (digits, 10),
            digits if text.ends_with('M') => (digits, 20),
            digits => (digits, 30),
        };
        let bytes = digits.parse::<u64>().ok().filter(|n| *n > 0 && *n <= u64::MAX >> shift);
        bytes.map(|n| n << shift).filter(|n| n % SECTOR == 0).map(DiskSpec::Memory).ok_or_else(|| {
            format!("write a size such as 64M (a multiple of {SECTOR}), file:PATH, copy:PATH or none")
        })
    }
}

/// Size of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsoleSize {
    columns: u16,
    rows: u16,
}

impl ConsoleSize {
    fn of_terminal(on_it: bool) -> Option<Self> {
        let (rows, columns) = on_it.then(crate::terminal::window).flatten()?;
        Some(Self { columns, rows })
    }

    fn tell(self, console: &Function) -> Result {
        Ok(console.set_console_size(self.columns, self.rows)?)
    }
}

impl FromStr for ConsoleSize {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = |text: &str| text.parse().ok().filter(|n| *n > 0);
        text.split_once('x')
            .and_then(|(columns, rows)| Some(Self { columns: number(columns)?, rows: number(rows)? }))
            .ok_or_else(|| "write columns and rows, from 1 to 65535, such as 132x50".to_owned())
    }
}

/// Functions that are connected while this value exists.
pub struct Connected {
    /// The console, if its size follows the terminal.
    console: Option<Function>,
    disk: Option<Disk>,
    /// The XDMA-compatible function, if its user BAR gives access to slots.
    xdma: Option<Function>,
    /// Description of the windows of the user BAR.
    windows: Vec<String>,
    _slots: Vec<Arc<Slot>>,
    cables: Vec<Cable>,
}

impl Connected {
    /// Description of cables and windows of the user BAR: a line each.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let cables = self.cables.iter().map(cable_line);
        cables.chain(self.windows.iter().cloned())
    }

    /// Called when the size of the terminal may have changed.
    pub fn resize(&self) -> Result {
        match (&self.console, ConsoleSize::of_terminal(true)) {
            (Some(console), Some(size)) => size.tell(console),
            _ => Ok(()),
        }
    }

    /// Removes the disk from its driver; writes are in its file afterwards.
    pub fn close(mut self) -> Result {
        if let Some(xdma) = self.xdma.take() {
            xdma.open_slots(&[])?;
        }
        let closed = self.disk.take().map_or(Ok(()), |disk| Ok(disk.close()?));
        self.cables.into_iter().fold(closed, |so_far, cable| {
            let unplugged = cable.close();
            so_far.and(unplugged.map_err(|e| Failure::Run(e.to_string())))
        })
    }
}

/// Description of a cable.
pub fn cable_line(cable: &Cable) -> String {
    format!("a cable of the board is connected to {}", cable.place())
}

impl ConnectArgs {
    /// Files that functions use.
    pub fn files(&self) -> Vec<&Path> {
        let disk = match &self.disk {
            DiskSpec::File(path) | DiskSpec::Copy(path) => Some(Path::new(path)),
            DiskSpec::Memory(_) | DiskSpec::None => None,
        };
        let net = self.net.iter().filter_map(Place::cable).flat_map(backend::Net::files);
        disk.into_iter().chain(net).collect()
    }

    /// Where the network device is.
    fn network(&self) -> Place<backend::Net> {
        self.net.clone().unwrap_or_else(|| Place::App("udp_echo".into()))
    }

    /// The other end of the Ethernet port, where a client connects the functions.
    pub fn cable_alone(&self, with: &str) -> Result<Option<backend::Net>> {
        match &self.net {
            None => Ok(None),
            Some(Place::Board(to)) => Ok(Some(to.clone())),
            Some(Place::App(_) | Place::None) => usage(format!(
                "'{with}' cannot be used with '--net <WHERE>', unless that is the other end of the Ethernet port: the client of this card connects the network device"
            )),
        }
    }

    /// Whether the console uses standard input and output.
    pub fn on_stdio(&self) -> bool {
        self.uart == Place::Board(backend::Console::Stdio)
    }

    /// Fails if features were given where another process decides on them.
    pub fn refuse_features(&self, who: &str) -> Result {
        if self.features.is_empty() { Ok(()) } else { usage(format!("--features has no effect here: {who}")) }
    }

    /// Sets what the functions may offer to their drivers.
    pub fn offer(&self, card: &Arc<SimCard>) -> Result {
        if self.features.is_empty() {
            return Ok(());
        }
        let card = Card::open_with(Arc::clone(card) as _, Timeouts::default())?;
        for change in self.feature_changes()? {
            card.function(change.kind)?.allow_features(change.apply(Features::DEFAULT))?;
        }
        Ok(())
    }

    /// What is given with --features, one change for each function.
    pub fn feature_changes(&self) -> Result<Vec<FeatureChange>> {
        let mut all: Vec<FeatureChange> = Vec::new();
        for change in &self.features {
            match all.iter_mut().find(|earlier| earlier.kind == change.kind) {
                Some(earlier) => {
                    *earlier = earlier.and(*change).or_else(|why| usage(format!("--features: {why}")))?
                }
                None => all.push(*change),
            }
        }
        Ok(all)
    }

    /// Fails if a file or an app does not exist or is of the wrong kind: before anything is downloaded or built.
    pub fn check(&self, project: &Project) -> Result {
        if let DiskSpec::File(path) | DiskSpec::Copy(path) = &self.disk {
            regular(path.as_ref()).map_err(Failure::by_usage)?;
        }
        if let Place::App(name) = &self.network() {
            streaming(project, name)?;
        }
        if let Place::App(name) = &self.uart {
            streaming(project, name)?;
        }
        if let Some(name) = &self.disk_app {
            registers(&of_a_disk(project, name)?, &self.disk_registers(project, name)?)?;
        }
        for name in &self.xdma_app {
            registers(&project.load(name)?, &[])?;
        }
        Ok(())
    }

    /// Connects every function of the card.
    pub fn connect(&self, project: &Project, opened: &Opened) -> Result<Connected> {
        let mut slots = Vec::new();
        let mut cables = Vec::new();
        let function = |kind| opened.card.function(kind);
        if !self.share.is_empty() {
            opened.card.set_sharing(&Sharing { host: self.share.clone(), ..Sharing::default() })?;
        }
        let mut windows = Vec::new();
        for name in &self.xdma_app {
            let slot = load(project, opened, &project.load(name)?, &[])?;
            let (index, at) = (slot.index(), slot.index() << 12);
            windows.push(format!(
                "{name} is in slot {index}: its registers are at {at:#x} of the user BAR of xdma"
            ));
            slots.push(Arc::new(slot));
        }
        let xdma = if slots.is_empty() { None } else { Some(function(FunctionKind::Xdma)?) };
        if let Some(xdma) = &xdma {
            xdma.open_slots(&slots.iter().map(|slot| slot.index()).collect::<Vec<_>>())?;
        }
        if let Ok(net) = function(FunctionKind::Net) {
            net.set_mac(self.mac.0)?;
            let place = self.network();
            self.place(project, opened, &net, &place, &mut slots)?;
            if let (Some(sim), Some(to)) = (&opened.sim, place.cable()) {
                cables.extend(Cable::net(&sim.function, to).map_err(at("--net"))?);
            }
        }
        let mut console = function(FunctionKind::Console).ok();
        if let Some(console) = &console {
            if let Some(size) = self.console_size.or_else(|| ConsoleSize::of_terminal(self.on_stdio())) {
                size.tell(console)?;
            }
            self.place(project, opened, console, &self.uart, &mut slots)?;
            if let (Some(sim), Some(to)) = (&opened.sim, self.uart.cable()) {
                cables.extend(Cable::console(&sim.function, to).map_err(at("--uart"))?);
            }
        }
        for kind in [FunctionKind::Entropy, FunctionKind::Input] {
            if let Ok(function) = function(kind) {
                self.place(project, opened, &function, &Place::Board(()), &mut slots)?;
            }
        }
        let disk = match function(FunctionKind::Blk) {
            Ok(blk) if self.disk != DiskSpec::None => Some(self.disk(project, opened, blk, &mut slots)?),
            _ => None,
        };
        if let Some(sim) = &opened.sim {
            sim.function.set_entropy(Entropy::System);
        }
        console = console.filter(|_| self.on_stdio() && self.console_size.is_none());
        Ok(Connected { console, disk, xdma, windows, _slots: slots, cables })
    }

    fn place<Cable>(
        &self,
        project: &Project,
        opened: &Opened,
        function: &Function,
        place: &Place<Cable>,
        slots: &mut Vec<Arc<Slot>>,
    ) -> Result {
        let to = match place {
            Place::None => Attachment::Nothing,
            Place::Board(_) => Attachment::Board,
            Place::App(name) => {
                let slot = load(project, opened, &streaming(project, name)?, &[])?;
                let index = slot.index();
                slots.push(Arc::new(slot));
                Attachment::Slot(index)
            }
        };
        function.moderate(self.moderate)?;
        function.attach(to)?;
        Ok(function.set_up(to != Attachment::Nothing)?)
    }

    /// Registers of the disk's app. Its register `sectors` must agree with the header, or data is corrupted unnoticed.
    fn disk_registers(&self, project: &Project, app: &str) -> Result<Vec<(String, String)>> {
        const SECTORS: &str = "sectors";
        let mut set = self.set.clone();
        if project.load(app)?.registers.iter().any(|register| register.name == SECTORS) {
            if set.iter().any(|(name, _)| name == SECTORS) {
                return usage(format!("register {SECTORS} of a disk's app is set by --disk-sectors"));
            }
            set.push((SECTORS.into(), u8::from(self.disk_sectors).to_string()));
        }
        Ok(set)
    }

    fn disk(
        &self,
        project: &Project,
        opened: &Opened,
        function: Function,
        slots: &mut Vec<Arc<Slot>>,
    ) -> Result<Disk> {
        let source = match &self.disk {
            DiskSpec::File(path) if self.read_only => Source::file(path)?,
            DiskSpec::File(path) => Source::file_mut(path)?,
            DiskSpec::Copy(path) => {
                regular(path.as_ref())?;
                Source::bytes(SharedBytes::new(std::fs::read(path).map_err(at(path))?))
            }
            DiskSpec::Memory(bytes) => Source::anonymous(*bytes)?,
            DiskSpec::None => return usage("there is no disk"),
        };
        let (name, cut) = (source.name().display().to_string(), source.len() % SECTOR);
        let slot = Arc::new(match &self.disk_app {
            Some(name) => {
                load(project, opened, &of_a_disk(project, name)?, &self.disk_registers(project, name)?)?
            }
            None => opened.card.any_slot()?,
        });
        slots.push(Arc::clone(&slot));
        function.moderate(self.moderate)?;
        let through = match (&self.disk_app, self.disk_sectors) {
            (None, _) => Through::Nothing,
            (Some(_), false) => Through::App,
            (Some(_), true) => Through::AppWithSectors,
        };
        let disk = Disk::open(function, slot, source, self.read_only, through)?;
        if cut > 0 {
            let name = plain(&name);
            tell!(
                "{name}: its last {cut} bytes are not on the disk, which has whole sectors of {SECTOR} bytes"
            );
        }
        Ok(disk)
    }
}

/// An app with one stream each way.
fn streaming(project: &Project, name: &str) -> Result<Manifest> {
    let app = project.load(name)?;
    if app.one_stream_each_way() {
        return Ok(app);
    }
    usage(format!(
        "app {name} does not have exactly one input and one output stream, so no data can be sent through it"
    ))
}

/// An app that the data of a disk can pass through.
fn of_a_disk(project: &Project, name: &str) -> Result<Manifest> {
    let app = streaming(project, name)?;
    match app.stream_out.first().map(|output| output.length) {
        Some(Length::Message(bytes)) => usage(format!(
            "app {name} responds with {bytes} bytes to a message of any length, but a disk needs as many as it has sent"
        )),
        _ => Ok(app),
    }
}

/// Loads an app into a free slot and sets its registers.
pub fn load(project: &Project, opened: &Opened, app: &Manifest, set: &[(String, String)]) -> Result<Slot> {
    let (_, given) = registers(app, set)?;
    let image = crate::project::build(project, app, opened.card.info(), Variant::Fast)?;
    let image = std::fs::read(&image.container).map_err(at(image.container.display()))?;
    let slot = opened.card.any_slot().map_err(|e| Failure::Run(format!("app {}: {e}", app.name)))?;
    slot.load(&image)?;
    set_registers(&slot, app, &given)?;
    Ok(slot)
}
