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
        let operands =
            Operands::new(self.cli, extent, placement, self.group.position(), self.arena);
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

/// One rank's operands, as it puts them in and as it must get them.
struct Operands {
    extent: Extent,
    /// Out of place.
    input: Buffer,
    output: Buffer,
    /// What the output must be; `None` where nobody looks.
    expected: Option<Buffer>,
    /// In place: where the operand lies in the output.
    within: Option<Range<usize>>,
    values: Values,
    rank: usize,
}

impl Operands {
    fn new(
        cli: &Cli,
        extent: Extent,
        placement: Placement,
        rank: usize,
        arena: Option<&Arc<Arena>>,
    ) -> Result<Self, TryReserveError> {
        let terms = cli.terms();
        let values = Values::new(terms, extent);
        let bytes = |range: Range<usize>| {
            range.start * terms.element.size_bytes()..range.end * terms.element.size_bytes()
        };
        let (input, output, within, result) = match placement {
            Placement::OutOfPlace => {
                let output = bytes(0..terms.output_count(extent, rank));
                (bytes(0..terms.input_count(extent, rank)).end, output.end, None, output)
            }
            Placement::InPlace => {
                let Buffered { length, input, result } = terms.buffered(extent, rank);
                (0, bytes(0..length).end, Some(bytes(input)), bytes(result))
            }
        };
        let (mut input, mut output) = (Buffer::new(arena, input)?, Buffer::new(arena, output)?);
        values.write_input(rank, input.operand_mut());
        let mut expected = None;
        if cli.check {
            let mut buffer = Buffer::new(arena, output.operand().len())?;
            if let Some(within) = &within {
                values.write_input(rank, &mut buffer.operand_mut()[within.clone()]);
            }
            values.write_expected(rank, &mut buffer.operand_mut()[result]);
            expected = Some(buffer);
        }
        if let Some(within) = &within {
            values.write_input(rank, &mut output.operand_mut()[within.clone()]);
        }
        Ok(Self { extent, input, output, expected, within, values, rank })
    }

    /// Makes every byte of the output what it must not be, so that one that is not written is
    /// wrong; in place, the operand is there again.
    fn poison(&mut self) {
        let Some(expected) = &self.expected else { return };
        poison(self.output.operand_mut(), expected.operand());
        if let Some(within) = &self.within {
            let operand = &mut self.output.operand_mut()[within.clone()];
            self.values.write_input(self.rank, operand);
        }
    }

    /// Wrong elements of the output and spoilt guard bytes, if what is right is known.
    fn wrong(&self, element: ElementType) -> Option<u64> {
        let expected = self.expected.as_ref()?;
        let wrong = differences(element, self.output.operand(), expected.operand());
        Some((wrong + self.output.damage() + self.input.damage()) as u64)
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
    /// Times the collective, checks it if what is expected is known, and agrees on the outcome.
    fn row(
        &self,
        extent: Extent,
        placement: Placement,
        mut operands: Operands,
    ) -> Result<Row, CollectiveError> {
        let samples = self.time(&mut operands)?;
        let mut wrong = None;
        if operands.expected.is_some() {
            operands.poison();
            self.once(&mut operands)?;
            if self.bench.cli.corrupt.is_some_and(|rank| rank as usize == operands.rank) {
                spoil(operands.output.operand_mut());
            }
            wrong = operands.wrong(self.terms.element);
        }
        let (slowest, samples_us) = self.slowest(&samples)?;
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
        self.bench.communicator.barrier(&self.call())?;
        let mut samples = Vec::with_capacity(iterations as usize);
        let mut last = Instant::now();
        for _ in 0..iterations {
            self.once(operands)?;
            let now = Instant::now();
            samples.push(now.duration_since(last));
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

/// Makes every byte of `output` what it must not be, so that one that is not written is wrong.
fn poison(output: &mut [u8], expected: &[u8]) {
    for (byte, expected) in output.iter_mut().zip(expected) {
        *byte = !expected;
    }
}

/// Makes the last element wrong, if there is one.
fn spoil(output: &mut [u8]) {
    if let Some(byte) = output.last_mut() {
        *byte = !*byte;
    }
}

/// How many elements are not as expected, bit for bit.
fn differences(element: ElementType, found: &[u8], expected: &[u8]) -> usize {
    let size = element.size_bytes();
    let pairs = found.chunks(size).zip(expected.chunks(size));
    pairs.filter(|(found, expected)| found != expected).count()
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

    #[test]
    fn what_is_not_written_is_wrong_and_counted_by_element() {
        let expected = [0, 255, 165, 90, 1, 2, 3, 4];
        let mut output = [0; 8];
        poison(&mut output, &expected);
        assert_eq!(differences(ElementType::U8, &output, &expected), 8);
        assert_eq!(differences(ElementType::F32, &output, &expected), 2);
        output = expected;
        spoil(&mut output);
        assert_eq!(differences(ElementType::F32, &output, &expected), 1);
        spoil(&mut []);
    }
}
