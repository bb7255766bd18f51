// SPDX-License-Identifier: Apache-2.0
//! Read-ahead: how many pages a fault loads.

use crate::pager::state::advice::Locality;

/// Most small pages that one fault loads.
pub(in crate::pager) const MOST: u64 = 64;
/// Small pages of a slot under way that keep the link busy, and a disk. While there are more, faults that come together load what they ask
/// for, and nothing ahead: it would have to wait for that.
const LINK: u64 = 16;
const DISK: u64 = 128;

/// Small pages of a run that are loaded together while frames are short, and those under way with which the next ones wait. The card carries
/// out what concerns translations in order: what is done for free frames would wait for the copies of a long run.
pub(in crate::pager) const PIECE: u64 = 8;

/// Places of a mapping that are remembered: one for each move that the card holds of a stream in and of a stream out.
const PLACES: usize = 32;
/// Growth of a run from one fault to the next: a disk takes its latency each time.
const GROWTH: u64 = 2;
const DISK_GROWTH: u64 = 4;

/// A place where pages were loaded, which the app may go on behind.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Page after the last one loaded.
    next: u64,
    /// Pages that were to be loaded last.
    pages: u64,
    /// The first page and number of pages of the last two runs, the older one first.
    runs: [(u64, u64); 2],
    /// When it was loaded for last, in calls of `loaded`.
    used: u64,
    /// Pages of that run that are to be loaded yet, from `next` on.
    owed: u64,
}

/// The read-ahead of a mapping: doubles while faults follow the pages loaded last at one of a few places, and begins with one page elsewhere.
/// Its limit, of all places, follows the use of what it has loaded: of each run of pages the last one is looked at when the one after the next
/// is loaded.
#[derive(Clone, Copy)]
pub(in crate::pager) struct Ahead {
    places: [Place; PLACES],
    loads: u64,
    limit: u64,
    /// The page that was looked at last was not used.
    unused: bool,
    /// The last page of a run behind which the app did not go on, and the number of its pages.
    doubt: Option<(u64, u64)>,
    /// Faults that load their own page only, as one of several that were to be loaded together could not be read.
    careful: u64,
}

impl Ahead {
    pub(in crate::pager) fn new() -> Self {
        let mut places = [Place { next: u64::MAX, ..Place::default() }; PLACES];
        places[0] = Place { next: 0, pages: 1, ..Place::default() };
        Self { places, loads: 0, limit: MOST, unused: false, doubt: None, careful: 0 }
    }

    /// The place whose next page this is.
    fn place(&self, number: u64) -> Option<usize> {
        self.places.iter().position(|place| place.next == number)
    }

    /// The place whose next page this is, or that was loaded for last.
    fn latest(&self, number: u64) -> &Place {
        let found = self.places.iter().max_by_key(|place| (place.next == number, place.used));
        found.expect("there are places")
    }

    /// Pages to load for a fault on page `number` that is not resident, while so many are under way, and pages wait for a disk or do not.
    pub(in crate::pager) fn pages(
        &mut self,
        number: u64,
        locality: Locality,
        wait: bool,
        under_way: u64,
    ) -> u64 {
        if self.careful > 0 {
            self.careful -= 1;
            return 1;
        }
        let (enough, growth) = if wait { (DISK, DISK_GROWTH) } else { (LINK, GROWTH) };
        let place = self.place(number);
        match (locality, place) {
            (Locality::Sequential, _) => MOST,
            // So many places were used since that two pages for each keep link or disk busy. It is forgotten: one that waits would have to
            // wait for the long runs of others.
            (Locality::Normal, Some(at)) if self.later_than(at) * 2 >= enough => {
                (self.places[at].next, self.places[at].used) = (u64::MAX, 0);
                1
            }
            (Locality::Normal, Some(at)) if under_way < enough => {
                let place = &mut self.places[at];
                place.pages = (place.pages * growth).min(self.limit);
                place.pages
            }
            (Locality::Normal | Locality::Random, _) => 1,
        }
    }

    /// Places that were used later than this one.
    fn later_than(&self, at: usize) -> u64 {
        self.places.iter().filter(|place| place.used > self.places[at].used).count() as u64
    }

    /// Of pages that were to be loaded together one could not be read.
    pub(in crate::pager) fn be_careful(&mut self) {
        self.careful = MOST;
    }

    /// Whether page `number` is the one after those loaded last at a place.
    pub(in crate::pager) fn follows(&self, number: u64) -> bool {
        self.place(number).is_some()
    }

    /// Whether page `number` is the one after the last two runs at a place, which were in order.
    pub(in crate::pager) fn in_order(&self, number: u64) -> bool {
        self.place(number).is_some_and(|at| {
            let [(first, count), (second, _)] = self.places[at].runs;
            first + count == second
        })
    }

    /// The page whose use is worth looking at now, upon a fault on page `number`, if there is one, and how many were loaded with it. Of pages
    /// that were loaded alone, only growth can be learned.
    pub(in crate::pager) fn due(&self, number: u64) -> Option<(u64, u64)> {
        let (first, count) = self.latest(number).runs[0];
        (count > 1 || count == 1 && self.limit < MOST).then(|| (first + count - 1, count))
    }

    /// The last page of a run that may have been loaded for nothing, and the number of its pages.
    pub(in crate::pager) fn doubt(&self) -> Option<(u64, u64)> {
        self.doubt
    }

    /// That will be known.
    pub(in crate::pager) fn dispel(&mut self) {
        self.doubt = None;
    }

    /// Whether the last one of `count` pages that were loaded together has been used. One that has not may be the end of what the app
    /// reads in order: only the second in a row counts.
    pub(in crate::pager) fn judge(&mut self, count: u64, used: bool) {
        self.limit = match (used, self.unused) {
            (true, _) => self.limit.max(count * 2).min(MOST),
            (false, true) => self.limit.min(count / 2).max(1),
            (false, false) => self.limit,
        };
        self.unused = !used;
        for place in &mut self.places {
            place.pages = place.pages.min(self.limit);
        }
    }

    /// The app has gone on behind a run of `count` pages.
    pub(in crate::pager) fn went_on(&mut self, count: u64) {
        self.limit = self.limit.max(count * 2).min(MOST);
    }

    /// `count` pages from `first` on are being loaded. Elsewhere than at the places known, the one that was not used for longest is forgotten.
    pub(in crate::pager) fn loaded(&mut self, first: u64, count: u64) {
        self.loads += 1;
        let oldest = || (0..PLACES).min_by_key(|&at| self.places[at].used).unwrap_or(0);
        let at = self.place(first).unwrap_or_else(oldest);
        let place = &mut self.places[at];
        if place.next != first {
            let (last, ahead) = place.runs[1];
            if self.doubt.is_none() && ahead > 1 {
                self.doubt = Some((last + ahead - 1, ahead));
            }
            *place = Place { pages: count, ..Place::default() };
        }
        (place.next, place.owed) = (first + count, 0);
        place.runs = [place.runs[1], (first, count)];
        place.used = self.loads;
    }

    /// Those up to `next` were to be loaded, but only those up to `end` are: the others are owed.
    pub(in crate::pager) fn shorten(&mut self, next: u64, end: u64) {
        if let Some(at) = self.place(next) {
            let place = &mut self.places[at];
            (place.next, place.owed) = (end, place.owed + next - end);
        }
    }

    /// What is left of the run that was begun last: its first page, and how many. Nothing while enough pages are under way.
    pub(in crate::pager) fn owed(&self, wait: bool, under_way: u64) -> Option<(u64, u64)> {
        let enough = if wait { DISK } else { PIECE };
        let last = self.places.iter().max_by_key(|place| place.used).filter(|_| under_way < enough)?;
        (last.owed > 0).then_some((last.next, last.owed))
    }

    /// `count` of the pages that are owed from `first` on are being loaded.
    pub(in crate::pager) fn pay(&mut self, first: u64, count: u64) {
        if let Some(at) = self.place(first) {
            let place = &mut self.places[at];
            (place.next, place.owed) = (first + count, place.owed.saturating_sub(count));
        }
    }

    /// Those that are owed from `first` on are not wanted any more.
    pub(in crate::pager) fn waive(&mut self, first: u64) {
        if let Some(at) = self.place(first) {
            self.places[at].owed = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages that runs of faults in order load, if the last page of each was used or not.
    fn runs(ahead: &mut Ahead, count: usize, used: bool) -> Vec<u64> {
        let one = |_| {
            let first = ahead.latest(0).next;
            if let Some((_, count)) = ahead.due(first) {
                ahead.judge(count, used);
            }
            let pages = ahead.pages(first, Locality::Normal, false, 0);
            ahead.loaded(first, pages);
            pages
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn it_grows_while_its_pages_are_used_and_shrinks_while_they_are_not() {
        let mut ahead = Ahead::new();
        assert_eq!(runs(&mut ahead, 8, true), [2, 4, 8, 16, 32, 64, 64, 64]);
        assert_eq!(runs(&mut ahead, 5, false), [64, 32, 32, 16, 16]);
        runs(&mut ahead, 16, false);
        assert_eq!(runs(&mut ahead, 3, false), [1, 1, 1]);
        assert_eq!(runs(&mut ahead, 8, true), [2, 2, 4, 4, 8, 8, 16, 16]);
    }

    /// Reads places of so many pages each, far from one another, of which nothing is used that was not asked for. The pages that faults load.
    fn places(ahead: &mut Ahead, each: u64, count: u64, waits: bool, under_way: u64) -> Vec<u64> {
        let mut loaded = Vec::new();
        for place in (1..=count).map(|n| n * 10_000) {
            let mut at = place;
            while at < place + each {
                if let Some((due, run)) = ahead.doubt() {
                    ahead.judge(run, due % 10_000 < each);
                    ahead.dispel();
                }
                let pages = ahead.pages(at, Locality::Normal, waits, under_way);
                if ahead.in_order(at) {
                    ahead.due(at).into_iter().for_each(|(_, run)| ahead.went_on(run));
                }
                ahead.loaded(at, pages);
                loaded.push(pages);
                at += pages;
            }
        }
        loaded
    }

    /// Pages that faults load at so many places in turn, round after round.
    fn grown(places: u64, waits: bool) -> Vec<Vec<u64>> {
        let mut ahead = Ahead::new();
        let mut next: Vec<u64> = (1..=places).map(|n| n * 10_000).collect();
        let mut round = || {
            let one = |at: &mut u64| {
                let pages = ahead.pages(*at, Locality::Normal, waits, 0);
                ahead.loaded(*at, pages);
                *at += pages;
                pages
            };
            next.iter_mut().map(one).collect::<Vec<_>>()
        };
        (0..4).map(|_| round()).collect()
    }

    #[test]
    fn runs_grow_at_several_places_at_once() {
        let grow = |places: u64| [1, 2, 4, 8].map(|pages| vec![pages; places as usize]).to_vec();
        let few = LINK / 2;
        assert_eq!(grown(2, false), grow(2));
        assert_eq!(grown(few, false), grow(few));
        // With one more, what each fault asks for keeps the link busy.
        assert_eq!(grown(few + 1, false), vec![vec![1; few as usize + 1]; 4]);
    }

    #[test]
    fn runs_from_a_disk_grow_faster_and_at_as_many_places_as_a_card_has_moves() {
        let grow = |places: usize| [1, 4, 16, 64].map(|pages| vec![pages; places]).to_vec();
        assert_eq!(grown(1, true), grow(1));
        assert_eq!(grown(16, true), grow(16));
        assert_eq!(grown(PLACES as u64, true), grow(PLACES));
        // One more than are remembered: the one that is needed next was forgotten.
        assert_eq!(grown(PLACES as u64 + 1, true), vec![vec![1; PLACES + 1]; 4]);
    }

    #[test]
    fn nothing_is_loaded_ahead_while_the_link_is_busy_with_what_was_asked_for() {
        assert_eq!(places(&mut Ahead::new(), 64, 4, false, LINK), [1; 256]);
        let disk = places(&mut Ahead::new(), 256, 1, true, LINK);
        assert_eq!(disk[..4], [1, 4, 16, 64]);
        assert_eq!(places(&mut Ahead::new(), 256, 1, true, DISK), [1; 256]);
    }

    #[test]
    fn what_is_loaded_for_nothing_becomes_little_or_nothing() {
        let wasted = |each, count| {
            let mut ahead = Ahead::new();
            places(&mut ahead, each, 2 * PLACES as u64, true, 0);
            places(&mut ahead, each, count, true, 0).iter().sum::<u64>() - each * count
        };
        assert_eq!(wasted(1, 64), 0);
        assert!(wasted(2, 64) <= 1, "{}", wasted(2, 64));
        // Less than half of what is used.
        assert!(wasted(16, 64) < 8 * 64, "{}", wasted(16, 64));
    }

    #[test]
    fn what_is_left_of_a_run_is_owed_until_it_is_loaded_or_a_fault_begins_another() {
        let mut ahead = Ahead::new();
        ahead.loaded(0, 32);
        assert_eq!(ahead.owed(false, 0), None);
        // A piece of it, and of that there are frames for six pages.
        ahead.shorten(32, 8);
        ahead.shorten(8, 6);
        assert_eq!(ahead.owed(false, 0), Some((6, 26)));
        assert_eq!(ahead.owed(false, PIECE), None, "enough pages are under way");
        ahead.pay(6, 10);
        assert_eq!(ahead.owed(false, 0), Some((16, 16)));
        assert!(ahead.follows(16) && !ahead.follows(32));
        // A fault on the next page goes on as if the run had ended there.
        let pages = ahead.pages(16, Locality::Normal, false, 0);
        ahead.loaded(16, pages);
        assert_eq!((pages, ahead.owed(false, 0)), (2, None));
        ahead.shorten(18, 17);
        ahead.waive(17);
        assert_eq!(ahead.owed(false, 0), None);
    }

    #[test]
    fn after_an_error_pages_are_loaded_one_by_one_for_a_while() {
        let mut ahead = Ahead::new();
        ahead.be_careful();
        let pages: Vec<u64> = (0..MOST).map(|n| ahead.pages(n, Locality::Sequential, true, 0)).collect();
        assert_eq!(pages, [1; MOST as usize]);
        assert_eq!(ahead.pages(MOST, Locality::Sequential, true, 0), MOST);
    }
}
