// SPDX-License-Identifier: Apache-2.0
//! Figures of a run drawn as an SVG file: lines over a quantity, or bars in groups, with limits as dashed lines. Its description contains
//! every value.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::drawing::{
    CHARACTER, Colour, GRID, INK, MUTED, PAGE, ROW, TEXT, cause, finished, lines, style_of, write,
};
use crate::fail::{Failure, Result, at, usage};

const WIDTH: i32 = 860;
const HEIGHT: i32 = 440;
/// Space at the left for the vertical axis.
const SCALE: i32 = 76;
/// Margin at the left and right of text.
const MARGIN: i32 = 20;
/// Sizes of text, as [`TEXT`].
const TITLE: i32 = 21;
const SMALL: i32 = 15;
/// Share of its space that a group of bars takes.
const GROUP: f64 = 0.84;
/// Narrowest bar with its value inside.
const NARROWEST: i32 = 34;

/// Colours of the card's own series.
const OURS: [Colour; 5] = [
    Colour(RGBColor(0x09, 0x69, 0xda), "#4493f8"),
    Colour(RGBColor(0x1a, 0x7f, 0x37), "#3fb950"),
    Colour(RGBColor(0x82, 0x50, 0xdf), "#ab7df8"),
    Colour(RGBColor(0x1b, 0x7c, 0x83), "#39c5cf"),
    Colour(RGBColor(0x33, 0x9a, 0xf0), "#a5d6ff"),
];
const RIVALS: [Colour; 5] = [
    Colour(RGBColor(0xbc, 0x4c, 0x00), "#f0883e"),
    Colour(RGBColor(0xbf, 0x39, 0x89), "#db61a2"),
    Colour(RGBColor(0x9a, 0x67, 0x00), "#d29922"),
    Colour(RGBColor(0xcf, 0x22, 0x2e), "#f85149"),
    Colour(RGBColor(0x6f, 0x7d, 0x1c), "#b3c04a"),
];
const LIMITS: [Colour; 2] =
    [Colour(RGBColor(0x24, 0x29, 0x2f), "#f0f6fc"), Colour(RGBColor(0xa4, 0x0e, 0x26), "#ff8182")];

/// Form of a plot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Lines over a quantity, on a logarithmic axis.
    Lines,
    /// Bars, in a group for each place.
    Bars,
}

/// Role of a series.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The card's own.
    Ours,
    /// A comparison.
    Rival,
    /// An upper limit for any card.
    Limit,
}

struct Series {
    name: String,
    kind: Kind,
    /// Number within its role, which gives its colour.
    number: usize,
    points: Vec<Point>,
}

struct Point {
    place: usize,
    value: f64,
    /// For a limit of one bar: the series of the bar.
    of: Option<usize>,
}

/// A position on the horizontal axis.
struct Place {
    label: String,
    at: f64,
}

/// A plot, filled with values while a bench runs.
pub struct Plot {
    name: String,
    title: String,
    counted: String,
    axes: [&'static str; 2],
    form: Form,
    places: Vec<Place>,
    series: Vec<Series>,
}

impl Plot {
    /// `name` is that of the file, `counted` describes the measurement, `axes` are the labels of the horizontal and vertical one,
    /// with units.
    pub fn new(
        name: impl Into<String>,
        form: Form,
        title: impl Into<String>,
        counted: impl Into<String>,
        axes: [&'static str; 2],
    ) -> Self {
        let (name, title, counted) = (name.into(), title.into(), counted.into());
        Self { name, title, counted, axes, form, places: Vec::new(), series: Vec::new() }
    }

    /// Adds a value of a series. `place` is the label below it; `quantity` is its place on the axis, if these are lines.
    pub fn add(&mut self, kind: Kind, series: &str, place: &str, quantity: f64, value: f64) {
        let (series, place) = (self.series(kind, series), self.place(place, quantity));
        self.series[series].points.push(Point { place, value, of: None });
    }

    /// Adds the limit of one bar, that of series `of`.
    pub fn limit_of(&mut self, of: &str, limit: &str, place: &str, value: f64) {
        let bar = self.series.iter().position(|s| s.name == of);
        let (series, place) = (self.series(Kind::Limit, limit), self.place(place, 0.0));
        self.series[series].points.push(Point { place, value, of: bar });
    }

    fn series(&mut self, kind: Kind, name: &str) -> usize {
        let found = self.series.iter().position(|s| s.kind == kind && s.name == name);
        found.unwrap_or_else(|| {
            let number = self.series.iter().filter(|s| s.kind == kind).count();
            self.series.push(Series { name: name.to_owned(), kind, number, points: Vec::new() });
            self.series.len() - 1
        })
    }

    fn place(&mut self, label: &str, quantity: f64) -> usize {
        let found = self.places.iter().position(|p| p.label == label);
        found.unwrap_or_else(|| {
            let at = match self.form {
                Form::Lines => quantity.max(1.0).log2(),
                Form::Bars => self.places.len() as f64,
            };
            self.places.push(Place { label: label.to_owned(), at });
            self.places.len() - 1
        })
    }

    /// The SVG file.
    fn svg(&self) -> Result<String> {
        let mut text = String::new();
        self.draw(&mut text).map_err(|e| Failure::Run(format!("plot {}: {e}", self.name)))?;
        let own = OURS.iter().chain(&RIVALS).chain(&LIMITS);
        finished(text, &self.title, &self.description(), own)
            .ok_or_else(|| Failure::Run(format!("plot {}: the drawing is not an SVG", self.name)))
    }

    /// Every value, as the bench prints it.
    fn description(&self) -> String {
        let mut text = format!("{}. {}, by {}.", self.counted, self.axes[1], self.axes[0]);
        for series in &self.series {
            let values: Vec<String> = series
                .points
                .iter()
                .map(|p| {
                    let of = p.of.map(|n| format!(", {}", self.series[n].name)).unwrap_or_default();
                    format!("{}{of}: {}", self.places[p.place].label, rounded(p.value))
                })
                .collect();
            let _ = write!(text, "\n{}: {}.", series.name, values.join("; "));
        }
        text
    }

    fn draw(&self, text: &mut String) -> std::result::Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(text, (WIDTH as u32, HEIGHT as u32)).into_drawing_area();
        root.fill(&PAGE.0)?;
        let put = |line: &str, x: i32, y: i32, size: i32, colour: RGBColor, h: HPos| {
            root.draw(&Text::new(line.to_owned(), (x, y), style_of(size, colour, h, VPos::Center)))
        };
        let title = ("sans-serif", TITLE, FontStyle::Bold).into_font().color(&INK.0);
        root.draw(&Text::new(
            self.title.clone(),
            (MARGIN, 24),
            title.pos(Pos::new(HPos::Left, VPos::Center)),
        ))?;
        put(&self.counted, MARGIN, 46, SMALL, MUTED.0, HPos::Left)?;
        let top = self.legend(&root, 70)?;
        put(self.axes[0], (WIDTH + 40) / 2, HEIGHT - 14, TEXT, MUTED.0, HPos::Center)?;

        let most = self.series.iter().flat_map(|s| &s.points).map(|p| p.value).fold(0.0, f64::max);
        let at = self.places.iter().map(|p| p.at);
        let beside = if self.form == Form::Bars { 0.55 } else { 0.35 };
        let (first, last) = (at.clone().fold(f64::MAX, f64::min), at.fold(f64::MIN, f64::max));
        let area = root.margin(top + 4, 30, 8, MARGIN);
        let room = f64::from(WIDTH - MARGIN - 8 - SCALE) / (last - first + 2.0 * beside);
        let labels: Vec<_> =
            self.places.iter().map(|p| lines(&p.label, (room / CHARACTER) as usize)).collect();
        let rows = labels.iter().map(Vec::len).max().unwrap_or(1) as i32;
        let mut chart = ChartBuilder::on(&area)
            .x_label_area_size(4 + ROW * rows)
            .y_label_area_size(SCALE)
            .build_cartesian_2d(first - beside..last + beside, 0.0..most * 1.08)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .y_labels(8)
            .y_desc(self.axes[1])
            .y_label_formatter(&|value| grouped(*value))
            .bold_line_style(GRID.0)
            .light_line_style(TRANSPARENT)
            .axis_style(MUTED.0)
            .y_label_style(("sans-serif", TEXT).into_font().color(&MUTED.0))
            .axis_desc_style(("sans-serif", TEXT).into_font().color(&MUTED.0))
            .draw()?;
        // Positions in pixels of the whole drawing.
        let spot = |x: f64, y: f64| chart.backend_coord(&(x, y));
        let ground = spot(first, 0.0).1;
        for (place, label) in self.places.iter().zip(&labels) {
            let x = spot(place.at, 0.0).0;
            for (row, line) in (0..).zip(label) {
                put(line, x, ground + 14 + ROW * row, TEXT, INK.0, HPos::Center)?;
            }
        }
        let (left, right) = (spot(first - beside, 0.0).0, spot(last + beside, 0.0).0);
        root.draw(&PathElement::new(vec![(left, ground), (right, ground)], MUTED.0))?;

        for series in self.series.iter().filter(|s| s.kind != Kind::Limit) {
            match self.form {
                Form::Lines => self.line(&root, &spot, series)?,
                Form::Bars => self.bars(&root, &spot, series)?,
            }
        }
        for series in self.series.iter().filter(|s| s.kind == Kind::Limit) {
            let dashes = |from: (i32, i32), to: (i32, i32)| {
                let line = series.colour().stroke_width(2);
                root.draw(&DashedPathElement::new([from, to], 6, 4, line))
            };
            match self.form {
                Form::Lines => {
                    let points: Vec<_> =
                        series.points.iter().map(|p| spot(self.places[p.place].at, p.value)).collect();
                    points.windows(2).try_for_each(|ends| dashes(ends[0], ends[1]))?;
                }
                Form::Bars => {
                    for point in &series.points {
                        let (from, to) = self.across(point);
                        dashes(spot(from, point.value), spot(to, point.value))?;
                    }
                }
            }
        }
        root.present()?;
        Ok(())
    }

    /// Draws the legend, in rows from `y` on; returns the end of the last one.
    fn legend<DB: DrawingBackend>(
        &self,
        root: &DrawingArea<DB, Shift>,
        mut y: i32,
    ) -> std::result::Result<i32, Box<dyn std::error::Error>>
    where
        DB::ErrorType: 'static,
    {
        let mut x = MARGIN;
        let (limits, others): (Vec<_>, Vec<_>) = self.series.iter().partition(|s| s.kind == Kind::Limit);
        for series in others.into_iter().chain(limits) {
            let width = 30 + (CHARACTER * series.name.chars().count() as f64) as i32;
            if x > MARGIN && x + width > WIDTH - MARGIN {
                (x, y) = (MARGIN, y + ROW);
            }
            let (colour, middle) = (series.colour(), [(x, y), (x + 22, y)]);
            match (series.kind, self.form) {
                (Kind::Limit, _) => {
                    let line = colour.stroke_width(2);
                    root.draw(&DashedPathElement::new(middle, 6, 2, line))?;
                }
                (_, Form::Lines) => {
                    root.draw(&PathElement::new(middle, colour.stroke_width(2)))?;
                    root.draw(&Circle::new((x + 11, y), 4, colour.filled()))?;
                }
                (_, Form::Bars) => {
                    root.draw(&Rectangle::new([(x + 4, y - 6), (x + 20, y + 6)], colour.filled()))?;
                }
            }
            let text = style_of(TEXT, INK.0, HPos::Left, VPos::Center);
            root.draw(&Text::new(series.name.clone(), (x + 28, y), text))?;
            x += width + 16;
        }
        Ok(y + ROW / 2)
    }

    fn line<DB: DrawingBackend>(
        &self,
        root: &DrawingArea<DB, Shift>,
        spot: &dyn Fn(f64, f64) -> (i32, i32),
        series: &Series,
    ) -> std::result::Result<(), Box<dyn std::error::Error>>
    where
        DB::ErrorType: 'static,
    {
        let colour = series.colour();
        let points: Vec<_> = series.points.iter().map(|p| spot(self.places[p.place].at, p.value)).collect();
        for point in &points {
            root.draw(&Circle::new(*point, 4, colour.filled()))?;
        }
        root.draw(&PathElement::new(points, colour.stroke_width(2)))?;
        Ok(())
    }

    fn bars<DB: DrawingBackend>(
        &self,
        root: &DrawingArea<DB, Shift>,
        spot: &dyn Fn(f64, f64) -> (i32, i32),
        series: &Series,
    ) -> std::result::Result<(), Box<dyn std::error::Error>>
    where
        DB::ErrorType: 'static,
    {
        for point in &series.points {
            let (from, to) = self.bar(series, point);
            let (corner, foot) = (spot(from, point.value), spot(to, 0.0));
            root.draw(&Rectangle::new(
                [(corner.0 + 1, corner.1), (foot.0 - 1, foot.1)],
                series.colour().filled(),
            ))?;
            if foot.0 - corner.0 >= NARROWEST {
                // At the foot, away from limits; above a bar that is too low.
                let (colour, y) =
                    if foot.1 - corner.1 > 2 * SMALL { (PAGE.0, foot.1 - 4) } else { (INK.0, corner.1 - 4) };
                let text = style_of(SMALL, colour, HPos::Center, VPos::Bottom);
                root.draw(&Text::new(short(point.value), ((corner.0 + foot.0) / 2, y), text))?;
            }
        }
        Ok(())
    }

    /// Left and right end of the bar of a point.
    fn bar(&self, series: &Series, point: &Point) -> (f64, f64) {
        let bars = self.series.iter().filter(|s| s.kind != Kind::Limit);
        let number = bars.clone().position(|s| s.name == series.name).unwrap_or(0) as f64;
        let width = GROUP / bars.count().max(1) as f64;
        let from = self.places[point.place].at - GROUP / 2.0 + number * width;
        (from, from + width)
    }

    /// Extent of a limit: a bar, or a whole group.
    fn across(&self, limit: &Point) -> (f64, f64) {
        match limit.of {
            Some(of) => self.bar(&self.series[of], limit),
            None => (self.places[limit.place].at - 0.48, self.places[limit.place].at + 0.48),
        }
    }
}

impl Series {
    fn colour(&self) -> RGBColor {
        let colours = match self.kind {
            Kind::Ours => &OURS[..],
            Kind::Rival => &RIVALS[..],
            Kind::Limit => &LIMITS[..],
        };
        colours[self.number % colours.len()].0
    }
}

/// A value in the form of the tables.
pub fn rounded(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// A value above a bar: three significant digits.
fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// A value at the axis, with separated thousands.
fn grouped(value: f64) -> String {
    if value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The folder for plots.
pub struct Folder(PathBuf);

impl Folder {
    /// Creates the folder, and checks that files can be written to it before anything is measured.
    pub fn new(path: &Path) -> Result<Self> {
        if path.exists() && !path.is_dir() {
            return usage(format!("{}: is not a folder; name one for the plots", path.display()));
        }
        std::fs::create_dir_all(path).map_err(at(path.display()))?;
        tempfile::tempfile_in(path).map_err(|e| at(path.display())(cause(e)))?;
        Ok(Self(path.to_owned()))
    }

    /// Writes a plot atomically; returns the path of the file.
    pub fn write(&self, plot: &Plot) -> Result<PathBuf> {
        let path = self.0.join(&plot.name).with_extension("svg");
        let svg = plot.svg()?;
        write(&path, &svg)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(form: Form) -> Plot {
        let mut plot = Plot::new("sample", form, "A <b> & c", "What was counted", ["size, bytes", "GB/s"]);
        for (n, value) in [1.25, 2.5, 1234.5].into_iter().enumerate() {
            let place = format!("{}", 64 << n);
            plot.add(Kind::Ours, "ours", &place, (64 << n) as f64, value);
            plot.add(Kind::Rival, "theirs", &place, (64 << n) as f64, value / 2.0);
            plot.limit_of("ours", "the most", &place, value * 1.5);
        }
        plot
    }

    #[test]
    fn a_plot_holds_its_values_and_both_sets_of_colours() {
        for form in [Form::Lines, Form::Bars] {
            let svg = sample(form).svg().unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            assert!(svg.contains("<title>A &lt;b&gt; &amp; c</title>"));
            for value in ["64: 1.25", "128: 2.50", "256: 1234", "256: 617.25", "256, ours: 1852"] {
                assert!(svg.contains(value), "{value}: {svg}");
            }
            let (style, drawn) = svg.split_once("</style>").unwrap();
            for colour in ["#0969DA", "#BC4C00", "#24292F", "#FFFFFF"] {
                assert!(drawn.contains(colour) && style.contains(colour), "{colour}");
            }
        }
    }

    #[test]
    fn a_plot_is_written_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        let path = Folder::new(&inner).unwrap().write(&sample(Form::Bars)).unwrap();
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 1);
        let Err(refused) = Folder::new(&path) else { panic!("a file is no folder") };
        assert!(refused.message().starts_with(&format!("{}: is not a folder", path.display())));
    }
}
