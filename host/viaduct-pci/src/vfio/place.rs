// SPDX-License-Identifier: Apache-2.0
//! Checks of a function before it is opened: its driver, its IOMMU group, permissions. Every error says what to do.

use super::PciAddress;
use crate::peer::Peer;
use crate::{PciError, Result};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Drivers that the kernel accepts for the other functions of a group.
const HARMLESS: [&str; 3] = ["vfio-pci", "pci-stub", "pcieport"];

/// A function, and the kernel's folders that describe it.
pub(super) struct Place {
    pub(super) address: PciAddress,
    /// `/sys/bus/pci`
    bus: PathBuf,
    /// `/dev/vfio`
    vfio: PathBuf,
}

impl Place {
    pub(super) fn new(address: PciAddress) -> Self {
        Self { address, bus: "/sys/bus/pci".into(), vfio: "/dev/vfio".into() }
    }

    /// An error that says why the function is unusable, and what to do.
    pub(super) fn unusable(&self, why: impl std::fmt::Display) -> PciError {
        PciError::Unusable(format!("{}: {why}", self.address))
    }

    fn folder(&self) -> PathBuf {
        self.bus.join("devices").join(self.address.to_string())
    }

    /// Number of the function's IOMMU group, if the function is usable.
    pub(super) fn group(&self) -> Result<String> {
        let folder = self.folder();
        if !folder.is_dir() {
            return Err(self.unusable("there is no such PCI function; `lspci -D` shows those there are"));
        }
        let Some(group) = target(&folder.join("iommu_group")) else {
            return Err(self.unusable(
                "it is not behind an IOMMU: enable one in the firmware and for the kernel \
                 (intel_iommu=on or amd_iommu=on on its command line)",
            ));
        };
        let driver = target(&folder.join("driver"));
        if driver.as_deref() != Some("vfio-pci") {
            let who = driver
                .as_ref()
                .map_or("no driver is bound to it".into(), |name| format!("driver {name} is bound to it"));
            return Err(self.unusable(format!("{who}; as root: {}", self.how_to_bind(driver.is_some()))));
        }
        Ok(group)
    }

    /// The commands that bind the function to vfio-pci.
    fn how_to_bind(&self, bound: bool) -> String {
        let (bus, folder) = (self.bus.display(), self.folder());
        let folder = folder.display();
        let load = match self.bus.join("drivers/vfio-pci").is_dir() {
            true => "",
            false => "modprobe vfio-pci && ",
        };
        let release = match bound {
            true => format!("echo {} > {folder}/driver/unbind && ", self.address),
            false => String::new(),
        };
        format!(
            "{load}echo vfio-pci > {folder}/driver_override && {release}echo {} > {bus}/drivers_probe",
            self.address
        )
    }

    /// Other functions in the group that keep it from being used.
    pub(super) fn in_the_way(&self) -> PciError {
        let members = std::fs::read_dir(self.folder().join("iommu_group/devices"));
        let mut others: Vec<String> = members
            .into_iter()
            .flatten()
            .filter_map(|member| {
                let path = member.ok()?.path();
                let driver = target(&path.join("driver"))?;
                let name = path.file_name()?.to_string_lossy().into_owned();
                (!HARMLESS.contains(&driver.as_str())).then(|| format!("{name} (driver {driver})"))
            })
            .collect();
        others.sort();
        let who = if others.is_empty() { "others".into() } else { others.join(", ") };
        self.unusable(format!(
            "it shares its IOMMU group with {who}: bind them to vfio-pci too, or put the card into another slot"
        ))
    }

    /// Opens the container, which holds DMA mappings.
    pub(super) fn open_container(&self) -> Result<File> {
        self.open("vfio", "load the driver with `modprobe vfio-pci`")
    }

    /// Opens a group.
    pub(super) fn open_group(&self, group: &str) -> Result<File> {
        self.open(group, "the function has left its group, or its IOMMU is off")
    }

    fn open(&self, name: &str, if_missing: &str) -> Result<File> {
        let path = self.vfio.join(name);
        let opened = File::options().read(true).write(true).open(&path);
        opened.map_err(|error| self.not_opened(&path, error, if_missing))
    }

    fn not_opened(&self, path: &Path, error: std::io::Error, if_missing: &str) -> PciError {
        let shown = path.display();
        match error.kind() {
            ErrorKind::NotFound => self.unusable(format!("there is no {shown}: {if_missing}")),
            ErrorKind::PermissionDenied => self.unusable(format!(
                "no permission to open {shown}: run as root, or take ownership with `sudo chown $USER {shown}`"
            )),
            ErrorKind::ResourceBusy => {
                let who = Peer::with_open(path).map_or("another program".into(), |peer| peer.to_string());
                PciError::Busy(format!(
                    "{}: in use: {who} has {shown} open; end it, or wait for it",
                    self.address
                ))
            }
            _ => PciError::Os { what: format!("opening {shown}"), source: error },
        }
    }
}

/// Last component of a link's target.
fn target(link: &Path) -> Option<String> {
    Some(std::fs::read_link(link).ok()?.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    const CARD: &str = "0000:01:00.0";

    /// A machine with functions in IOMMU group 7, each with its driver.
    struct Machine {
        dir: tempfile::TempDir,
    }

    impl Machine {
        fn new(functions: &[(&str, Option<&str>)]) -> Self {
            let machine = Self { dir: tempfile::tempdir().unwrap() };
            let group = machine.path("groups/7/devices");
            for folder in [&group, &machine.path("pci/devices"), &machine.path("vfio")] {
                create_dir_all(folder).unwrap();
            }
            for (name, driver) in functions {
                let folder = machine.path("pci/devices").join(name);
                create_dir_all(&folder).unwrap();
                symlink(machine.path("groups/7"), folder.join("iommu_group")).unwrap();
                symlink(&folder, group.join(name)).unwrap();
                if let Some(driver) = driver {
                    let drivers = machine.path("pci/drivers").join(driver);
                    create_dir_all(&drivers).unwrap();
                    symlink(drivers, folder.join("driver")).unwrap();
                }
            }
            machine
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn place(&self) -> Place {
            Place { address: CARD.parse().unwrap(), bus: self.path("pci"), vfio: self.path("vfio") }
        }

        /// The reason why the function is unusable, without the folder.
        fn why(&self) -> String {
            let error = self.place().group().unwrap_err();
            assert!(matches!(error, PciError::Unusable(_)));
            error.to_string().replace(&*self.dir.path().to_string_lossy(), "")
        }
    }

    #[test]
    fn a_function_that_is_not_there() {
        assert_eq!(
            Machine::new(&[]).why(),
            "0000:01:00.0: there is no such PCI function; `lspci -D` shows those there are"
        );
    }

    #[test]
    fn a_machine_without_iommu() {
        let machine = Machine::new(&[(CARD, None)]);
        std::fs::remove_file(machine.path("pci/devices").join(CARD).join("iommu_group")).unwrap();
        assert!(machine.why().contains("intel_iommu=on"));
    }

    #[test]
    fn a_function_that_is_not_bound_comes_with_the_commands() {
        let machine = Machine::new(&[(CARD, None)]);
        assert_eq!(
            machine.why(),
            "0000:01:00.0: no driver is bound to it; as root: modprobe vfio-pci && \
             echo vfio-pci > /pci/devices/0000:01:00.0/driver_override && \
             echo 0000:01:00.0 > /pci/drivers_probe"
        );
        create_dir_all(machine.path("pci/drivers/vfio-pci")).unwrap();
        symlink(machine.path("pci/drivers/uio"), machine.path("pci/devices").join(CARD).join("driver"))
            .unwrap();
        assert_eq!(
            machine.why(),
            "0000:01:00.0: driver uio is bound to it; as root: \
             echo vfio-pci > /pci/devices/0000:01:00.0/driver_override && \
             echo 0000:01:00.0 > /pci/devices/0000:01:00.0/driver/unbind && \
             echo 0000:01:00.0 > /pci/drivers_probe"
        );
    }

    #[test]
    fn others_in_the_group_are_named() {
        let vfio = Some("vfio-pci");
        let machine = Machine::new(&[
            (CARD, vfio),
            ("0000:01:00.1", Some("virtio-pci")),
            ("0000:01:00.2", vfio),
            ("0000:01:00.3", None),
            ("0000:00:01.0", Some("pcieport")),
            ("0000:01:00.4", Some("nvme")),
        ]);
        assert_eq!(machine.place().group().unwrap(), "7");
        let error = machine.place().in_the_way().to_string();
        assert!(
            error.contains("with 0000:01:00.1 (driver virtio-pci), 0000:01:00.4 (driver nvme): "),
            "{error}"
        );
    }

    #[test]
    fn files_that_cannot_be_opened() {
        let machine = Machine::new(&[(CARD, Some("vfio-pci"))]);
        let error = machine.place().open_container().unwrap_err().to_string();
        assert!(error.contains("modprobe vfio-pci"), "{error}");
        let error = machine.place().open_group("7").unwrap_err().to_string();
        assert!(error.contains("vfio/7"), "{error}");
        write(machine.path("vfio/7"), "").unwrap();
        machine.place().open_group("7").unwrap();
        let refused = |errno| {
            let error = std::io::Error::from_raw_os_error(errno);
            machine.place().not_opened(Path::new("/dev/vfio/7"), error, "").to_string()
        };
        assert!(refused(libc::EACCES).contains("sudo chown $USER /dev/vfio/7"));
        assert!(refused(libc::EBUSY).contains("in use: another program has /dev/vfio/7 open"));
        assert_eq!(refused(libc::EIO), "opening /dev/vfio/7: Input/output error (os error 5)");
    }
}
