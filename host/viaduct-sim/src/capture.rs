// SPDX-License-Identifier: Apache-2.0
//! Captures of Ethernet frames (pcap, pcapng) as the far end of a line.
//!
//! A capture may come from anywhere, so each length in it is checked, and an error names the file and the frame. What is written is pcap with
//! nanoseconds, which every program for captures reads.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapReader, PcapWriter, RawPcapPacket};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

use crate::far_end::{FrameInfo, FrameSink, FrameSource, LONGEST_SENT};

/// First bytes of a file in the format pcapng.
const NG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const FCS: usize = 4;
/// The shortest frame without FCS: what sends a shorter one pads it.
const LEAST: usize = 60;
/// Longest time from the first frame to another one, when time stamps count.
const LONGEST_REPLAY: Duration = Duration::from_secs(3600);
/// Interfaces of a capture: more is no capture that anybody made.
const INTERFACES: usize = 4096;
/// Bytes of a frame that are written, at most: all of them.
const SNAP: u32 = 65_535;

/// The first error of a capture, which is also that of its line.
#[derive(Clone, Default)]
pub(crate) struct Trouble {
    first: Arc<Mutex<Option<String>>>,
    /// Nobody asks for it before the card ends, so it is told at once.
    told_at_once: bool,
}

impl Trouble {
    pub fn new(told_at_once: bool) -> Self {
        Self { first: Arc::default(), told_at_once }
    }

    fn set(&self, why: String) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            if self.told_at_once {
                tracing::error!("{why}");
            }
            *first = Some(why);
        }
    }

    pub fn get(&self) -> Option<String> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// When frames of a capture come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// One after the other, as fast as the line carries them.
    Line,
    /// At the intervals of their time stamps, or later if the line is not fast enough.
    Stamps,
}

/// What a line to captures is made of: a file that frames come from, and one for those of the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captures {
    /// Frames to the card; none without a file.
    pub input: Option<PathBuf>,
    /// Frames from the card, which are dropped without a file.
    pub output: Option<PathBuf>,
    /// When the frames come.
    pub pace: Pace,
}

fn bad(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// In the words of a user.
fn told(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            bad("the file ends within it, or its length is wrong")
        }
        PcapError::IoError(error) => error,
        PcapError::IncompleteBuffer => bad("a length in it is wrong"),
        PcapError::InvalidField(field) => bad(format!("damaged ({field})")),
        other => bad(format!("damaged ({other})")),
    }
}

// ---------------------------------------------------------------------------------------------------- input

/// What a time stamp and the end of a frame mean in a capture.
#[derive(Debug, Clone, Copy)]
struct Meaning {
    /// Frames have their FCS.
    fcs: bool,
    /// Units of time stamps in a second.
    units: u64,
}

impl Meaning {
    fn time(self, stamp: u64) -> Duration {
        let rest = u128::from(stamp % self.units) * 1_000_000_000 / u128::from(self.units);
        Duration::new(stamp / self.units, rest as u32)
    }
}

/// A link type as in the header of a capture in the format pcap, where its upper bits tell of the FCS.
fn fcs_of(link: u32) -> io::Result<bool> {
    const HAS_LENGTH: u32 = 1 << 26;
    ethernet(link & 0xffff)?;
    // In units of 16 bits.
    match (link & HAS_LENGTH != 0, link >> 28) {
        (false, _) | (true, 0) => Ok(false),
        (true, 2) => Ok(true),
        (true, units) => Err(bad(format!("its frames have an FCS of {} bits; Ethernet has 32", 16 * units))),
    }
}

fn ethernet(link: u32) -> io::Result<()> {
    if link == u32::from(DataLink::ETHERNET) {
        return Ok(());
    }
    Err(bad(format!("its frames are of link type {link}, not Ethernet (1)")))
}

fn meaning(interface: &InterfaceDescriptionBlock) -> io::Result<Meaning> {
    ethernet(interface.linktype.into())?;
    let mut found = Meaning { fcs: false, units: 1_000_000 };
    for option in &interface.options {
        match option {
            InterfaceDescriptionOption::IfFcsLen(0) => {}
            InterfaceDescriptionOption::IfFcsLen(4 | 32) => found.fcs = true,
            InterfaceDescriptionOption::IfFcsLen(other) => {
                return Err(bad(format!("its frames have an FCS of {other}; Ethernet has 4 bytes")));
            }
            // A power of two, or of ten.
            InterfaceDescriptionOption::IfTsResol(power) => {
                let (base, exponent) = if power & 0x80 != 0 { (2, power & 0x7f) } else { (10, *power) };
                found.units = u64::checked_pow(base, exponent.into())
                    .ok_or_else(|| bad("the resolution of its time stamps is finer than any clock"))?;
            }
            _ => {}
        }
    }
    Ok(found)
}

enum Reader {
    Pcap(PcapReader<File>, Meaning),
    /// With what is known of the interfaces of the present section.
    Ng(PcapNgReader<File>, Vec<Result<Meaning, String>>),
}

/// What is known of an interface by its number.
fn of(interfaces: &[Result<Meaning, String>], number: usize) -> io::Result<Meaning> {
    match interfaces.get(number) {
        Some(Ok(meaning)) => Ok(*meaning),
        Some(Err(why)) => Err(bad(why)),
        None => Err(bad(format!("it is of interface {number}, which the file does not have"))),
    }
}

/// A frame of a capture.
struct Stored<'a> {
    data: &'a [u8],
    /// Length on the line.
    full: u32,
    time: Option<Duration>,
    fcs: bool,
}

impl Reader {
    fn open(mut file: File) -> io::Result<Self> {
        let mut magic = [0; 4];
        file.read_exact(&mut magic).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                bad("not a capture in the format pcap or pcapng: it is too short")
            }
            _ => e,
        })?;
        file.rewind()?;
        if magic == NG_MAGIC {
            let reader = PcapNgReader::new(file).map_err(|e| bad(format!("its header: {}", told(e))))?;
            return Ok(Self::Ng(reader, Vec::new()));
        }
        let reader = PcapReader::new(file).map_err(|error| match error {
            PcapError::InvalidField(_) => bad("not a capture in the format pcap or pcapng"),
            other => bad(format!("its header: {}", told(other))),
        })?;
        let header = reader.header();
        let fcs = fcs_of(header.datalink.into())?;
        let units = if header.ts_resolution == TsResolution::NanoSecond { 1_000_000_000 } else { 1_000_000 };
        Ok(Self::Pcap(reader, Meaning { fcs, units }))
    }

    /// Calls `take` with the next frame; `None` at the end.
    fn next<T>(&mut self, take: impl FnOnce(Stored) -> io::Result<T>) -> io::Result<Option<T>> {
        match self {
            Self::Pcap(reader, meaning) => {
                let Some(packet) = reader.next_raw_packet() else { return Ok(None) };
                let RawPcapPacket { ts_sec, ts_frac, orig_len, data, .. } = packet.map_err(told)?;
                let stamp = u64::from(ts_sec) * meaning.units + u64::from(ts_frac);
                let time = Some(meaning.time(stamp));
                take(Stored { data: &data, full: orig_len, time, fcs: meaning.fcs }).map(Some)
            }
            Self::Ng(reader, interfaces) => loop {
                let Some(block) = reader.next_block() else { return Ok(None) };
                match block.map_err(told)? {
                    Block::SectionHeader(_) => interfaces.clear(),
                    Block::InterfaceDescription(_) if interfaces.len() == INTERFACES => {
                        return Err(bad("the capture has more interfaces than any machine"));
                    }
                    // One that no frame is of may be of any kind.
                    Block::InterfaceDescription(interface) => {
                        interfaces.push(meaning(&interface).map_err(|error| error.to_string()));
                    }
                    Block::EnhancedPacket(packet) => {
                        let meaning = of(interfaces, packet.interface_id as usize)?;
                        // The library takes each unit for a nanosecond.
                        let stamp = u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX);
                        let time = Some(meaning.time(stamp));
                        let stored =
                            Stored { data: &packet.data, full: packet.original_len, time, fcs: meaning.fcs };
                        return take(stored).map(Some);
                    }
                    Block::SimplePacket(packet) => {
                        let full = packet.original_len;
                        // The block does not say how much of the frame it has: what is left is padding.
                        let len = packet.data.len().min(full as usize);
                        let fcs = of(interfaces, 0)?.fcs;
                        return take(Stored { data: &packet.data[..len], full, time: None, fcs }).map(Some);
                    }
                    _ => {}
                }
            },
        }
    }
}

/// The frames of a capture, in the format pcap or pcapng.
pub struct CaptureSource {
    path: PathBuf,
    /// `None`: no more frames come.
    reader: Option<Reader>,
    pace: Pace,
    first: Option<Duration>,
    number: u64,
    trouble: Trouble,
}

impl CaptureSource {
    /// Opens a capture: one that is none is an error, with its path.
    pub fn open(path: &Path, pace: Pace) -> io::Result<Self> {
        Self::open_with(path, pace, Trouble::default())
    }

    /// What is wrong with the frame at which the source has ended, with path and number; `None` if it was the last one.
    pub fn error(&self) -> Option<String> {
        self.trouble.get()
    }

    pub(crate) fn open_with(path: &Path, pace: Pace, trouble: Trouble) -> io::Result<Self> {
        let open = || {
            // Opening a FIFO would wait for its other end.
            let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
            let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
            if !file.metadata()?.is_file() {
                return Err(bad("frames can only come from a regular file"));
            }
            Reader::open(file)
        };
        let reader = Some(open().map_err(|e| at(path, e))?);
        Ok(Self { path: path.into(), reader, pace, first: None, number: 0, trouble })
    }

    /// A line that nothing comes from.
    pub(crate) fn none(trouble: Trouble) -> Self {
        Self { path: PathBuf::new(), reader: None, pace: Pace::Line, first: None, number: 0, trouble }
    }
}

impl FrameSource for CaptureSource {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<FrameInfo> {
        let reader = self.reader.as_mut()?;
        self.number += 1;
        let (pace, first) = (self.pace, &mut self.first);
        let read = reader.next(|stored| {
            let Stored { data, full, time, fcs } = stored;
            if data.is_empty() || data.len() > LONGEST_SENT {
                return Err(bad(format!("it has {} bytes; a line carries 1 to {LONGEST_SENT}", data.len())));
            }
            if (data.len() as u64) < u64::from(full) {
                return Err(bad(format!("only {} of its {full} bytes were captured", data.len())));
            }
            let after = match (pace, time) {
                (Pace::Line, _) => Duration::ZERO,
                (Pace::Stamps, None) => return Err(bad("it has no time stamp")),
                (Pace::Stamps, Some(time)) => time.saturating_sub(*first.get_or_insert(time)),
            };
            if after > LONGEST_REPLAY {
                let (late, most) = (after.as_secs(), LONGEST_REPLAY.as_secs());
                return Err(bad(format!(
                    "it is {late} s behind the first, and at most {most} s are replayed"
                )));
            }
            let damaged = match data.split_last_chunk::<FCS>() {
                Some((body, sum)) if fcs && !body.is_empty() => {
                    frame.extend_from_slice(body);
                    crc32fast::hash(body).to_le_bytes() != *sum
                }
                // What there is of a frame without a whole FCS.
                _ => {
                    frame.extend_from_slice(data);
                    fcs
                }
            };
            // Captures often have the frames that a machine sends before its port pads them.
            if !fcs && frame.len() < LEAST {
                frame.resize(LEAST, 0);
            }
            Ok(FrameInfo { after, damaged })
        });
        match read {
            Ok(Some(info)) => return Some(info),
            Ok(None) => {}
            Err(error) => {
                frame.clear();
                self.trouble.set(format!("{}: frame {}: {error}", self.path.display(), self.number));
            }
        }
        self.reader = None;
        None
    }
}

// ---------------------------------------------------------------------------------------------------- output

/// A file for frames.
pub(crate) struct CaptureSink {
    path: PathBuf,
    /// `None`: frames are dropped.
    file: Option<PcapWriter<BufWriter<File>>>,
    trouble: Trouble,
}

impl CaptureSink {
    /// Creates a capture, or empties the file. `input` may not be the same file.
    pub fn create(path: &Path, input: Option<&Path>, trouble: Trouble) -> io::Result<Self> {
        let open = || {
            let identity = |path: &Path| std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
            let ours = identity(path);
            if ours.is_some() && input.and_then(identity) == ours {
                return Err(bad(
                    "the frames to the card come from this file; give another one for those from it",
                ));
            }
            let kind = std::fs::metadata(path).map(|meta| meta.file_type()).ok();
            // A reader that does not read would hold up the card.
            if kind.is_some_and(|kind| !kind.is_file() && !kind.is_char_device()) {
                return Err(bad("frames can only be written to a regular file or a device"));
            }
            let flags = libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
            OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags).open(path)
        };
        let file = open().map_err(|e| at(path, e))?;
        let header = PcapHeader {
            snaplen: SNAP,
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::NanoSecond,
            endianness: Endianness::native(),
            ..PcapHeader::default()
        };
        let file = PcapWriter::with_header(BufWriter::new(file), header).map_err(|e| at(path, told(e)))?;
        Ok(Self { path: path.into(), file: Some(file), trouble })
    }

    /// A line whose frames go nowhere.
    pub fn none(trouble: Trouble) -> Self {
        Self { path: PathBuf::new(), file: None, trouble }
    }

    fn failed(&mut self, error: io::Error) {
        self.file = None;
        self.trouble.set(format!("{}: {error}", self.path.display()));
    }
}

impl FrameSink for CaptureSink {
    fn put(&mut self, frame: &[u8], sent: Duration) {
        let Some(file) = &mut self.file else { return };
        let len = frame.len() as u32;
        let packet = RawPcapPacket {
            ts_sec: u32::try_from(sent.as_secs()).unwrap_or(u32::MAX),
            ts_frac: sent.subsec_nanos(),
            incl_len: len,
            orig_len: len,
            data: frame.into(),
        };
        if let Err(error) = file.write_raw_packet(&packet) {
            self.failed(told(error));
        }
    }

    fn end(&mut self) {
        let Some(file) = self.file.take() else { return };
        if let Err(error) = file.into_writer().flush() {
            self.failed(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WITH_FCS: u32 = 1 << 26 | 2 << 28;

    fn pcap(frames: &[(u32, &[u8])], link: u32) -> Vec<u8> {
        let mut data = Vec::new();
        for word in [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 65_535, link] {
            data.extend_from_slice(&u32::to_le_bytes(word));
        }
        for (nanoseconds, frame) in frames {
            for word in [0, *nanoseconds, frame.len() as u32, frame.len() as u32] {
                data.extend_from_slice(&word.to_le_bytes());
            }
            data.extend_from_slice(frame);
        }
        data
    }

    fn pcapng(frames: &[&[u8]], resolution: u8) -> Vec<u8> {
        let block = |kind: u32, body: &[u8]| {
            let mut body = body.to_vec();
            body.resize(body.len().next_multiple_of(4), 0);
            let len = (12 + body.len() as u32).to_le_bytes();
            [&kind.to_le_bytes()[..], &len, &body, &len].concat()
        };
        let mut data =
            block(0x0a0d_0d0a, &[[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0].as_slice(), &[0xff; 8]].concat());
        let resolution = [9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0];
        data.extend(block(1, &[[1, 0, 0, 0, 0, 0, 0, 0].as_slice(), &resolution].concat()));
        for (k, frame) in (0u32..).zip(frames) {
            let len = (frame.len() as u32).to_le_bytes();
            let head = [0u32.to_le_bytes(), 0u32.to_le_bytes(), k.to_le_bytes(), len, len].concat();
            data.extend(block(6, &[&head[..], frame].concat()));
        }
        data
    }

    /// The frames of a file with these bytes, and the error at its end.
    fn frames(data: &[u8], pace: Pace) -> (Vec<(FrameInfo, Vec<u8>)>, Option<String>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), data).unwrap();
        let mut source = match CaptureSource::open(file.path(), pace) {
            Ok(source) => source,
            Err(error) => return (Vec::new(), Some(error.to_string())),
        };
        let (mut all, mut frame) = (Vec::new(), Vec::new());
        while let Some(info) = source.next(&mut frame) {
            assert!((1..=LONGEST_SENT).contains(&frame.len()) && info.after <= LONGEST_REPLAY);
            all.push((info, std::mem::take(&mut frame)));
        }
        assert!(source.next(&mut frame).is_none(), "the end is the end");
        (all, source.error())
    }

    #[test]
    fn frames_have_what_they_had_on_the_line() {
        let (long, short) = ([7; 100], [8; 42]);
        let (got, trouble) = frames(&pcap(&[(500, &long), (1500, &short)], 1), Pace::Stamps);
        assert_eq!(trouble, None);
        assert_eq!(got[0], (FrameInfo::default(), long.to_vec()));
        let mut padded = short.to_vec();
        padded.resize(LEAST, 0);
        assert_eq!(got[1], (FrameInfo { after: Duration::from_nanos(1000), damaged: false }, padded));

        let sum = crc32fast::hash(&long).to_le_bytes();
        let (good, bad) = ([&long[..], &sum].concat(), [&long[..], &[0; 4]].concat());
        let (got, trouble) =
            frames(&pcap(&[(0, &good), (0, &bad), (0, &short), (0, &[1; 3])], 1 | WITH_FCS), Pace::Line);
        assert_eq!(trouble, None);
        let damaged: Vec<bool> = got.iter().map(|(info, _)| info.damaged).collect();
        assert_eq!(damaged, [false, true, true, true]);
        let lengths: Vec<usize> = got.iter().map(|(_, frame)| frame.len()).collect();
        assert_eq!(lengths, [100, 100, 38, 3], "what is short stays short");
    }

    #[test]
    fn time_stamps_have_their_unit() {
        let frames_of = |resolution| frames(&pcapng(&[&[1; 60], &[2; 60]], resolution), Pace::Stamps);
        for (resolution, nanoseconds) in [(9, 1), (6, 1000), (3, 1_000_000), (0x80 | 10, 976_562), (12, 0)] {
            let (got, trouble) = frames_of(resolution);
            assert_eq!((trouble, got.len()), (None, 2), "{resolution}");
            assert_eq!(got[1].0.after, Duration::from_nanos(nanoseconds), "{resolution}");
        }
        for resolution in [20, 127, 0x80 | 64] {
            assert!(frames_of(resolution).1.unwrap().contains("finer than any clock"), "{resolution}");
        }
    }

    #[test]
    fn an_error_names_file_and_frame() {
        let whole = pcap(&[(0, &[1; 60]), (0, &[2; 60])], 1);
        for end in 0..whole.len() {
            let (got, trouble) = frames(&whole[..end], Pace::Line);
            // A capture may end between two frames.
            let between = [24, 100].contains(&end);
            assert_eq!(trouble.is_none(), between, "{end}");
            assert_eq!(got.len(), usize::from(end >= 100), "{end}");
        }
        let whole = pcapng(&[&[1; 60]], 9);
        for end in 0..whole.len() {
            let (got, trouble) = frames(&whole[..end], Pace::Line);
            let between = [28, 60].contains(&end);
            assert!(got.is_empty() && trouble.is_none() == between, "{end}: {trouble:?}");
        }
        for (link, why) in [(105, "link type 105"), (1 | 1 << 26 | 1 << 28, "FCS of 16 bits")] {
            assert!(frames(&pcap(&[], link), Pace::Line).1.unwrap().contains(why));
        }
    }

    #[test]
    fn interfaces_have_an_end() {
        let head = &pcapng(&[], 9)[..];
        let (section, interface) = head.split_at(28);
        let data = [section, &interface.repeat(INTERFACES + 1)].concat();
        assert!(frames(&data, Pace::Line).1.unwrap().contains("more interfaces"));
    }

    #[test]
    fn a_full_device_is_the_first_error() {
        let trouble = Trouble::default();
        let mut sink = CaptureSink::create(Path::new("/dev/full"), None, trouble.clone()).unwrap();
        for _ in 0..100 {
            sink.put(&[0; 1514], Duration::ZERO);
        }
        sink.end();
        assert!(trouble.get().unwrap().starts_with("/dev/full: No space left"));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd_for_a_capture(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
            frames(&noise, Pace::Line);
            for head in [pcap(&[(0, &[1; 60])], 1), pcapng(&[&[1; 60]], 9)] {
                frames(&[&head[..], &noise].concat(), Pace::Stamps);
            }
        }

        #[test]
        fn nor_is_a_capture_with_changes(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
            for mut data in [pcap(&[(0, &[1; 60]), (9, &[2; 61])], 1 | WITH_FCS), pcapng(&[&[1; 60], &[2; 61]], 9)] {
                for (at, byte) in &changes {
                    let at = at.index(data.len());
                    data[at] = *byte;
                }
                frames(&data, Pace::Line);
                frames(&data, Pace::Stamps);
            }
        }
    }
}
