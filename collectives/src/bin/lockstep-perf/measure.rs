//! One size: warm up, time, check, and agree on the outcome with all ranks.

use std::collections::TryReserveError;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockstep_collectives::shared_memory::Arena;
use lockstep_collectives::{Call, CollectiveError, Communicator, ElementType, Group, Reduction};

use crate::buffer::Buffer;
use crate::cli::Cli;
use crate::collective::{Buffered, Extent, Placement, Terms};
use crate::failure::Failure;
use crate::values::Values;

/// What a member needs to take part.
pub(crate) struct Bench<'a> {
    pub(crate) cli: &'a Cli,
    pub(crate) communicator: &'a Communicator,
    /// All members of the job.
    pub(crate) group: &'a Group,
    /// Where operands lie, if the process shares memory.
    pub(crate) arena: Option<&'a Arc<Arena>>,
    /// Those that run the collective together: all, or this one's pair.
    pub(crate) partners: &'a Group,
}

/// The outcome of one size in one placement, the same on every rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) extent: Extent,
    pub(crate) placement: Placement,
    /// The position of the rank with the greatest mean time.
    pub(crate) slowest: usize,
    /// How long each iteration took that rank, in microseconds; at least one.
    pub(crate) samples_us: Vec<f64>,
    /// Wrong elements and spoilt guard bytes of all ranks; `None` when nobody looked.
    pub(crate) wrong: Option<u64>,
}

impl Bench<'_> {
    /// The operands of `size_bytes`, which are not larger.
    ///
    /// # Errors
    /// When no memory has room for them.
    pub(crate) fn extent(&self, size_bytes: u64) -> Result<Extent, Failure> {
        let size = usize::try_from(size_bytes).map_err(|_| Failure::Memory { size_bytes })?;
        Ok(self.cli.terms().extent(size, self.group.members().len()))
    }

    /// Measures one size in one placement; every rank must.
    ///
    /// # Errors
    /// When a collective fails or there is no memory.
    pub(crate) fn measure(&self, extent: Extent, placement: Placement) -> Result<Row, Failure> {
        let size_bytes = extent.size_bytes;
        let rank = self.group.position();
        let operands = Operands::new(self.cli.terms(), extent, placement, rank, self.arena);
        let operands = operands.map_err(|_| Failure::Memory { size_bytes: size_bytes as u64 })?;
        let run = Run { bench: self, terms: self.cli.terms(), deadline: self.deadline() };
        run.row(extent, placement, operands).map_err(|error| Failure::Collective {
            size_bytes,
            timeout: self.cli.timeout,
            source: Box::new(error),
        })
    }

    fn deadline(&self) -> Option<Instant> {
        self.cli.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }
}

/// One rank's operands.
struct Operands {
    extent: Extent,
    placement: Placement,
    /// Out of place.
    input: Buffer,
    output: Buffer,
    /// In place: where the operand lies in the output.
    within: Option<Range<usize>>,
    values: Values,
    rank: usize,
}

impl Operands {
    fn new(
        terms: Terms,
        extent: Extent,
        placement: Placement,
        rank: usize,
        arena: Option<&Arc<Arena>>,
    ) -> Result<Self, TryReserveError> {
        let size = terms.element.size_bytes();
        let (input, output, within) = match placement {
            Placement::OutOfPlace => {
                (terms.input_count(extent, rank), terms.output_count(extent, rank), None)
            }
            Placement::InPlace => {
                let Buffered { length, input, .. } = terms.buffered(extent, rank);
                (0, length, Some(input.start * size..input.end * size))
            }
        };
        let values = Values::new(terms, extent);
        let mut input = Buffer::new(arena, input * size)?;
        let output = Buffer::new(arena, output * size)?;
        values.write_input(rank, input.operand_mut());
        let mut operands = Self { extent, placement, input, output, within, values, rank };
        operands.restore();
        Ok(operands)
    }

    /// In place, puts the operand where it was.
    fn restore(&mut self) {
        if let Some(within) = &self.within {
            let operand = &mut self.output.operand_mut()[within.clone()];
            self.values.write_input(self.rank, operand);
        }
    }

    /// Makes every byte of the output what it must not be; in place, the operand is there again.
    fn poison(&mut self) {
        self.values.poison(self.rank, self.placement, self.output.operand_mut());
        self.restore();
    }

    /// Wrong elements of the output and spoilt guard bytes.
    fn wrong(&self) -> u64 {
        let wrong = self.values.differences(self.rank, self.placement, self.output.operand());
        (wrong + self.output.damage() + self.input.damage()) as u64
    }
}

/// The collectives of one size.
struct Run<'a> {
    bench: &'a Bench<'a>,
    terms: Terms,
    /// The end of the time that all of them have.
    deadline: Option<Instant>,
}

impl Run<'_> {
    /// Times the collective, checks it if asked to, and agrees on the outcome.
    fn row(
        &self,
        extent: Extent,
        placement: Placement,
        mut operands: Operands,
    ) -> Result<Row, CollectiveError> {
        let samples = self.time(&mut operands)?;
        // Before the check, which would keep a processor from ranks that are still measuring.
        let (slowest, samples_us) = self.slowest(&samples)?;
        let mut wrong = None;
        let Cli { check, corrupt, .. } = *self.bench.cli;
        if check {
            operands.poison();
            self.once(&mut operands)?;
            if corrupt.is_some_and(|rank| rank as usize == operands.rank) {
                spoil(operands.output.operand_mut());
            }
            wrong = Some(operands.wrong());
        }
        let wrong = wrong.map(|wrong| self.sum(wrong)).transpose()?;
        Ok(Row { extent, placement, slowest, samples_us, wrong })
    }

    fn call(&self) -> Call<'_> {
        Call { timeout: self.left(), ..Call::on(self.bench.group) }
    }

    /// The time that is left of the size's.
    fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    fn once(&self, operands: &mut Operands) -> Result<(), CollectiveError> {
        let Bench { communicator, partners, .. } = *self.bench;
        let call = Call { timeout: self.left(), ..Call::on(partners) };
        let Operands { extent, input, output, within, .. } = operands;
        let output = output.operand_mut();
        match within {
            None => self.terms.run(communicator, &call, *extent, input.operand(), output),
            Some(_) => self.terms.run_in_place(communicator, &call, output),
        }
    }

    /// How long each iteration takes this rank, one after the other, from a common start.
    fn time(&self, operands: &mut Operands) -> Result<Vec<Duration>, CollectiveError> {
        let Cli { iterations, warm_up, .. } = *self.bench.cli;
        for _ in 0..warm_up {
            self.once(operands)?;
        }
        // Written before, or the first operation to reach a page of it waits for the page.
        let mut samples = vec![Duration::MAX; iterations as usize];
        self.bench.communicator.barrier(&self.call())?;
        let mut last = Instant::now();
        for sample in &mut samples {
            self.once(operands)?;
            let now = Instant::now();
            *sample = now.duration_since(last);
            last = now;
        }
        Ok(samples)
    }

    /// The rank that took longest, and its times in microseconds.
    fn slowest(&self, samples: &[Duration]) -> Result<(usize, Vec<f64>), CollectiveError> {
        let Bench { communicator, group, .. } = *self.bench;
        let element = ElementType::U64;
        let nanoseconds = |time: &Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let total = nanoseconds(&samples.iter().sum());
        let mut totals = vec![0_u64; group.members().len()];
        let gathered = bytemuck::cast_slice_mut(&mut totals);
        communicator.all_gather(&self.call(), element, bytemuck::bytes_of(&total), gathered)?;
        let slowest = (0..totals.len()).max_by_key(|rank| totals[*rank]).unwrap_or(0);
        let mut samples: Vec<u64> = samples.iter().map(nanoseconds).collect();
        let buffer = bytemuck::cast_slice_mut(&mut samples);
        communicator.broadcast_in_place(&self.call(), element, slowest, buffer)?;
        Ok((slowest, samples.iter().map(|time| *time as f64 / 1e3).collect()))
    }

    /// The sum over all ranks.
    fn sum(&self, wrong: u64) -> Result<u64, CollectiveError> {
        let mut sum = wrong;
        let buffer = bytemuck::bytes_of_mut(&mut sum);
        let call = self.call();
        let communicator = self.bench.communicator;
        communicator.all_reduce_in_place(&call, ElementType::U64, Reduction::Sum, buffer)?;
        Ok(sum)
    }
}

impl Row {
    /// The mean time of the slowest rank, in microseconds.
    pub(crate) fn time_us(&self) -> f64 {
        self.samples_us.iter().sum::<f64>() / self.samples_us.len() as f64
    }

    /// Bytes of the size for each second, in GB/s.
    pub(crate) fn algbw(&self) -> f64 {
        // Faster than the clock can tell is no bandwidth.
        let time_us = self.time_us();
        if time_us > 0.0 { self.extent.size_bytes as f64 / time_us / 1e3 } else { 0.0 }
    }

    /// Bytes that each rank's link carries for each second, in GB/s.
    pub(crate) fn busbw(&self, terms: &Terms, ranks: usize) -> f64 {
        self.algbw() * terms.bus_factor(ranks)
    }

    /// The time within which `share` of the iterations ended, in microseconds: 0 for the least,
    /// 1 for the greatest.
    pub(crate) fn percentile_us(&self, share: f64) -> f64 {
        let mut sorted = self.samples_us.clone();
        sorted.sort_by(f64::total_cmp);
        let place = (share * sorted.len() as f64).ceil().max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and the number of samples"
        )]
        let place = place as usize;
        sorted.get(place - 1).copied().unwrap_or(0.0)
    }
}

/// Makes the last element wrong, if there is one.
fn spoil(output: &mut [u8]) {
    if let Some(byte) = output.last_mut() {
        *byte = !*byte;
    }
}

#[cfg(test)]
mod tests {
    use lockstep_collectives::CollectiveKind;

    use super::*;

    fn row_of(size_bytes: usize, samples_us: &[f64]) -> Row {
        let extent = Extent { size_bytes, count: 1, ranks: 2 };
        let placement = Placement::InPlace;
        Row { extent, placement, slowest: 0, samples_us: samples_us.to_vec(), wrong: None }
    }

    #[test]
    fn bandwidths_are_in_billions_of_bytes_for_each_second() {
        let row = row_of(3_000_000, &[1000.0, 2000.0]);
        assert_eq!(row.algbw(), 2.0);
        let busbw = |collective| {
            let (element, reduction) = (ElementType::F32, Reduction::Sum);
            row.busbw(&Terms { collective, element, reduction, root: 0 }, 4)
        };
        assert_eq!(busbw(CollectiveKind::AllReduce), 3.0);
        assert_eq!(busbw(CollectiveKind::AllGather), 1.5);
        assert_eq!(row_of(8, &[0.0]).algbw(), 0.0);
    }

    #[test]
    fn percentiles_are_samples() {
        let samples: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let percentiles =
            [0.0, 0.5, 0.99, 1.0].map(|share| row_of(1, &samples).percentile_us(share));
        assert_eq!(percentiles, [1.0, 100.0, 198.0, 200.0]);
        assert_eq!(row_of(1, &[7.0]).percentile_us(0.5), 7.0);
    }
}
