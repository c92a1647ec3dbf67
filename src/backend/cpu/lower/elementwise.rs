//! Elementwise operations: into fusion groups, and groups into steps.

use super::{Lowering, Place, first};
use crate::backend::cpu::fuse::{Group, MAX_LIVE};
use crate::backend::cpu::kernels::carrier::{carrier, carrier_for};
use crate::backend::cpu::kernels::elementwise::UnaryKernel;
use crate::backend::cpu::kernels::{compare, convert, elementwise, special};
use crate::backend::cpu::step::Slot;
use crate::backend::cpu::tile::{Node, TILE, TileKernel};
use crate::backend::cpu::view::View;
use crate::ifrt::{DType, Result, Status};
use crate::stablehlo::entity::Entity;
use crate::stablehlo::op::{Accuracy, AccuracyMode, Chlo};
use crate::stablehlo::{OpData, OpKind, TensorType, Value};

/// The loops of an elementwise operation.
pub(super) struct Loops {
    kernel: TileKernel,
    /// Bytes per element of what `kernel` makes.
    width: usize,
    /// What an operand goes through first, and its bytes per element then.
    into: Option<(UnaryKernel, usize)>,
    /// What the result goes through last, and its bytes per element then.
    back: Option<(UnaryKernel, usize)>,
}

impl Loops {
    /// The loops of an operation on operands of one element type, if they exist: for `select`,
    /// that of the values it chooses between.
    pub(super) fn new(kind: &OpKind, from: DType, to: DType) -> Option<Self> {
        let (into, back) = match kind {
            // What has no loop of its own goes by way of carriers. An integer that `f32` has to
            // round is too great for every 8-bit float, so nothing is rounded twice.
            OpKind::Convert if convert::convert(from, to).is_none() => {
                let into = carrier(from);
                let computed = into.map_or(from, |carrier| carrier.dtype);
                let is_direct = convert::convert(computed, to).is_some();
                (into, if is_direct { None } else { carrier(to) })
            }
            _ => {
                let carrier = carrier_for(kind, from);
                (carrier, carrier.filter(|_| to == from))
            }
        };
        let computed = into.map_or(from, |carrier| carrier.dtype);
        let result = back.map_or(to, |carrier| carrier.dtype);
        Some(Self {
            kernel: tile_kernel(kind, computed, result)?,
            width: result.size_bytes(),
            into: into.map(|carrier| (carrier.into, computed.size_bytes())),
            back: back.map(|carrier| (carrier.back, to.size_bytes())),
        })
    }

    /// The result on `operands`, put together by `apply`.
    pub(super) fn apply(
        &self,
        operands: &[Node],
        mut apply: impl FnMut(TileKernel, &[Node], usize) -> Node,
    ) -> Node {
        let mut operands = operands.to_vec();
        if let Some((into, width)) = self.into {
            for operand in &mut operands {
                *operand = apply(TileKernel::Unary(into), &[*operand], width);
            }
        }
        let node = apply(self.kernel, &operands, self.width);
        match self.back {
            Some((back, width)) => apply(TileKernel::Unary(back), &[node], width),
            None => node,
        }
    }
}

fn tile_kernel(kind: &OpKind, from: DType, to: DType) -> Option<TileKernel> {
    Some(match kind {
        OpKind::Unary(op) => TileKernel::Unary(elementwise::unary(*op, from)?),
        OpKind::Binary(op) => TileKernel::Binary(elementwise::binary(*op, from)?),
        OpKind::Chlo(Chlo::Unary(op)) => TileKernel::Unary(special::unary(*op, from)?),
        OpKind::Chlo(Chlo::Binary(op)) => TileKernel::Binary(special::binary(*op, from)?),
        OpKind::Compare { direction, compare_type } => {
            TileKernel::Binary(compare::compare(*direction, *compare_type, from)?)
        }
        OpKind::Select => TileKernel::Ternary(elementwise::select(to)),
        OpKind::Clamp => TileKernel::Ternary(elementwise::clamp(to)?),
        OpKind::Convert => TileKernel::Unary(convert::convert(from, to)?),
        OpKind::ReducePrecision { exponent_bits, mantissa_bits } => TileKernel::Rounding {
            kernel: convert::reduce_precision(from)?,
            exponent_bits: *exponent_bits,
            mantissa_bits: *mantissa_bits,
        },
        _ => return None,
    })
}

impl Lowering<'_> {
    /// Whether the functions of elements of type `dtype`, of which there is one kind, are as exact
    /// as an operation asks.
    fn check_accuracy(&self, op: &OpData, asked: &Accuracy, dtype: DType) -> Result<()> {
        /// What `kernels::math` promises, in units in the last place.
        const ULPS: i64 = 2;
        let mantissa_bits = match dtype {
            DType::F64 => 52,
            DType::F32 => 23,
            DType::F16 => 10,
            DType::BF16 => 7,
            // Nothing is promised.
            _ => 0,
        };
        if mantissa_bits > 0 && asked.is_met_by(ULPS, 2_f64.powi(-mantissa_bits))
            || asked.mode != AccuracyMode::Tolerance
        {
            return Ok(());
        }
        Err(self.unimplemented_because(op, "within the tolerances that it asks for"))
    }

    /// Adds an elementwise operation to a fusion group.
    pub(super) fn elementwise(&mut self, op: &OpData) -> Result<()> {
        let result = first(&op.results)?;
        let ty = self.tensor(result)?;
        let from = self.tensor(first(&op.operands)?)?.dtype;
        if let Some(accuracy) = &op.accuracy {
            self.check_accuracy(op, accuracy, from)?;
        }
        if matches!(op.kind, OpKind::Convert) && from == ty.dtype {
            return self.alias(first(&op.operands)?, result);
        }
        let loops = Loops::new(&op.kind, from, ty.dtype).ok_or_else(|| self.unimplemented(op))?;
        let group = self.group_for(&op.operands, ty.shape.num_elements())?;
        let mut nodes = Vec::with_capacity(op.operands.len());
        for &operand in &op.operands {
            nodes.push(self.node(operand, ty, group)?);
        }
        self.consume(&op.operands);
        let group_data = self.group(group)?;
        let node = loops
            .apply(&nodes, |kernel, operands, width| group_data.apply(kernel, operands, width));
        group_data.values.push((result, node));
        self.places[result.index()] = Some(Place::Pending { group, node });
        Ok(())
    }

    fn group(&mut self, group: usize) -> Result<&mut Group> {
        self.groups
            .get_mut(group)
            .and_then(Option::as_mut)
            .ok_or_else(|| Status::internal("a fusion group is used after it was closed"))
    }

    /// The open group in which an operation on `operands` with results of `num_elements` goes:
    /// that of its pending operands, merged into one; those that do not fit become steps.
    fn group_for(&mut self, operands: &[Value], num_elements: usize) -> Result<usize> {
        let mut chosen = None;
        for &operand in operands {
            let Place::Pending { group, .. } = *self.place(operand)? else {
                continue;
            };
            let has_room = self.has_room(group, num_elements)?;
            match chosen {
                Some(chosen) if chosen == group => {}
                None if has_room => chosen = Some(group),
                Some(chosen) if has_room && self.try_merge(chosen, group)? => {}
                _ => self.close(group)?,
            }
        }
        Ok(chosen.unwrap_or_else(|| {
            self.groups.push(Some(Group::new(num_elements)));
            self.groups.len() - 1
        }))
    }

    /// Whether an operation with results of `num_elements` may go into a group.
    fn has_room(&mut self, group: usize, num_elements: usize) -> Result<bool> {
        let group = self
            .groups
            .get(group)
            .and_then(Option::as_ref)
            .ok_or_else(|| Status::internal("a fusion group is used after it was closed"))?;
        let is_live = |&&(value, _): &&(Value, Node)| self.uses[value.index()] > 0;
        Ok(group.num_elements() == num_elements
            && group.has_room()
            && group.values.iter().filter(is_live).count() <= MAX_LIVE)
    }

    /// Merges the group `from` into `into` if there is room.
    fn try_merge(&mut self, into: usize, from: usize) -> Result<bool> {
        let Some(source) = self.groups[from].take() else {
            return Ok(false);
        };
        let target = self.group(into)?;
        if !target.has_room_for(&source) {
            self.groups[from] = Some(source);
            return Ok(false);
        }
        let moved: Vec<Value> = source.values.iter().map(|&(value, _)| value).collect();
        let offset = target.merge(source);
        for value in moved {
            if let Some(Place::Pending { group, node }) = &mut self.places[value.index()] {
                *group = into;
                *node = Node(node.0 + offset);
            }
        }
        Ok(true)
    }

    /// An operand as a node of a group whose values have the shape of `ty`.
    fn node(&mut self, operand: Value, ty: &TensorType, group: usize) -> Result<Node> {
        if let Place::Pending { group: home, node } = *self.place(operand)?
            && home == group
        {
            return Ok(node);
        }
        let operand_ty = self.tensor(operand)?;
        let width = operand_ty.dtype.size_bytes();
        let (mut slot, mut view) = self.stored(operand)?;
        // The predicate of `select` and the bounds of `clamp` may be scalars.
        if operand_ty.shape.rank() == 0 && ty.shape.rank() > 0 {
            view = view.broadcast(ty.shape.dims(), &[]);
        }
        // A loop that walks memory with a long stride wastes most of every cache line; a blocked
        // copy does not.
        let strides = view.collapsed().strides;
        let in_runs = strides.last().is_none_or(|&stride| stride == 0 || stride == 1);
        if !in_runs && view.num_elements() > TILE {
            slot = self.dense(operand)?;
            view = View::from(&ty.shape);
        }
        Ok(self.group(group)?.load(slot, &view, width))
    }

    /// Turns a group into a step that stores what is still needed of it.
    pub(super) fn close(&mut self, group: usize) -> Result<()> {
        let Some(finished) = self.groups.get_mut(group).and_then(Option::take) else {
            return Ok(());
        };
        let mut outputs: Vec<(Node, Slot)> = Vec::new();
        for &(value, node) in &finished.values {
            if self.uses[value.index()] == 0 {
                continue;
            }
            let known = outputs.iter().find(|(output, _)| *output == node);
            let slot = match known {
                Some(&(_, slot)) => slot,
                None => {
                    let slot = self.new_slot(finished.num_elements() * finished.width(node));
                    outputs.push((node, slot));
                    slot
                }
            };
            let view = View::from(&self.tensor(value)?.shape);
            self.define(value, slot, view);
        }
        let (nodes, slots): (Vec<Node>, Vec<Slot>) = outputs.into_iter().unzip();
        let (kernel, inputs) = finished.finish(&nodes);
        self.emit(kernel, inputs, slots);
        Ok(())
    }

    /// Makes `result` another name, perhaps of another shape, for the elements of `operand`.
    pub(super) fn alias(&mut self, operand: Value, result: Value) -> Result<()> {
        let ty = self.tensor(result)?;
        match self.place(operand)?.clone() {
            Place::Pending { group, node } => {
                self.group(group)?.values.push((result, node));
                self.places[result.index()] = Some(Place::Pending { group, node });
            }
            Place::Stored { slot, view } => match view.reshape(ty.shape.dims()) {
                Some(view) => self.define(result, slot, view),
                None => {
                    let slot = self.dense(operand)?;
                    self.define(result, slot, View::from(&ty.shape));
                }
            },
        }
        self.consume(&[operand]);
        Ok(())
    }
}
