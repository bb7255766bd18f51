// SPDX-License-Identifier: Apache-2.0
//! Gives libviaduct its SONAME: programs load the library of the ABI that they were linked against.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const HEADER: &str = "include/viaduct.h";
    println!("cargo::rerun-if-changed={HEADER}");
    let text = std::fs::read_to_string(Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join(HEADER))?;
    let version =
        text.lines().find_map(|line| line.strip_prefix("#define VIADUCT_ABI_VERSION ")?.strip_suffix('u'));
    let version: u32 = version.ok_or("viaduct.h has no VIADUCT_ABI_VERSION")?.parse()?;
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libviaduct.so.{version}");
    Ok(())
}
