// SPDX-License-Identifier: Apache-2.0
//! Trees that `make install` made: sources and results, without the tools that build them.

use std::path::Path;

use crate::{Error, Result};

/// Lists what was installed, see `tools/install.sh`; no checkout has it.
const LIST: &str = "installed-files";

/// Whether this is the folder of an installed tree.
pub(crate) fn is_installed(root: &Path) -> bool {
    root.join(LIST).is_file()
}

/// An error in an installed tree; `what` needs tools.
pub(crate) fn require_checkout(root: &Path, what: &str) -> Result<()> {
    if is_installed(root) {
        return Err(Error::Installed { what: what.to_owned(), root: root.to_owned() });
    }
    Ok(())
}
