//! Elementwise operations fused into one loop over tiles.
//!
//! While lowering walks a block, elementwise operations gather in open [`Group`]s, one loop each.
//! A group stays open until somebody outside needs one of its values; then it becomes a step that
//! stores exactly the values still needed. Nothing outside an open group depends on it, so two
//! open groups of one size may always be merged.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::kernels::shape::copy_range_bytes;
use super::step::{Input, Kernel, Scratch, Slot};
use super::tile::{Builder, MAX_INPUTS, Node, TILE, TileKernel, TileProgram};
use super::view::View;
use crate::stablehlo::Value;

/// Loops from this many elements on are run by several threads, in parts: waking them costs about
/// as much as computing a few tiles.
const PARALLEL: usize = 4 * PART;

/// How many elements a thread takes at once.
const PART: usize = 16 * TILE;

/// How long a group may grow; everything it computes is stored when it ends, and read again.
const MAX_NODES: usize = 512;

/// How many values a group that grows on may have that are still needed: the registers that hold
/// them are to stay in the nearer caches.
pub(crate) const MAX_LIVE: usize = 32;

/// How many nodes one operation may add: three inputs, each unpacked, the result, it packed.
const MAX_NODES_PER_OP: usize = 8;

/// Elementwise operations that will run as one loop.
#[derive(Debug)]
pub(crate) struct Group {
    num_elements: usize,
    builder: Builder,
    loads: Vec<Load>,
    /// The values computed so far.
    pub(crate) values: Vec<(Value, Node)>,
}

/// A stored array read by a group.
#[derive(Clone, Debug, PartialEq)]
struct Load {
    slot: Slot,
    view: View,
    width: usize,
    node: Node,
}

impl Group {
    /// An empty group whose values have `num_elements` elements.
    pub(crate) fn new(num_elements: usize) -> Self {
        Self { num_elements, builder: Builder::default(), loads: Vec::new(), values: Vec::new() }
    }

    /// The number of elements of every value.
    pub(crate) fn num_elements(&self) -> usize {
        self.num_elements
    }

    /// Whether an operation of up to three new inputs still fits.
    pub(crate) fn has_room(&self) -> bool {
        self.builder.len() + MAX_NODES_PER_OP <= MAX_NODES
            && self.builder.num_inputs() + 3 <= MAX_INPUTS
    }

    /// Whether all of `other` would still fit.
    pub(crate) fn has_room_for(&self, other: &Self) -> bool {
        self.builder.len() + other.builder.len() + MAX_NODES_PER_OP <= MAX_NODES
            && self.builder.num_inputs() + other.builder.num_inputs() + 3 <= MAX_INPUTS
    }

    /// Takes over everything in `other`; its node `n` becomes `n` plus what is returned.
    pub(crate) fn merge(&mut self, other: Self) -> usize {
        let offset = self.builder.append(&other.builder);
        let moved = |Node(node): Node| Node(node + offset);
        self.loads
            .extend(other.loads.into_iter().map(|load| Load { node: moved(load.node), ..load }));
        self.values.extend(other.values.into_iter().map(|(value, node)| (value, moved(node))));
        offset
    }

    /// The elements of a view of a stored array.
    pub(crate) fn load(&mut self, slot: Slot, view: &View, width: usize) -> Node {
        let view = view.collapsed();
        let known = |load: &&Load| load.slot == slot && load.view == view && load.width == width;
        if let Some(load) = self.loads.iter().find(known) {
            return load.node;
        }
        let node = self.builder.input(width);
        self.loads.push(Load { slot, view, width, node });
        node
    }

    /// The result of an elementwise kernel.
    pub(crate) fn apply(&mut self, kernel: TileKernel, operands: &[Node], width: usize) -> Node {
        self.builder.apply(kernel, operands, width)
    }

    /// Bytes per element of a node.
    pub(crate) fn width(&self, node: Node) -> usize {
        self.builder.width(node)
    }

    /// The loop that stores `outputs`, and the slots it reads.
    pub(crate) fn finish(self, outputs: &[Node]) -> (FusedLoop, Vec<Slot>) {
        let mut slots: Vec<Slot> = Vec::new();
        let mut sources = Vec::with_capacity(self.loads.len());
        for load in self.loads {
            let input = slots.iter().position(|&slot| slot == load.slot).unwrap_or_else(|| {
                slots.push(load.slot);
                slots.len() - 1
            });
            let access =
                if load.view.is_contiguous() && load.view.num_elements() == self.num_elements {
                    Access::Contiguous { offset: load.view.offset }
                } else {
                    Access::Strided(load.view)
                };
            sources.push(Source { input, width: load.width, access });
        }
        let widths = outputs.iter().map(|&node| self.builder.width(node)).collect();
        let program = self.builder.finish(outputs);
        (FusedLoop { num_elements: self.num_elements, sources, program, widths }, slots)
    }
}

/// How a tile program's input is read.
#[derive(Debug)]
struct Source {
    input: usize,
    width: usize,
    access: Access,
}

#[derive(Debug)]
enum Access {
    /// Element `i` of the loop is element `offset + i` of the array: read where it lies.
    Contiguous { offset: usize },
    /// Gathered into a tile of its own first.
    Strided(View),
}

/// One loop over tiles.
#[derive(Debug)]
pub(crate) struct FusedLoop {
    num_elements: usize,
    sources: Vec<Source>,
    program: TileProgram,
    /// Bytes per element of each output.
    widths: Vec<usize>,
}

impl Kernel for FusedLoop {
    /// An output may replace an input that every load reads at the loop's own position: a tile is
    /// stored after everything it depends on has been read.
    fn in_place(&self) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let num_inputs = self.sources.iter().map(|source| source.input + 1).max().unwrap_or(0);
        for input in 0..num_inputs {
            let mut sources = self.sources.iter().filter(|source| source.input == input);
            let same_position = sources
                .clone()
                .all(|source| matches!(source.access, Access::Contiguous { offset: 0 }));
            if let (true, Some(source)) = (same_position, sources.next()) {
                for (output, &width) in self.widths.iter().enumerate() {
                    if width == source.width {
                        pairs.push((input, output));
                    }
                }
            }
        }
        pairs
    }

    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], scratch: &mut Scratch) {
        if self.num_elements < PARALLEL {
            self.run_part(inputs, outputs, 0, self.num_elements, scratch);
            return;
        }
        let mut rest: Vec<&mut [u8]> = outputs.iter_mut().map(|out| &mut **out).collect();
        let mut parts = Vec::with_capacity(self.num_elements.div_ceil(PART));
        for start in (0..self.num_elements).step_by(PART) {
            let len = PART.min(self.num_elements - start);
            let mut part = Vec::with_capacity(rest.len());
            for (out, &width) in rest.iter_mut().zip(&self.widths) {
                let (now, later) = std::mem::take(out).split_at_mut(len * width);
                part.push(now);
                *out = later;
            }
            parts.push((start, len, part));
        }
        parts.into_par_iter().for_each_init(Scratch::default, |scratch, (start, len, mut part)| {
            self.run_part(inputs, &mut part, start, len, scratch);
        });
    }
}

impl FusedLoop {
    /// Computes `count` elements from `first` on into outputs that begin there.
    fn run_part(
        &self,
        inputs: &[Input<'_>],
        outputs: &mut [&mut [u8]],
        first: usize,
        count: usize,
        scratch: &mut Scratch,
    ) {
        let Scratch { registers, tiles, .. } = scratch;
        tiles.reserve(self.sources.len());
        for (index, source) in self.sources.iter().enumerate() {
            // The same element everywhere: filled once for all tiles.
            if let Access::Strided(view) = &source.access
                && view.is_splat()
            {
                let tile = tiles.bytes_mut(index, TILE.min(count) * source.width);
                copy_range_bytes(source.width, inputs[source.input].bytes(), view, 0, tile);
            }
        }
        for done in (0..count).step_by(TILE) {
            let len = TILE.min(count - done);
            let start = first + done;
            for (index, source) in self.sources.iter().enumerate() {
                if let Access::Strided(view) = &source.access
                    && !view.is_splat()
                {
                    let tile = tiles.bytes_mut(index, len * source.width);
                    copy_range_bytes(source.width, inputs[source.input].bytes(), view, start, tile);
                }
            }
            let mut tile_inputs: [&[u8]; MAX_INPUTS] = [&[]; MAX_INPUTS];
            for ((index, source), tile_input) in
                self.sources.iter().enumerate().zip(&mut tile_inputs)
            {
                *tile_input = match source.access {
                    Access::Strided(_) => tiles.bytes(index, len * source.width),
                    Access::Contiguous { offset } => {
                        // An input that is an output is read at the loop's own position.
                        let (bytes, at) = match inputs[source.input] {
                            Input::Bytes(bytes) => (bytes, offset + start),
                            Input::Output(output) => (&*outputs[output], done),
                        };
                        &bytes[at * source.width..(at + len) * source.width]
                    }
                };
            }
            self.program.run(&tile_inputs, len, registers);
            for (index, (out, &width)) in outputs.iter_mut().zip(&self.widths).enumerate() {
                out[done * width..(done + len) * width]
                    .copy_from_slice(self.program.output(index, len, registers));
            }
        }
    }
}
