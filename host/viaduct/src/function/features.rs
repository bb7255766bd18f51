// SPDX-License-Identifier: Apache-2.0
//! Features of the virtio functions by name: supported, offered and negotiated.

use std::str::FromStr;

use crate::card::FunctionKind;

/// A feature bit of the virtio functions: its number, its name, an alternative name, and the feature it depends on.
struct Feature {
    bit: u32,
    name: &'static str,
    alias: &'static str,
    needs: Option<&'static str>,
}

const fn feature(bit: u32, name: &'static str) -> Feature {
    Feature { bit, name, alias: "", needs: None }
}

impl Feature {
    /// The name in Linux, if QEMU's differs.
    const fn or(self, alias: &'static str) -> Self {
        Self { alias, ..self }
    }

    const fn needs(self, what: &'static str) -> Self {
        Self { needs: Some(what), ..self }
    }
}

/// Features of every virtio function (VIRTIO 1.3, 6), by their names in QEMU.
const ANY: [Feature; 9] = [
    feature(28, "indirect_desc").or("ring_indirect_desc"),
    feature(29, "event_idx").or("ring_event_idx"),
    feature(VERSION_1, "version_1"),
    feature(33, "iommu_platform").or("access_platform"),
    feature(RING_PACKED, "packed").or("ring_packed"),
    feature(IN_ORDER, "in_order"),
    feature(36, "order_platform"),
    feature(38, "notification_data"),
    feature(40, "queue_reset").or("ring_reset"),
];
const VERSION_1: u32 = 32;
const RING_PACKED: u32 = 34;
const IN_ORDER: u32 = 35;

const NET: [Feature; 12] = [
    feature(0, "csum"),
    feature(1, "guest_csum"),
    feature(3, "mtu").or("host_mtu"),
    feature(5, "mac"),
    feature(15, "mrg_rxbuf"),
    feature(16, "status"),
    feature(17, "ctrl_vq"),
    feature(18, "ctrl_rx").needs("ctrl_vq"),
    feature(20, "ctrl_rx_extra").needs("ctrl_vq"),
    feature(22, "mq").needs("ctrl_vq"),
    feature(23, "ctrl_mac_addr").needs("ctrl_vq"),
    feature(63, "speed_duplex"),
];
const BLK: [Feature; 8] = [
    feature(2, "seg_max"),
    feature(BLK_RO, "ro"),
    feature(6, "blk_size"),
    feature(9, "flush"),
    feature(10, "topology"),
    feature(12, "mq"),
    feature(13, "discard"),
    feature(14, "write_zeroes"),
];
const BLK_RO: u32 = 5;
const CONSOLE: [Feature; 3] = [feature(0, "size"), feature(1, "multiport"), feature(2, "emerg_write")];

fn of_device(kind: FunctionKind) -> &'static [Feature] {
    match kind {
        FunctionKind::Net => &NET,
        FunctionKind::Blk => &BLK,
        FunctionKind::Console => &CONSOLE,
        FunctionKind::Entropy | FunctionKind::Input | FunctionKind::Xdma => &[],
    }
}

fn all(kind: FunctionKind) -> impl Iterator<Item = &'static Feature> {
    let any: &[Feature] = if kind == FunctionKind::Xdma { &[] } else { &ANY };
    of_device(kind).iter().chain(any)
}

/// Feature bits of a virtio function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Supported by device and queue engine.
    pub supported: u64,
    /// Allowed by the card's owner from the function's next reset on; unsupported bits have no effect.
    pub allowed: u64,
    /// Offered: read by the driver.
    pub offered: u64,
    /// Accepted by the driver; 0 before.
    pub negotiated: u64,
}

impl Features {
    /// Allowed features by default: all but packed rings and in-order use, with which a widely used poll-mode driver is wrong, and which
    /// software devices do not offer by default either.
    pub const DEFAULT: u64 = !(1 << RING_PACKED | 1 << IN_ORDER);

    /// Supported, but not offered.
    pub fn withheld(&self) -> u64 {
        self.supported & !self.offered
    }

    /// Names of the features among `bits`, in order of number; a bit without a name is `bit N`.
    pub fn names(kind: FunctionKind, bits: u64) -> Vec<String> {
        let name = |bit: u32| {
            let known = all(kind).find(|feature| feature.bit == bit);
            known.map_or_else(|| format!("bit {bit}"), |feature| feature.name.to_owned())
        };
        (0..u64::BITS).filter(|bit| bits >> bit & 1 != 0).map(name).collect()
    }
}

/// Changes to the default features of a function: `net:+packed,-mrg_rxbuf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureChange {
    /// The function.
    pub kind: FunctionKind,
    /// Bits to offer.
    pub on: u64,
    /// Bits to withhold.
    pub off: u64,
}

impl FeatureChange {
    /// `allowed` with the change.
    pub fn apply(&self, allowed: u64) -> u64 {
        allowed & !self.off | self.on
    }

    /// Both changes, of the same function. Fails if a feature is in both, or one needs what the other withholds.
    pub fn and(self, other: Self) -> Result<Self, String> {
        let Self { kind, on, off } = self;
        let both = Self { kind, on: on | other.on, off: off | other.off };
        let twice = (on | off) & (other.on | other.off);
        if let Some(name) = Features::names(kind, twice).first() {
            return Err(format!("feature {name} of {kind} is given twice"));
        }
        // Without the feature that it needs, it cannot be offered.
        for feature in all(kind).filter(|feature| both.on >> feature.bit & 1 != 0) {
            let need = all(kind).find(|other| Some(other.name) == feature.needs);
            if let Some(need) = need.filter(|need| both.off >> need.bit & 1 != 0) {
                return Err(format!("{} needs {}, which is withheld", feature.name, need.name));
            }
        }
        Ok(both)
    }

    fn one(&mut self, text: &str) -> Result<(), String> {
        let kind = self.kind;
        let (on, name) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(name), _) => (true, name),
            (_, Some(name)) => (false, name),
            _ => return Err(format!("write +NAME to offer a feature, -NAME to withhold it, not {text:?}")),
        };
        let named = |feature: &&Feature| feature.name == name || feature.alias == name && !name.is_empty();
        let Some(feature) = all(kind).find(named) else {
            let known: Vec<_> = all(kind).map(|feature| feature.name).collect();
            return Err(format!("{kind} has no feature {name:?}; it has {}", known.join(", ")));
        };
        match (kind, feature.bit) {
            (_, VERSION_1) => return Err("version_1 is always offered: there is no other interface".into()),
            (FunctionKind::Blk, BLK_RO) => {
                return Err("ro is offered when the disk is read-only, and only then".into());
            }
            _ => {}
        }
        let bit = 1 << feature.bit;
        *self = self.and(if on { Self { on: bit, off: 0, kind } } else { Self { on: 0, off: bit, kind } })?;
        Ok(())
    }
}

impl FromStr for FeatureChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((kind, list)) = text.split_once(':') else {
            return Err(format!("write FUNCTION:+NAME,-NAME…, such as net:+packed,-mrg_rxbuf, not {text:?}"));
        };
        let kind: FunctionKind = kind.parse()?;
        if kind == FunctionKind::Xdma {
            return Err("xdma is not a virtio function and has no features".into());
        }
        let mut change = Self { kind, on: 0, off: 0 };
        list.split(',').try_for_each(|text| change.one(text))?;
        Ok(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_by_the_names_of_qemu_and_linux() {
        let change: FeatureChange = "net:+packed,-mrg_rxbuf".parse().unwrap();
        assert_eq!(change, FeatureChange { kind: FunctionKind::Net, on: 1 << 34, off: 1 << 15 });
        assert_eq!(change.apply(Features::DEFAULT), !(1 << 15 | 1 << 35));
        assert_eq!("net:+ring_packed,-mrg_rxbuf".parse(), Ok(change));
        assert_eq!("blk:-mq".parse(), Ok(FeatureChange { kind: FunctionKind::Blk, on: 0, off: 1 << 12 }));
        assert_eq!("net:-mq".parse(), Ok(FeatureChange { kind: FunctionKind::Net, on: 0, off: 1 << 22 }));
        assert_eq!("entropy:-queue_reset".parse::<FeatureChange>().unwrap().off, 1 << 40);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let why = |text: &str| text.parse::<FeatureChange>().unwrap_err();
        assert!(why("packed").contains("net:+packed,-mrg_rxbuf"));
        assert!(why("disk:+packed").contains("no function \"disk\""));
        assert!(why("xdma:+packed").contains("not a virtio function"));
        assert!(why("net:packed").contains("+NAME"));
        assert!(why("net:").contains("+NAME"));
        assert!(why("net:+").contains("no feature \"\""));
        assert!(why("net:+packed,").contains("+NAME"));
        assert!(why("net:+flush").contains("it has csum, guest_csum"));
        assert!(why("input:+PACKED").contains("no feature \"PACKED\""));
        assert!(why("net:+packed,-packed").contains("twice"));
        assert!(why("net:+packed,-ring_packed").contains("twice"));
        assert!(why("net:-version_1").contains("always"));
        assert!(why("blk:+ro").contains("read-only"));
        assert!(why("net:-ctrl_vq,+mq").contains("mq needs ctrl_vq"));
    }

    #[test]
    fn changes_of_one_function_must_not_contradict_each_other() {
        let of = |text: &str| text.parse::<FeatureChange>().unwrap();
        assert_eq!(of("net:+packed").and(of("net:-mrg_rxbuf")), Ok(of("net:+packed,-mrg_rxbuf")));
        for (one, other, why) in [
            ("net:+packed", "net:-packed", "packed of net is given twice"),
            ("net:-mq,+packed", "net:+ring_packed", "packed of net is given twice"),
            ("net:-ctrl_vq", "net:+mq", "mq needs ctrl_vq"),
            ("net:+mq", "net:-ctrl_vq", "mq needs ctrl_vq"),
        ] {
            let error = of(one).and(of(other)).unwrap_err();
            assert!(error.contains(why), "{one} and {other}: {error}");
        }
    }

    #[test]
    fn bits_have_names() {
        assert_eq!(
            Features::names(FunctionKind::Net, 1 << 15 | 1 << 34 | 1 << 62),
            ["mrg_rxbuf", "packed", "bit 62"]
        );
        assert_eq!(Features::names(FunctionKind::Blk, 1 << 12 | 1 << 5), ["ro", "mq"]);
        assert!(Features::names(FunctionKind::Xdma, 0).is_empty());
    }
}
