// SPDX-License-Identifier: Apache-2.0
//! `viaductd`: several programs on one card. See docs/daemon.md.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::builder::RangedU64ValueParser;
use clap::{CommandFactory, FromArgMatches, Parser};
use clap_complete::Shell;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{SigSet, Signal};
use viaduct::{Card, Schedule, Timeouts};
use viaduct_build::{Container, Project, Variant, meant};
use viaduct_pci::PciFunction;
use viaduct_sim::{CardSpec, Profile, SimCard, SimConfig};
use viaductd::wire::{Kind, Refusal};
use viaductd::{Apps, Config, Daemon, Quotas};

/// Signals so soon behind the first one are the same request: some programs signal a process and its group.
const ONE_SIGNAL: Duration = Duration::from_secs(1);

/// Serve one card to several programs over a Unix socket; ends on SIGTERM, SIGHUP or Ctrl-C
#[derive(Parser)]
#[command(
    name = "viaductd",
    version,
    after_help = "Exit codes: 0 ended by a signal, 1 failed, 2 wrong usage."
)]
struct Args {
    /// Where to listen
    #[arg(long, value_name = "PATH", required_unless_present_any = ["completions", "man"])]
    socket: Option<PathBuf>,
    /// The card: `sim`, simulated in this process; `unix:PATH`, served by `viaduct card`; `vfio:0000:01:00.0`, a PCI
    /// function bound to vfio-pci
    #[arg(long, value_name = "CARD", default_value = "sim")]
    card: CardSpec,
    /// Board and link to simulate; `viaduct info card` lists them
    #[arg(long, value_name = "NAME", value_parser = profile)]
    profile: Option<Profile>,
    /// User that may connect, by number; repeat for more. Unless one or a group is named: the user of this process
    #[arg(long, value_name = "UID")]
    allow_uid: Vec<u32>,
    /// Group that may connect, by number: the effective group of the client
    #[arg(long, value_name = "GID")]
    allow_gid: Vec<u32>,
    /// Clients at a time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    clients: usize,
    /// Clients of one user at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    clients_per_uid: usize,
    /// Slots of a client
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=16))]
    slots: u64,
    /// Card memory of a client in MiB, divided equally among the slots it may have [default: its part of the card's]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(4..=1 << 24))]
    card_memory: Option<u64>,
    /// Mappings of a client; one that is cut into parts counts as many
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=65536))]
    mappings: u64,
    /// Descriptors that are kept open for a client's mappings
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    descriptors: u64,
    /// Requests of a client that are not answered yet
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=256))]
    requests: u64,
    /// Memory of this machine for a client in MiB: mappings without a file, on the host, or private and written
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    host_memory: u64,
    /// How the slots of a user's clients are scheduled beside others, parts with commas: weight=1 to 15, first, rate=BYTES_PER_SECOND, burst=BYTES,
    /// limit, in-flight=BYTES; repeat for more users [default: weight=1]
    #[arg(long, value_name = "UID=SCHEDULE", value_parser = schedule)]
    schedule: Vec<(u32, Schedule)>,
    /// Accept files on FUSE file systems: the process that serves one can hold up the release of its client's slot
    #[arg(long)]
    allow_fuse: bool,
    /// Seconds for a client's first message, and for it to take a response
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    patience: u64,
    /// Print a script that completes options in a shell, and end
    #[arg(long, value_name = "SHELL", exclusive = true)]
    completions: Option<Shell>,
    /// Print the manual page, and end
    #[arg(long, exclusive = true)]
    man: bool,
    /// Print more messages (twice: all)
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

fn profile(name: &str) -> std::result::Result<Profile, String> {
    Profile::by_name(name)
        .ok_or_else(|| format!("no profile named {name:?}; {}", meant(name, Profile::names())))
}

/// `UID=SCHEDULE`
fn schedule(text: &str) -> std::result::Result<(u32, Schedule), String> {
    let parts = text.split_once('=').and_then(|(uid, schedule)| Some((uid.parse().ok()?, schedule)));
    let Some((uid, schedule)) = parts else {
        return Err("write the number of a user, =, and a schedule, as in 1000=weight=3,first".into());
    };
    Ok((uid, schedule.parse().map_err(|error: viaduct::Error| error.to_string())?))
}

fn main() -> ExitCode {
    // A negative number is the value of the option before it, which says what it takes.
    let negative = |arg: clap::Arg| {
        let takes = arg.get_action().takes_values();
        if takes { arg.allow_negative_numbers(true) } else { arg }
    };
    let options = Args::command().mut_args(negative).try_get_matches();
    let args = match options.and_then(|options| Args::from_arg_matches(&options)) {
        Ok(args) => args,
        Err(error) => {
            let told = error.render().to_string();
            let plain = viaduct_log::plain_words(&told);
            if plain == told || !error.use_stderr() {
                error.exit();
            }
            // That it cannot be written can be told nowhere.
            let _ = write!(std::io::stderr(), "{plain}");
            return ExitCode::from(2);
        }
    };
    viaduct_log::init(match args.verbose {
        0 => "viaductd=info,warn",
        1 => "info",
        _ => "debug",
    });
    let result = run(&args);
    viaduct_log::finish();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // That it cannot be written can be told nowhere.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn run(args: &Args) -> Result {
    let Some(socket) = &args.socket else { return describe(args) };
    // Before any thread is started, so that all threads block the signals.
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    signals.thread_block()?;
    viaduct_pci::raise_descriptor_limit();
    let (wanted, limit) = (args.clients as u64 * args.descriptors, getrlimit(Resource::RLIMIT_NOFILE)?.0);
    if wanted > limit / 2 {
        tracing::warn!(wanted, limit, "clients may need more descriptors than there are; raise `ulimit -n`");
    }
    let project = Project::locate(|| std::env::current_exe().ok())?;
    let card = Card::open_with(open(args, &project)?, Timeouts::default())?;
    let info = card.info();
    let mut quotas = Quotas::new(info.slots, (info.chan_mib << 20) * info.channels as u64);
    quotas.card_memory = match args.card_memory {
        Some(mib) => mib << 20,
        None => quotas.card_memory * args.slots,
    };
    if args.card_memory.is_some_and(|mib| mib < 4 * args.slots) {
        let least = 4 * args.slots;
        return Err(format!(
            "--card-memory: {} slots need at least {least} MiB: two pages of 2 MiB each",
            args.slots
        )
        .into());
    }
    quotas.slots = args.slots;
    quotas.mappings = args.mappings;
    quotas.descriptors = args.descriptors;
    quotas.requests = args.requests;
    quotas.host_memory = args.host_memory << 20;
    let mut config = Config::new(quotas);
    if !args.allow_uid.is_empty() || !args.allow_gid.is_empty() {
        config.uids.clone_from(&args.allow_uid);
        config.gids.clone_from(&args.allow_gid);
    }
    config.clients = args.clients;
    config.clients_per_uid = args.clients_per_uid;
    config.patience = Duration::from_secs(args.patience);
    config.schedules = args.schedule.iter().copied().collect();
    for schedule in config.schedules.values() {
        schedule.check(&card)?;
    }
    if let Some(most) = config.schedules.values().map(|schedule| schedule.weight).max() {
        // It loads the pages of all clients, which would wait for those of the greatest weight.
        card.set_dma_weights(most, 1)?;
    }
    config.allow_fuse = args.allow_fuse;
    let place = socket.display();
    let daemon = Daemon::start(socket, card, Arc::new(Installed(project)), config)
        .map_err(|e| format!("{place}: {e}"))?;
    tracing::info!(socket = %place, "serving");
    let signal = signals.wait()?;
    tracing::info!(%signal, clients = daemon.clients(), "ending: changed pages are written back; a second signal ends at once");
    let first = Instant::now();
    std::thread::spawn(move || {
        while signals.wait().is_ok() {
            if first.elapsed() >= ONE_SIGNAL {
                tracing::error!("ended by a second signal: changed pages may be lost");
                std::process::exit(1);
            }
        }
    });
    drop(daemon);
    Ok(())
}

/// Prints what the options are.
fn describe(args: &Args) -> Result {
    let mut text = Vec::new();
    match args.completions {
        Some(shell) => clap_complete::generate(shell, &mut Args::command(), "viaductd", &mut text),
        None => clap_mangen::Man::new(Args::command()).render(&mut text)?,
    }
    Ok(std::io::stdout().write_all(&text)?)
}

fn open(args: &Args, project: &Project) -> Result<Arc<dyn PciFunction>> {
    if let CardSpec::At(location) = &args.card {
        if args.profile.is_some() {
            return Err("--profile is for a simulated card in this process; leave it out".into());
        }
        return Ok(location.open_within(Duration::ZERO, |_| true)?);
    }
    let profile = args.profile.clone().unwrap_or_default();
    let card_object =
        project.build_card(Variant::Fast, profile.channels, &mut |line| tracing::info!("{line}"))?;
    let image_dir = project.images(Variant::Fast);
    Ok(Arc::new(SimCard::open(SimConfig { profile, card_object, image_dir, chan_mib: None })?))
}

/// The apps of the project, as they are built: nothing is built for a client.
struct Installed(Project);

impl Apps for Installed {
    fn image(&self, name: &str) -> std::result::Result<Vec<u8>, Refusal> {
        let refused = |errno, text| Refusal::new(Kind::Card, errno, text);
        // The name is one of those that exist: no path.
        let app = self.0.load(name).map_err(|e| refused(nix::libc::ENOENT, e.to_string()))?;
        let path = self.0.images(Variant::Fast).join(&app.name).join(&app.name).with_extension("via");
        std::fs::read(path).map_err(|e| {
            let text =
                format!("app {}: its image cannot be read ({e}); run `viaduct build {0}` there", app.name);
            refused(e.raw_os_error().unwrap_or(nix::libc::EIO), text)
        })
    }

    fn check(&self, image: &[u8]) -> std::result::Result<(), Refusal> {
        let refused = |e: viaduct_build::Error| Refusal::new(Kind::Card, nix::libc::EINVAL, e.to_string());
        Container::decode(Path::new("the image"), image).map_err(refused).map(drop)
    }
}
