//! One size: warm up, time, check, and agree on the outcome with all ranks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockstep_collectives::shared_memory::Arena;
use lockstep_collectives::{Call, CollectiveError, Communicator, ElementType, Group, Reduction};

use crate::buffer::Buffer;
use crate::cli::Cli;
use crate::collective::{Extent, Terms};
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
}

/// The outcome of one size, the same on every rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) extent: Extent,
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

    /// Measures one size; every rank must.
    ///
    /// # Errors
    /// When a collective fails or there is no memory.
    pub(crate) fn measure(&self, extent: Extent) -> Result<Row, Failure> {
        let terms = self.cli.terms();
        let values = Values::new(terms, extent, self.group.members().len());
        let size_bytes = extent.size_bytes;
        let no_memory = |_| Failure::Memory { size_bytes: size_bytes as u64 };
        let mut input = Buffer::new(self.arena, extent.input_bytes).map_err(no_memory)?;
        let mut output = Buffer::new(self.arena, extent.output_bytes).map_err(no_memory)?;
        let expected = self.cli.check.then(|| Buffer::new(self.arena, extent.output_bytes));
        let mut expected = expected.transpose().map_err(no_memory)?;
        values.write_input(self.group.position(), input.operand_mut());
        if let Some(expected) = &mut expected {
            values.write_expected(self.group.position(), expected.operand_mut());
        }

        let run = Run { bench: self, terms, deadline: self.deadline() };
        let expected = expected.as_ref().map(Buffer::operand);
        let row = run.row(extent, input.operand(), &mut output, expected);
        row.map_err(|error| Failure::Collective {
            size_bytes,
            timeout: self.cli.timeout,
            source: Box::new(error),
        })
    }

    fn deadline(&self) -> Option<Instant> {
        self.cli.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
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
    /// Times the collective, checks it if what is `expected` is given, and agrees on the outcome.
    fn row(
        &self,
        extent: Extent,
        input: &[u8],
        output: &mut Buffer,
        expected: Option<&[u8]>,
    ) -> Result<Row, CollectiveError> {
        let samples = self.time(input, output.operand_mut())?;
        let wrong = expected.map(|expected| self.check(input, output, expected)).transpose()?;
        self.agree(extent, &samples, wrong)
    }

    fn call(&self) -> Call<'_> {
        let timeout =
            self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        Call { timeout, ..Call::on(self.bench.group) }
    }

    fn once(&self, input: &[u8], output: &mut [u8]) -> Result<(), CollectiveError> {
        self.terms.run(self.bench.communicator, &self.call(), input, output)
    }

    /// How long each iteration takes this rank, one after the other, from a common start.
    fn time(&self, input: &[u8], output: &mut [u8]) -> Result<Vec<Duration>, CollectiveError> {
        let Cli { iterations, warm_up, .. } = *self.bench.cli;
        for _ in 0..warm_up {
            self.once(input, output)?;
        }
        self.bench.communicator.barrier(&self.call())?;
        let mut samples = Vec::with_capacity(iterations as usize);
        let mut last = Instant::now();
        for _ in 0..iterations {
            self.once(input, output)?;
            let now = Instant::now();
            samples.push(now.duration_since(last));
            last = now;
        }
        Ok(samples)
    }

    /// Runs once into poisoned memory and counts what is not as expected.
    fn check(
        &self,
        input: &[u8],
        output: &mut Buffer,
        expected: &[u8],
    ) -> Result<u64, CollectiveError> {
        poison(output.operand_mut(), expected);
        // A broadcast has one buffer, which on the root is what goes out.
        let root = self.terms.root().is_some_and(|root| root as usize == self.position());
        if root {
            output.operand_mut().copy_from_slice(input);
        }
        self.once(input, output.operand_mut())?;
        if self.bench.cli.corrupt.is_some_and(|rank| rank as usize == self.position()) {
            spoil(output.operand_mut());
        }
        let wrong = differences(self.terms.element, output.operand(), expected);
        Ok((wrong + output.damage()) as u64)
    }

    /// The outcome of all ranks: times of the slowest, errors of all together.
    fn agree(
        &self,
        extent: Extent,
        samples: &[Duration],
        wrong: Option<u64>,
    ) -> Result<Row, CollectiveError> {
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

        let wrong = wrong.map(|wrong| {
            let (input, mut sum) = (bytemuck::bytes_of(&wrong), 0_u64);
            let output = bytemuck::bytes_of_mut(&mut sum);
            communicator.all_reduce(&self.call(), element, Reduction::Sum, input, output)?;
            Ok(sum)
        });
        let samples_us = samples.iter().map(|time| *time as f64 / 1e3).collect();
        Ok(Row { extent, slowest, samples_us, wrong: wrong.transpose()? })
    }

    fn position(&self) -> usize {
        self.bench.group.position()
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
        let extent = Extent { size_bytes, count: 1, input_bytes: 0, output_bytes: 0 };
        Row { extent, slowest: 0, samples_us: samples_us.to_vec(), wrong: None }
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
