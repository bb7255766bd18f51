// SPDX-License-Identifier: Apache-2.0
//! `viaduct graph`

use std::path::PathBuf;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use viaduct::{FunctionKind, Port};
use viaductd::{RouteView, View};

use crate::drawing::{
    CHARACTER, Colour, GRID, INK, MUTED, PAGE, ROW, TEXT, finished, lines, style_of, write,
};
use crate::fail::{Failure, Result};
use crate::managed::{ManagedArgs, SOON, size, state, user};
use crate::process::tell::out;
use crate::terminal::text::plain;

/// Draw a card: slots and their apps, functions, ports of the board, memory, and its routes now
#[derive(clap::Args)]
pub struct Args {
    /// The SVG file; standard output without it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    card: ManagedArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let view = args.card.open(SOON)?.look()?;
    let svg = Graph::of(&view, &args.card.place()).svg()?;
    match &args.output {
        Some(path) => write(path, &svg),
        None => out(svg.trim_end()),
    }
}

/// Place and width of the boxes, and of a port's name at the right in one.
const LEFT: i32 = 60;
const WIDTH: i32 = 520;
const NAME: i32 = 76;
/// Edge of the drawing, space within a box, and between boxes.
const MARGIN: i32 = 20;
const INSET: i32 = 12;
const GAP: i32 = 16;
/// Height of what is above the boxes.
const HEAD: i32 = 66;
/// Between two lanes of routes, and from the boxes to the first.
const LANE: i32 = 22;
/// Width of the drawing with few routes.
const NARROWEST: i32 = 700;
/// Characters in a line of a box without ports. Half again as wide as the mean, since a name may be of wide letters.
const ACROSS: i32 = WIDTH - 2 * INSET;
const WIDEST: f64 = 1.25 * CHARACTER;

/// Colours of routes, in turn: neighbours differ.
const ROUTES: [Colour; 6] = [
    Colour(RGBColor(0x09, 0x69, 0xda), "#4493f8"),
    Colour(RGBColor(0xbc, 0x4c, 0x00), "#f0883e"),
    Colour(RGBColor(0x1a, 0x7f, 0x37), "#3fb950"),
    Colour(RGBColor(0x82, 0x50, 0xdf), "#ab7df8"),
    Colour(RGBColor(0xbf, 0x39, 0x89), "#db61a2"),
    Colour(RGBColor(0x1b, 0x7c, 0x83), "#39c5cf"),
];
/// Fills of boxes: a slot in use, and what is not.
const USED: Colour = Colour(RGBColor(0xdd, 0xf4, 0xff), "#10294b");
const UNUSED: Colour = Colour(RGBColor(0xf6, 0xf8, 0xfa), "#151b23");

/// A box.
struct Node {
    title: String,
    /// What is below the title, and the same in lines that fit.
    told: Vec<String>,
    text: Vec<String>,
    used: bool,
    /// Whether it is connected to the line at the left, which is the crossbar.
    memory: bool,
    /// Ends of routes at it: the end as a source or sink, and its name.
    ports: Vec<(End, String)>,
    top: i32,
    height: i32,
}

/// An end of a route: where, and whether it is the source.
#[derive(Clone, PartialEq, Eq)]
struct End(String, bool);

/// A picture of a card.
struct Graph<'a> {
    title: String,
    told: String,
    nodes: Vec<Node>,
    routes: &'a [RouteView],
}

impl<'a> Graph<'a> {
    fn of(view: &'a View, place: &str) -> Self {
        let milliseconds = view.cycles as f64 / f64::from(view.clock_khz.max(1));
        let told = format!(
            "{} slots, {} routes; {milliseconds:.3} ms since power-up",
            view.slots.len(),
            view.routes.len()
        );
        let mut nodes = vec![Node::new("Host".into(), &[function_text(&view.functions)], false)];
        nodes[0].memory = true;
        let kinds = FunctionKind::ALL.map(|kind| kind.name().to_owned());
        // Those that are attached to slots, and the ports of the board.
        for kind in kinds.iter().filter(|kind| view.functions.contains(kind)) {
            nodes.extend(Node::with_ports(&format!("virtio:{kind}"), &format!("Function {kind}"), view));
        }
        for (number, slot) in view.slots.iter().enumerate() {
            let mut text = Vec::new();
            let title = match &slot.user {
                Some(occupant) => {
                    text.push(format!("user {}, process {}", user(occupant.uid), occupant.pid));
                    text.push(occupant.schedule.replace(',', ", "));
                    format!("Slot {number}: {}, {}", plain(&occupant.app), state(slot))
                }
                None => format!("Slot {number}: {}", state(slot)),
            };
            if let Some(moved) = slot.moved.filter(|moved| *moved != Default::default()) {
                let seconds = |cycles: u64| cycles as f64 / f64::from(view.clock_khz.max(1));
                let [card, host] =
                    [(moved.card_read, moved.card_written), (moved.host_read, moved.host_written)]
                        .map(|(read, written)| format!("{} read, {} written", size(read), size(written)));
                text.push(format!("card memory: {card}"));
                text.push(format!("host memory: {host}"));
                let (read, written) = (seconds(moved.read_wait), seconds(moved.write_wait));
                text.push(format!("waited: reads {read:.3} ms, writes {written:.3} ms"));
            }
            let mut node = Node::new(title, &text.map_plain(), slot.loaded || slot.user.is_some());
            node.memory = true;
            node.take_ports(view, |end| end.slot() == Some(number));
            nodes.push(node);
        }
        for (kind, name) in [("net", "Ethernet port of the board"), ("console", "UART of the board")] {
            if view.functions.iter().any(|function| function == kind) {
                let end = format!("board:{kind}");
                let node = Node::with_ports(&end, name, view);
                nodes.push(node.unwrap_or_else(|| Node::new(name.into(), &[], false)));
            }
        }
        let memory = format!("{} channels of {}", view.channels, size(view.channel_mib << 20));
        nodes.push(Node::new("Card memory".into(), &[memory], false));
        if let Some(last) = nodes.last_mut() {
            last.memory = true;
        }
        let mut top = HEAD;
        for node in &mut nodes {
            node.top = top;
            top += node.height + GAP;
        }
        Self { title: format!("Card {place}"), told, nodes, routes: &view.routes }
    }

    /// Every route in words, for readers who do not see the drawing.
    fn description(&self) -> String {
        let mut text = format!("{}.", self.told);
        for node in &self.nodes {
            text += &format!("\n{}. {}", node.title, node.told.join("; "));
        }
        for route in self.routes {
            text += &format!("\nFrom {} to {}.", plain(&route.source), plain(&route.sink));
        }
        text
    }

    /// The SVG file.
    fn svg(&self) -> Result<String> {
        let failed = |what: String| Failure::Run(format!("the picture of the card: {what}"));
        let mut text = String::new();
        self.draw(&mut text).map_err(|e| failed(e.to_string()))?;
        let own = ROUTES.iter().chain([&USED, &UNUSED]);
        finished(text, &self.title, &self.description(), own).ok_or_else(|| failed("it is not an SVG".into()))
    }

    fn draw(&self, text: &mut String) -> std::result::Result<(), Box<dyn std::error::Error>> {
        let right = LEFT + WIDTH;
        let width = NARROWEST.max(right + LANE * (self.routes.len() as i32 + 1) + MARGIN);
        let bottom = self.nodes.last().map_or(HEAD, |node| node.top + node.height);
        let root =
            SVGBackend::with_string(text, (width as u32, (bottom + MARGIN) as u32)).into_drawing_area();
        root.fill(&PAGE.0)?;
        let put = |line: &str, x: i32, y: i32, colour: RGBColor, h: HPos| {
            root.draw(&Text::new(line.to_owned(), (x, y), style_of(TEXT, colour, h, VPos::Center)))
        };
        let bold = |line: &str, x: i32, y: i32| {
            let style = ("sans-serif", TEXT, FontStyle::Bold).into_font().color(&INK.0);
            root.draw(&Text::new(line.to_owned(), (x, y), style.pos(Pos::new(HPos::Left, VPos::Center))))
        };
        bold(&cut(&self.title, (f64::from(width - 2 * MARGIN) / WIDEST) as usize), MARGIN, 24)?;
        put(&self.told, MARGIN, 46, MUTED.0, HPos::Left)?;

        // The crossbar: slots, the host and card memory are connected to it.
        let bus = MARGIN + 12;
        let middles: Vec<i32> =
            self.nodes.iter().filter(|node| node.memory).map(|node| node.top + node.height / 2).collect();
        if let (Some(first), Some(last)) = (middles.first(), middles.last()) {
            root.draw(&PathElement::new(vec![(bus, *first), (bus, *last)], MUTED.0.stroke_width(3)))?;
        }
        for middle in &middles {
            root.draw(&PathElement::new(vec![(bus, *middle), (LEFT, *middle)], MUTED.0.stroke_width(2)))?;
        }
        for node in &self.nodes {
            let corners = [(LEFT, node.top), (right, node.top + node.height)];
            root.draw(&Rectangle::new(corners, if node.used { USED.0 } else { UNUSED.0 }.filled()))?;
            root.draw(&Rectangle::new(corners, GRID.0.stroke_width(2)))?;
            let row = |number: usize| node.top + INSET + ROW * number as i32 + ROW / 2;
            bold(&node.title, LEFT + INSET, row(0))?;
            for (number, line) in node.text.iter().enumerate() {
                put(line, LEFT + INSET, row(number + 1), MUTED.0, HPos::Left)?;
            }
            for (number, (_, name)) in node.ports.iter().enumerate() {
                put(name, right - INSET, row(number), INK.0, HPos::Right)?;
            }
        }
        for (number, route) in self.routes.iter().enumerate() {
            let colour = ROUTES[number % ROUTES.len()].0;
            let ends = (self.place(&route.source, true), self.place(&route.sink, false));
            let (Some(from), Some(to)) = ends else { continue };
            let lane = right + LANE * (number as i32 + 1);
            let path = vec![(right, from), (lane, from), (lane, to), (right + 9, to)];
            root.draw(&PathElement::new(path, colour.stroke_width(2)))?;
            root.draw(&Polygon::new(
                [(right, to), (right + 10, to - 5), (right + 10, to + 5)],
                colour.filled(),
            ))?;
            // Of a function that is attached there is one way in the list, and both on the card.
            let both = route.source.starts_with("virtio:");
            if both {
                let head = [(right, from), (right + 10, from - 5), (right + 10, from + 5)];
                root.draw(&Polygon::new(head, colour.filled()))?;
            }
        }
        root.present()?;
        Ok(())
    }

    /// Height of an end of a route.
    fn place(&self, end: &str, is_source: bool) -> Option<i32> {
        let end = End(end.to_owned(), is_source);
        self.nodes.iter().find_map(|node| {
            let number = node.ports.iter().position(|(port, _)| *port == end)?;
            Some(node.top + INSET + ROW * number as i32 + ROW / 2)
        })
    }
}

impl Node {
    /// A box without ports.
    fn new(title: String, text: &[String], used: bool) -> Self {
        let told = text.to_vec();
        let mut node =
            Self { title, told, text: Vec::new(), used, memory: false, ports: Vec::new(), top: 0, height: 0 };
        node.fit();
        node
    }

    /// A box that is an end of routes, if it is one.
    fn with_ports(end: &str, title: &str, view: &View) -> Option<Self> {
        let wanted = end.parse::<Port>().ok()?;
        let mut node = Self::new(title.to_owned(), &[], true);
        node.take_ports(view, |port| port == wanted);
        (!node.ports.is_empty()).then_some(node)
    }

    /// Takes the ends of routes that are its own, each once.
    fn take_ports(&mut self, view: &View, is_own: impl Fn(Port) -> bool) {
        for (end, is_source) in
            view.routes.iter().flat_map(|route| [(&route.sink, false), (&route.source, true)])
        {
            let Ok(port) = end.parse::<Port>() else { continue };
            let known = End(end.clone(), is_source);
            if !is_own(port) || self.ports.iter().any(|(other, _)| *other == known) {
                continue;
            }
            let name = match (port, is_source) {
                (Port::Stream { stream, .. }, true) => format!("out {stream}"),
                (Port::Stream { stream, .. }, false) => format!("in {stream}"),
                (Port::Function(_), _) => "attached".into(),
                (Port::Board(_), true) => "received".into(),
                (Port::Board(_), false) => "sent".into(),
            };
            self.ports.push((known, name));
        }
        self.fit();
    }

    /// Breaks its text into lines that leave room for the ports, and takes the height of all.
    fn fit(&mut self) {
        let room = ACROSS - if self.ports.is_empty() { 0 } else { NAME };
        let most = (f64::from(room) / WIDEST) as usize;
        self.title = cut(&self.title, most);
        self.text =
            self.told.iter().flat_map(|line| lines(line, most)).map(|line| cut(&line, most)).collect();
        let rows = (1 + self.text.len()).max(self.ports.len());
        self.height = 2 * INSET + ROW * rows as i32;
    }
}

/// Lines that are safe to show.
trait MapPlain {
    fn map_plain(self) -> Vec<String>;
}

impl MapPlain for Vec<String> {
    fn map_plain(self) -> Vec<String> {
        self.iter().map(|line| plain(line)).collect()
    }
}

fn function_text(functions: &[String]) -> String {
    match functions {
        [] => "one PCI function: management".into(),
        some => format!(
            "PCI functions: management, {}",
            some.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// A text of at most so many characters.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use viaductd::{Moved, Occupant, SlotView};

    use super::*;

    fn view(slots: usize, routes: &[(&str, &str)]) -> View {
        let used = |app: &str| SlotView {
            loaded: true,
            user: Some(Occupant {
                app: app.into(),
                uid: 4_000_000_000,
                pid: 12345,
                schedule: "weight=15,first,rate=32000000000,burst=1000000,limit,in-flight=1000000".into(),
                paused: true,
            }),
            moved: Some(Moved { card_read: u64::MAX, read_wait: u64::MAX, ..Moved::default() }),
            ..SlotView::default()
        };
        let long = "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW".to_owned();
        let names = ["aes".to_owned(), "<&>\u{1b}".into(), long];
        View {
            cycles: 123_456,
            clock_khz: 250_000,
            channels: 4,
            channel_mib: 16384,
            functions: FunctionKind::ALL.map(|kind| kind.name().to_owned()).to_vec(),
            slots: (0..slots)
                .map(|n| names.get(n).map_or_else(SlotView::default, |name| used(name)))
                .collect(),
            routes: routes
                .iter()
                .map(|(source, sink)| RouteView {
                    source: (*source).into(),
                    sink: (*sink).into(),
                    changing: false,
                })
                .collect(),
        }
    }

    /// The value of an attribute.
    fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
        let begin = tag.find(&format!(" {name}=\""))? + name.len() + 3;
        tag[begin..].split('"').next()
    }

    /// The boxes of all texts, as wide as the widest usual font makes them: left, top, right, bottom.
    fn texts(svg: &str) -> Vec<(String, [f64; 4])> {
        let mut found = Vec::new();
        for tag in svg.split("<text").skip(1) {
            let (head, rest) = tag.split_once('>').unwrap();
            let number = |name: &str| attribute(head, name).unwrap().parse::<f64>().unwrap();
            let line = rest.split("</text>").next().unwrap().trim();
            let plain = line.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            let height = number("font-size");
            let wide = plain.chars().map(|c| if c.is_uppercase() { 0.8 } else { 0.58 }).sum::<f64>() * height;
            let (x, y) = (number("x"), number("y"));
            let (left, right) = match attribute(head, "text-anchor") {
                Some("end") => (x - wide, x),
                Some("middle") => (x - wide / 2.0, x + wide / 2.0),
                _ => (x, x + wide),
            };
            found.push((plain, [left, y - height / 2.0, right, y + height / 2.0]));
        }
        found
    }

    const FIVE: [(&str, &str); 5] = [
        ("slot:0:0", "slot:1:0"),
        ("slot:0:0", "slot:2:0"),
        ("slot:1:0", "slot:0:3"),
        ("virtio:net", "slot:3:0"),
        ("slot:2:1", "board:console"),
    ];

    #[test]
    fn no_text_meets_another_one_or_the_edge() {
        for slots in [1, 4, 16] {
            for routes in [&[][..], &FIVE[..1], &FIVE[..]] {
                let svg = Graph::of(&view(slots, routes), "unix:/tmp/a <b> & c").svg().unwrap();
                let size = |name| attribute(&svg, name).unwrap().parse::<f64>().unwrap();
                let (width, height) = (size("width"), size("height"));
                let texts = texts(&svg);
                assert!(texts.len() >= slots + 3);
                for (n, (line, a)) in texts.iter().enumerate() {
                    assert!(a[0] >= 0.0 && a[1] >= 0.0 && a[2] <= width && a[3] <= height, "{line}: {a:?}");
                    for (other, b) in &texts[n + 1..] {
                        let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
                        assert!(apart, "{line:?} {a:?} and {other:?} {b:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_route_is_drawn_and_told() {
        for count in [0, 1, 5] {
            let svg = Graph::of(&view(4, &FIVE[..count]), "x").svg().unwrap();
            let (head, drawn) = svg.split_once("</style>").unwrap();
            assert_eq!(head.matches("\nFrom ").count(), count);
            let lanes = drawn.matches("<polyline").count();
            // Six lines are those of the crossbar: its own, and those of host, memory and four slots.
            assert_eq!(lanes - 7, count, "{drawn}");
            // A head for each route, two for the function that is attached.
            assert_eq!(drawn.matches("<polygon").count(), if count == 5 { 6 } else { count });
            assert!(!svg.contains('\u{1b}') && head.contains("&lt;&amp;&gt;"));
        }
        // What is not known is left out, and is no panic.
        let odd = view(1, &[("slot:9:0", "slot:0:0"), ("x", "y"), ("slot:0:0", "board:net")]);
        Graph::of(&odd, "x").svg().unwrap();
        Graph::of(&View::default(), "x").svg().unwrap();
    }
}
