// SPDX-License-Identifier: Apache-2.0
//! How link and card memory are shared by all, beside the schedules of slots.

use std::str::FromStr;

use crate::card::schedule::SCHEDULES_SINCE;
use crate::card::{Card, FunctionKind};
use crate::error::{Error, Result};
use crate::protocol::regs::*;

/// Who uses host memory, and has a share of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostUser {
    /// The DMA engine that loads and stores pages for slots.
    Pages,
    /// What apps access in host memory themselves, of all slots together.
    Slots,
    /// A function: its driver's queues and data.
    Function(FunctionKind),
}

impl HostUser {
    /// Its place in the registers.
    fn number(self) -> u32 {
        match self {
            Self::Pages => 0,
            Self::Slots => 1,
            Self::Function(kind) => 1 + u32::from(kind.number()),
        }
    }
}

impl FromStr for HostUser {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "pages" => Ok(Self::Pages),
            "slots" => Ok(Self::Slots),
            function => function.parse().map(Self::Function).map_err(|_| {
                format!(
                    "{text:?} is not one of pages, slots, {}",
                    FunctionKind::ALL.map(FunctionKind::name).join(", ")
                )
            }),
        }
    }
}

/// The share of one of them. As text: `net=4`, or `net=4,first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostShare {
    /// Whose.
    pub user: HostUser,
    /// In bytes, reads and writes each, beside the others, from 1 to [`Slot::MAX_WEIGHT`](crate::Slot::MAX_WEIGHT).
    pub weight: u8,
    /// It goes before those without this, which get what it leaves.
    pub first: bool,
}

impl FromStr for HostShare {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |cause: &str| {
            Error::Invalid(format!("share {text:?}: {cause}; write WHO=WEIGHT or WHO=WEIGHT,first"))
        };
        let (user, share) = text.split_once('=').ok_or_else(|| wrong("there is no weight"))?;
        let user = user.parse().map_err(|cause: String| wrong(&cause))?;
        let (weight, first) = match share.split_once(',') {
            Some((weight, "first")) => (weight, true),
            Some((_, other)) => return Err(wrong(&format!("{other:?} is not \"first\""))),
            None => (share, false),
        };
        let weight = weight.parse().map_err(|_| wrong(&format!("{weight:?} is not a weight")))?;
        Ok(Self { user, weight, first })
    }
}

/// How what several want at a time is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// By bytes, in proportion to weights, behind those who go first.
    #[default]
    Weighted,
    /// By bursts, one after the other, whatever their lengths, weights and classes: who accesses in 4 KiB gets 64 times as much as who accesses in
    /// 64 bytes. For comparison.
    RoundRobin,
}

/// How link and channels of card memory are shared. Of the DMA engine, which loads pages for all slots, neither policy nor quanta change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sharing {
    /// How.
    pub policy: Policy,
    /// Bytes that each unit of weight gets of a channel at a time, a power of two of 2 to 64 beats (128 bytes to 4 KiB with beats of 64 bytes).
    /// None: 16 beats. With less a small access waits for less, with more a DRAM row is used for longer.
    pub channel_quantum: Option<u64>,
    /// The same of host memory, up to the longest burst (4 KiB, or 256 beats). None: that.
    pub host_quantum: Option<u64>,
    /// Those who are not listed have weight 1.
    pub host: Vec<HostShare>,
}

impl Sharing {
    /// Values of `HOST_WEIGHTS` and `SHARING`.
    fn registers(&self, card: &Card) -> Result<(u32, u32)> {
        let (mut weights, mut first) = (VIA_CARD_HOST_WEIGHTS_VALUE_RESET, 0);
        for share in &self.host {
            card.check_weight(share.weight)?;
            if let HostUser::Function(kind) = share.user {
                card.check_function(kind)?;
            }
            let place = share.user.number();
            weights = weights & !(0xf << (4 * place)) | u32::from(share.weight) << (4 * place);
            first = first & !(1 << place) | u32::from(share.first) << place;
        }
        let beat = card.info().data_bytes as u64;
        let longest = (4096 / beat).min(256);
        let channel = log2("channel", self.channel_quantum, 16, 64.min(longest), beat)?;
        let host = log2("host memory", self.host_quantum, longest, longest, beat)?;
        let plain = u32::from(self.policy == Policy::RoundRobin);
        let sharing = first << VIA_CARD_SHARING_HOST_FIRST_LSB
            | plain << VIA_CARD_SHARING_PLAIN_LSB
            | channel << VIA_CARD_SHARING_CHAN_QUANTUM_LSB
            | host << VIA_CARD_SHARING_HOST_QUANTUM_LSB;
        Ok((weights, sharing))
    }
}

/// Base-2 logarithm of a quantum in beats, of `usual` ones if it is not given.
fn log2(what: &str, bytes: Option<u64>, usual: u64, most: u64, beat: u64) -> Result<u32> {
    let Some(bytes) = bytes else { return Ok(usual.ilog2()) };
    if !bytes.is_power_of_two() || !(2 * beat..=most * beat).contains(&bytes) {
        return Err(Error::Invalid(format!(
            "a quantum of {bytes} bytes of {what}: give a power of two from {} to {}",
            2 * beat,
            most * beat
        )));
    }
    Ok((bytes / beat).ilog2())
}

impl Card {
    /// Sets it, for all who use the card.
    pub fn set_sharing(&self, sharing: &Sharing) -> Result<()> {
        self.check_process()?;
        self.check_version(SCHEDULES_SINCE, "policies, quanta and shares of functions")?;
        let (weights, rest) = sharing.registers(self)?;
        self.write_card(VIA_CARD_HOST_WEIGHTS, weights)?;
        self.write_card(VIA_CARD_SHARING, rest)
    }

    /// Undoes what an earlier owner has set.
    pub(super) fn forget_sharing(&self) -> Result<()> {
        match self.info().version.1 {
            minor if minor < SCHEDULES_SINCE => Ok(()),
            _ => self.set_sharing(&Sharing::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_read_from_text() {
        let parse = |text: &str| text.parse::<HostShare>();
        let net = HostShare { user: HostUser::Function(FunctionKind::Net), weight: 4, first: false };
        assert_eq!(parse("net=4").unwrap(), net);
        assert_eq!(
            parse("pages=15,first").unwrap(),
            HostShare { user: HostUser::Pages, weight: 15, first: true }
        );
        for wrong in ["", "net", "net=", "net=x", "net=4,last", "disk=4", "net=300", "=4"] {
            assert!(parse(wrong).unwrap_err().to_string().contains("WHO=WEIGHT"), "{wrong:?}");
        }
    }

    #[test]
    fn a_quantum_is_a_power_of_two_that_the_card_has() {
        assert_eq!(log2("", None, 16, 64, 64).unwrap(), 4);
        assert_eq!(log2("", Some(256), 16, 64, 64).unwrap(), 2);
        assert_eq!(log2("", Some(4096), 16, 64, 64).unwrap(), 6);
        for wrong in [0, 64, 300, 8192, u64::MAX] {
            assert!(log2("", Some(wrong), 16, 64, 64).is_err(), "{wrong}");
        }
    }
}
