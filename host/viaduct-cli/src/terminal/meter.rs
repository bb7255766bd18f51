// SPDX-License-Identifier: Apache-2.0
//! Progress of a run, on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use viaduct::{CardInfo, Progress};

use super::progress_target;

/// A bar on a terminal that can show it, nothing elsewhere.
pub struct Meter {
    bar: ProgressBar,
    info: CardInfo,
}

impl Meter {
    /// A bar that appears with the first progress.
    pub fn new(info: CardInfo) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        Meter { bar, info }
    }

    /// Shows the progress of the run.
    pub fn show(&self, p: Progress) {
        if p.cycles == 0 {
            return;
        }
        let begins = self.bar.length() == Some(0);
        if begins {
            let (template, total) = match p.total_in {
                0 => ("{spinner} {bytes} {msg}", u64::MAX),
                total => ("{bar:30} {bytes} of {total_bytes}, {msg}, {eta} left", total),
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style.progress_chars("██░"));
            }
            self.bar.set_length(total);
        }
        let bytes = p.bytes_in.max(p.bytes_out);
        let rate = bytes as f64 / p.cycles as f64;
        let time = self.info.seconds(p.cycles) * 1e6;
        self.bar.set_message(format!("{rate:.2} bytes per cycle, {time:.0} µs on the card"));
        self.bar.set_position(if p.total_in > 0 { p.bytes_in } else { bytes });
        if begins {
            self.bar.set_draw_target(progress_target());
        }
    }

    /// Removes the bar.
    pub fn close(self) {
        self.bar.finish_and_clear();
    }
}
