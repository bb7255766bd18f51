// SPDX-License-Identifier: Apache-2.0
//! Values of an app's registers as given on the command line.

use viaduct_build::Manifest;

use crate::fail::Result;
use crate::job::Values;

/// Reads `REGISTER=VALUE`.
pub fn setting(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write REGISTER=VALUE".to_owned()),
    }
}

/// Values of all registers of an app, and of those named by `set`.
pub fn registers(app: &Manifest, set: &[(String, String)]) -> Result<(Values, Values)> {
    let values = app.register_values(set.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
    let named = |name: &String| set.iter().any(|(n, _)| n == name);
    let given = values.clone().into_iter().filter(|(name, _)| named(name)).collect();
    Ok((values, given))
}
