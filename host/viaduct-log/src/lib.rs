// SPDX-License-Identifier: Apache-2.0
//! Logging of the libraries to standard error, for Viaduct's own programs.
//!
//! `VIADUCT_LOG` selects the messages, as in `VIADUCT_LOG=viaduct=debug`. Colours are used on terminals unless
//! `NO_COLOR` is set. Messages of the levels error, warn and info are limited in rate, because a client, a guest or an
//! app could cause any number of them.
#![deny(missing_docs)]

mod kept;
mod options;
mod throttle;

pub use kept::{keep, kept};
pub use options::plain_words;

use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Instant;

use throttle::{Cause, Throttle};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Writer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Environment variable that selects the messages.
const VARIABLE: &str = "VIADUCT_LOG";

static THROTTLE: OnceLock<Arc<Throttle>> = OnceLock::new();

/// Writes this program's messages to standard error: those that `VIADUCT_LOG` selects, or else those of `default`
/// and above. Does nothing if the program has already set up logging.
pub fn init(default: &str) {
    let asked = std::env::var(VARIABLE).unwrap_or_default();
    let wanted = |text: &str| text.parse::<Targets>();
    let (filter, error) = match wanted(&asked) {
        Ok(filter) if !asked.is_empty() => (filter, None),
        asked_wrong => (wanted(default).unwrap_or_default(), asked_wrong.err()),
    };
    let throttle = Arc::clone(THROTTLE.get_or_init(Arc::default));
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        // The errors would be reported on standard error, with a panic if that itself fails.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal() && colours_wanted(|name| std::env::var(name).ok()))
        .event_format(Limited { throttle, format: Format::default() });
    let ours = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
    if let (Ok(()), Some(error)) = (ours, error) {
        tracing::warn!(%error, "{VARIABLE}={asked} is not understood; write a level, or viaduct=debug");
    }
}

/// Reports how many messages were suppressed; to be called at the end of a program.
pub fn finish() {
    if let Some(throttle) = THROTTLE.get() {
        // A failure to write cannot be reported anywhere.
        throttle.held_back(None).iter().for_each(|cause| drop(writeln!(std::io::stderr(), "{cause}")));
    }
}

/// Whether to use colours.
fn colours_wanted(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("NO_COLOR").is_none_or(|value| value.is_empty())
        && variable("TERM").is_none_or(|value| value != "dumb")
}

/// Formats the messages that the throttle passes.
struct Limited {
    throttle: Arc<Throttle>,
    format: Format,
}

impl<S, N> FormatEvent<S, N> for Limited
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        // More detailed levels are on request only, and not limited.
        if *metadata.level() <= Level::INFO {
            let now = Instant::now();
            let (place, thread) = (metadata.callsite(), std::thread::current().id());
            if !self.throttle.passes(place, thread, now, || Cause::new(metadata, message(event))) {
                return Ok(());
            }
            for cause in self.throttle.held_back(Some(now)) {
                writeln!(to, "{cause}")?;
            }
        }
        self.format.format_event(context, to, event)
    }
}

/// The fixed text of an event.
fn message(event: &Event<'_>) -> String {
    struct Message(String);
    impl Visit for Message {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            if field.name() == "message" {
                self.0 = format!("{value:?}");
            }
        }
    }
    let mut message = Message(String::new());
    event.record(&mut message);
    message.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_those_who_want_them() {
        let wanted = |no_color: Option<&str>, term: Option<&str>| {
            colours_wanted(|name| if name == "TERM" { term } else { no_color }.map(str::to_owned))
        };
        assert!(wanted(None, Some("xterm")) && wanted(None, None) && wanted(Some(""), Some("xterm")));
        assert!(!wanted(Some("1"), Some("xterm")) && !wanted(Some("0"), None) && !wanted(None, Some("dumb")));
    }
}
