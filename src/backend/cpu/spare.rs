//! Memory of the heap that was given back, kept for whoever takes as much next.
//!
//! The system hands out large memory page by page as it is touched, which takes longer than many
//! a kernel does to fill it; small memory that begins on a line it looks for each time, which takes
//! as long as a small program to run. Of the large no more is kept than is in use, or [`FLOOR`], of
//! the small [`KEPT_SMALL`] pieces of each length.

use std::collections::TryReserveError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Zeroable;

use super::buffer::Line;

/// How many lines the longest small memory has, and how much of each length is kept.
const LARGEST_SMALL: usize = 8;
const KEPT_SMALL: usize = 16;

/// Memory of fewer lines, but for small memory, is the allocator's to keep.
const LEAST: usize = (1 << 16) / size_of::<Line>();

/// How much may be kept whatever is in use, in lines.
const FLOOR: usize = (1 << 26) / size_of::<Line>();

/// The memory that one backend keeps.
#[derive(Default)]
pub(super) struct Spare(Mutex<State>);

#[derive(Default)]
struct State {
    /// By length.
    small: [Vec<Vec<Line>>; LARGEST_SMALL + 1],
    kept: Vec<Vec<Line>>,
    /// How many lines are kept, and how many are in use.
    idle: usize,
    used: usize,
}

impl Spare {
    /// Memory of at least `count` lines: kept, and then at most a quarter more, or new.
    pub(super) fn take(&self, count: usize) -> Result<Vec<Line>, TryReserveError> {
        if count <= LARGEST_SMALL {
            let kept = self.state().small[count].pop();
            return kept.map_or_else(|| new_lines(count), Ok);
        }
        if count < LEAST {
            return new_lines(count);
        }
        let kept = self.state().take(count);
        let lines = match kept {
            Some(lines) => lines,
            None => new_lines(count)?,
        };
        self.state().used += lines.len();
        Ok(lines)
    }

    /// Keeps memory that was taken, if it may.
    pub(super) fn give_back(&self, lines: Vec<Line>) {
        if lines.len() <= LARGEST_SMALL {
            let mut state = self.state();
            let kept = &mut state.small[lines.len()];
            if kept.len() < KEPT_SMALL {
                kept.push(lines);
            }
            return;
        }
        if lines.len() < LEAST {
            return;
        }
        let mut state = self.state();
        state.used -= lines.len().min(state.used);
        state.idle += lines.len();
        state.kept.push(lines);
        // What has been idle for longest goes first.
        while state.idle > state.used.max(FLOOR) {
            let oldest = state.kept.remove(0);
            state.idle -= oldest.len();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two of its changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, count: usize) -> Option<Vec<Line>> {
        let fits = |lines: &Vec<Line>| (count..=count + count / 4).contains(&lines.len());
        let found = (0..self.kept.len())
            .filter(|&at| fits(&self.kept[at]))
            .min_by_key(|&at| self.kept[at].len())?;
        let lines = self.kept.swap_remove(found);
        self.idle -= lines.len();
        Some(lines)
    }
}

fn new_lines(count: usize) -> Result<Vec<Line>, TryReserveError> {
    let mut lines = Vec::new();
    lines.try_reserve_exact(count)?;
    lines.resize(count, Line::zeroed());
    Ok(lines)
}

/// Lines that return to where spare ones are kept.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) lines: Vec<Line>,
    home: Option<Arc<Spare>>,
}

impl Lines {
    /// At least `count` lines, which return to `home`.
    pub(super) fn new(count: usize, home: &Arc<Spare>) -> Result<Self, TryReserveError> {
        Ok(Self { lines: home.take(count)?, home: Some(Arc::clone(home)) })
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            home.give_back(std::mem::take(&mut self.lines));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_if_it_is_large_and_about_as_long() {
        let spare = Arc::new(Spare::default());
        let place = |count: usize| {
            let lines = Lines::new(count, &spare).unwrap();
            assert!(lines.lines.len() >= count);
            (lines.lines.as_ptr().addr(), lines.lines.len())
        };
        // Nothing else is allocated meanwhile, so what is new lies elsewhere only if it is kept.
        let (first, len) = place(4 * LEAST);
        assert_eq!(place(4 * LEAST), (first, len));
        assert_eq!(place(4 * LEAST - LEAST / 2), (first, len));
        assert_eq!(place(4 * LEAST + 1).1, 4 * LEAST + 1);
        assert_eq!(place(3 * LEAST).1, 3 * LEAST);
        assert_eq!(spare.state().kept.len(), 3);
        place(LEAST - 1);
        assert_eq!(spare.state().kept.len(), 3);
    }

    #[test]
    fn of_small_memory_a_few_pieces_of_each_length_are_kept() {
        let spare = Arc::new(Spare::default());
        for count in [0, 1, LARGEST_SMALL] {
            let piece = || Lines::new(count, &spare).unwrap();
            let many: Vec<Lines> = (0..=KEPT_SMALL).map(|_| piece()).collect();
            let places: Vec<usize> = many.iter().map(|lines| lines.lines.as_ptr().addr()).collect();
            drop(many);
            assert_eq!(spare.state().small[count].len(), KEPT_SMALL);
            let again = piece();
            assert_eq!(again.lines.len(), count);
            assert!(places.contains(&again.lines.as_ptr().addr()));
        }
        drop(Lines::new(LARGEST_SMALL + 1, &spare).unwrap());
        let kept: usize = spare.state().small.iter().map(Vec::len).sum();
        assert_eq!(kept, 3 * KEPT_SMALL - 3 + 3);
    }

    #[test]
    fn no_more_is_kept_than_is_used_or_the_floor() {
        let spare = Arc::new(Spare::default());
        let mut pieces: Vec<Lines> =
            (0..6).map(|_| Lines::new(FLOOR / 2, &spare).unwrap()).collect();
        let mut kept = Vec::new();
        while let Some(piece) = pieces.pop() {
            drop(piece);
            kept.push(spare.state().idle / (FLOOR / 2));
        }
        assert_eq!(kept, [1, 2, 3, 2, 2, 2]);
        assert_eq!(spare.state().used, 0);
    }
}
