// SPDX-License-Identifier: Apache-2.0
//! Names of apps, registers and ports.

/// Prefix that only names in the wrapper may have.
const RESERVED_PREFIX: &str = "via_";
/// Names that generated classes or types cannot have.
const RESERVED: [&str; 4] = ["self", "none", "true", "false"];

pub(crate) const NAME_RULE: &str = "use up to 31 lower-case letters, digits and underscores, a letter first, not starting with via_, and not via, self, none, true or false";

/// Whether this is a valid name of an app.
pub(crate) fn is_free_name(name: &str) -> bool {
    // The module of an app is called after it.
    let module = format!("{name}_");
    is_name(name) && !module.starts_with(RESERVED_PREFIX) && !RESERVED.contains(&name)
}

fn is_name(s: &str) -> bool {
    s.len() <= 31
        && s.starts_with(|c: char| c.is_ascii_lowercase())
        && s.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}
