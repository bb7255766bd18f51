// SPDX-License-Identifier: Apache-2.0
//! The screen of `viaduct top`.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame};

use super::rates::Rates;
use crate::process::signals::Signals;

/// The terminal, as it was before when this is dropped.
pub struct Screen(ManuallyDrop<DefaultTerminal>);

impl Screen {
    /// Takes the terminal.
    pub fn open() -> io::Result<Self> {
        ratatui::try_init().map(|terminal| Self(ManuallyDrop::new(terminal)))
    }

    /// Shows rates, and what is wrong if something is.
    pub fn draw(&mut self, address: &str, rates: &Rates, trouble: Option<&str>) -> io::Result<()> {
        self.0.draw(|frame| render(frame, address, rates, trouble))?;
        Ok(())
    }

    /// Waits so long for a key, a signal, or the end of the terminal.
    pub fn wait(&self, signals: &Signals, limit: Duration) -> io::Result<Heard> {
        let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        let stdin = io::stdin();
        let look = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut looks = [look(stdin.as_fd()), look(signals.as_fd())];
        match nix::poll::poll(&mut looks, limit) {
            // A new size of the terminal, for example.
            Err(Errno::EINTR) => return Ok(Heard::Draw),
            other => other?,
        };
        let [keys, signal] = looks.map(|look| look.revents().unwrap_or(PollFlags::empty()));
        // A terminal that was closed can be read for ever, and never has a key.
        if !signal.is_empty()
            || keys.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL)
        {
            return Ok(Heard::End);
        }
        if !keys.contains(PollFlags::POLLIN) || !event::poll(Duration::ZERO)? {
            return Ok(Heard::Nothing);
        }
        Ok(match event::read()? {
            Event::Key(key)
                if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') =>
            {
                Heard::End
            }
            Event::Key(key) if matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) => Heard::End,
            Event::Resize(..) => Heard::Draw,
            _ => Heard::Nothing,
        })
    }
}

/// What a wait has heard.
pub enum Heard {
    /// The user or a signal wants the end, or the terminal is closed.
    End,
    /// The screen has to be drawn again.
    Draw,
    /// Nothing that matters.
    Nothing,
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal may be closed: the library's own end would then panic as it reports that.
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}

fn render(frame: &mut Frame<'_>, address: &str, rates: &Rates, trouble: Option<&str>) {
    let heights = rates.tables.iter().map(|table| Constraint::Max(table.rows.len() as u16 + 3));
    let link = if rates.link.is_some() { 3 } else { 0 };
    let parts = [Constraint::Length(2), Constraint::Length(link)].into_iter().chain(heights);
    let areas = Layout::vertical(parts.chain([Constraint::Fill(1)])).split(frame.area());
    let told = match trouble {
        Some(trouble) => Line::from(trouble).red(),
        None => Line::from(format!("{address}, q to end")).dim(),
    };
    frame.render_widget(Paragraph::new(vec![Line::from(rates.card.as_str()).bold(), told]), areas[0]);
    let halves = Layout::horizontal([Constraint::Fill(1); 2]).split(areas[1]);
    for ((area, title), share) in
        halves.iter().zip(["link from the card", "link to the card"]).zip(rates.link.into_iter().flatten())
    {
        let gauge = Gauge::default().block(Block::bordered().title(title)).ratio(share);
        frame.render_widget(gauge, *area);
    }
    for (area, table) in areas.iter().skip(2).zip(&rates.tables) {
        let widths =
            std::iter::once(Constraint::Length(12)).chain(table.heads.iter().map(|_| Constraint::Length(11)));
        let head =
            Row::new(std::iter::once("").chain(table.heads.iter().copied())).style(Style::new().bold());
        let rows = table.rows.iter().map(|row| Row::new(row.iter().map(String::as_str)));
        let drawn = Table::new(rows, widths).header(head).block(Block::bordered().title(table.name));
        frame.render_widget(drawn, *area);
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use viaduct_metrics::{Channel, Function, Link, Slot, Snapshot};

    use super::*;

    fn drawn(width: u16, height: u16, trouble: Option<&str>) -> String {
        let new = Snapshot {
            board: "gen3x16".into(),
            clock_khz: 250_000,
            cycles: 1000,
            link: Link { from_card_seconds: 2e-6, to_card_seconds: 0.0 },
            channels: vec![Channel::default(); 4],
            slots: vec![Slot { loaded: true, stream_in_bytes: 48_000, ..Slot::default() }; 4],
            functions: vec![Function { name: "mgmt".into(), ..Function::default() }; 7],
            ..Snapshot::default()
        };
        let rates = Rates::between(&Snapshot::default(), &new, Duration::from_secs(1));
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| render(frame, "there:1", &rates, trouble)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_screen_of_a_shared_card_has_no_link_and_all_tables() {
        use viaductd::{Occupant, RouteView, SlotView, View};

        let user = Some(Occupant { app: "gups".into(), uid: 4_000_000_000, ..Occupant::default() });
        let used = SlotView { loaded: true, user, moved: Some(Default::default()), ..SlotView::default() };
        let route = RouteView { source: "slot:3:0".into(), sink: "board:net".into(), changing: false };
        let view = View {
            functions: vec!["console".into()],
            slots: vec![used; 4],
            routes: vec![route],
            ..View::default()
        };
        let rates = Rates::of_slots(&view, &view, Duration::from_secs(1));
        let shown = |width, height| {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| render(frame, "/run/cards", &rates, None)).unwrap();
            terminal.backend().to_string()
        };
        let screen = shown(130, 40);
        for word in
            ["/run/cards", "gups", "400000000", "read waits", "misses", "board:net", "in effect", "console"]
        {
            assert!(screen.contains(word), "{word}\n{screen}");
        }
        assert!(!screen.contains("link to the card"));
        for (width, height) in [(80, 24), (20, 5), (1, 1)] {
            shown(width, height);
        }
    }

    #[test]
    fn a_screen_shows_all_and_a_small_one_what_fits() {
        let screen = drawn(120, 40, None);
        for word in ["gen3x16", "there:1", "link to the card", "50%", "slot 3", "48.00", "channel 3", "mgmt"]
        {
            assert!(screen.contains(word), "{word}\n{screen}");
        }
        assert!(drawn(120, 40, Some("the card is gone")).contains("the card is gone"));
        for (width, height) in [(80, 24), (20, 5), (1, 1)] {
            drawn(width, height, None);
        }
    }
}
