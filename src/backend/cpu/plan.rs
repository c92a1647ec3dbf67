//! Which memory each value gets: slots whose lives do not meet become one.
//!
//! Lowering numbers every value's slot anew. Planning walks the steps once in the order in which
//! they run, hands out memory when a value is born, takes it back after its last use, and lets a
//! kernel write over an operand that dies there when the kernel allows it.
//!
//! What a loop carries keeps its memory throughout the loop; only the value that becomes the next
//! state may be written over it. Results of the program get memory of exactly their size, since
//! they leave with it.

use std::collections::{HashMap, HashSet};

use super::step::{Body, Compute, Program, Slot, Step};

/// Blocks below this size take each other's memory whatever the fit.
const SMALL_BYTES: usize = 4096;

/// Replaces the slot of every value by that of the memory it shares. `sizes` has the size in bytes
/// of every slot as lowered.
pub(crate) fn plan(program: &mut Program, sizes: &[usize]) {
    let mut planner = Planner {
        sizes,
        memory_of: vec![None; sizes.len()],
        memory_sizes: Vec::new(),
        free: Vec::new(),
        escaping: program.body.results.iter().copied().collect(),
    };
    for (slot, _) in &mut program.constants {
        planner.allocate(*slot);
        *slot = planner.find(*slot);
    }
    let mut alive = HashSet::new();
    for parameter in &mut program.parameters {
        planner.allocate(*parameter);
        alive.insert(*parameter);
        *parameter = planner.find(*parameter);
    }
    planner.body(&mut program.body, alive, &HashMap::new());
    program.num_slots = planner.memory_sizes.len();
    program.memory_bytes = planner.memory_sizes.iter().sum();
}

struct Planner<'a> {
    sizes: &'a [usize],
    /// Per slot as lowered, its memory: a slot of the planned program.
    memory_of: Vec<Option<Slot>>,
    memory_sizes: Vec<usize>,
    free: Vec<Slot>,
    escaping: HashSet<Slot>,
}

impl Planner<'_> {
    fn find(&self, slot: Slot) -> Slot {
        // Every slot is written before it is read, so it has memory by then.
        self.memory_of[slot.index()].unwrap_or(slot)
    }

    fn allocate(&mut self, slot: Slot) {
        let size = self.sizes[slot.index()];
        let escapes = self.escaping.contains(&slot);
        let fits = |memory: &Slot| {
            let available = self.memory_sizes[memory.index()];
            if escapes {
                available == size
            } else {
                available >= size && (available <= 2 * size || available <= SMALL_BYTES)
            }
        };
        let best = (0..self.free.len())
            .filter(|&i| fits(&self.free[i]))
            .min_by_key(|&i| self.memory_sizes[self.free[i].index()]);
        let memory = if let Some(i) = best {
            self.free.swap_remove(i)
        } else {
            self.memory_sizes.push(size);
            Slot(self.memory_sizes.len() - 1)
        };
        self.memory_of[slot.index()] = Some(memory);
    }

    fn release(&mut self, slot: Slot) {
        self.free.push(self.find(slot));
    }

    /// Plans a body whose own values, so far `alive`, nobody outside reads but through its results.
    /// `carried` leads from the state of a loop to the value that replaces it.
    fn body(&mut self, body: &mut Body, mut alive: HashSet<Slot>, carried: &HashMap<Slot, Slot>) {
        let mut last_use: HashMap<Slot, usize> = HashMap::new();
        for (position, step) in body.steps.iter().enumerate() {
            for_each_read(step, &mut |slot| {
                last_use.insert(slot, position);
            });
        }
        for &result in &body.results {
            last_use.insert(result, usize::MAX);
        }
        for (position, step) in body.steps.iter_mut().enumerate() {
            let mut reads = Vec::new();
            for_each_read(step, &mut |slot| reads.push(slot));
            let mut writes = Vec::new();
            match step {
                Step::Compute(compute) => {
                    writes.extend(compute.outputs.iter().map(|(slot, _)| *slot));
                    let dying = |slot: Slot| last_use.get(&slot) == Some(&position);
                    let may_become = |input: Slot, output: Slot| {
                        dying(input)
                            && (alive.contains(&input) || carried.get(&input) == Some(&output))
                    };
                    for (input, output) in self.compute(compute, may_become) {
                        // The memory of a loop's state stays the loop's.
                        if !alive.remove(&input) {
                            writes.retain(|&slot| slot != output);
                        }
                    }
                }
                Step::While(step) => {
                    let carried: HashMap<Slot, Slot> = step
                        .state
                        .iter()
                        .copied()
                        .zip(step.body.results.iter().copied())
                        .filter(|(state, result)| state != result)
                        .collect();
                    self.body(&mut step.condition, HashSet::new(), &HashMap::new());
                    self.body(&mut step.body, HashSet::new(), &carried);
                    for state in &mut step.state {
                        *state = self.find(*state);
                    }
                }
                Step::Case(step) => {
                    step.selector = self.find(step.selector);
                    for (output, _) in &mut step.outputs {
                        writes.push(*output);
                        self.allocate(*output);
                        *output = self.find(*output);
                    }
                    for branch in &mut step.branches {
                        self.body(branch, HashSet::new(), &HashMap::new());
                    }
                }
                Step::Collective(step) => {
                    writes.push(step.output.0);
                    self.allocate(step.output.0);
                    step.input = self.find(step.input);
                    step.output.0 = self.find(step.output.0);
                }
                Step::Transfer { inputs, outputs, .. } => {
                    for (output, _) in outputs {
                        writes.push(*output);
                        self.allocate(*output);
                        *output = self.find(*output);
                    }
                    for input in inputs {
                        *input = self.find(*input);
                    }
                }
                Step::ProcessId { output, .. } => {
                    writes.push(*output);
                    self.allocate(*output);
                    *output = self.find(*output);
                }
            }
            alive.extend(writes.iter().copied());
            for slot in reads {
                if last_use.get(&slot) == Some(&position) && alive.remove(&slot) {
                    self.release(slot);
                }
            }
            for slot in writes {
                if !last_use.contains_key(&slot) && alive.remove(&slot) {
                    self.release(slot);
                }
            }
        }
        for slot in alive {
            if !self.escaping.contains(&slot) {
                self.release(slot);
            }
        }
        for result in &mut body.results {
            *result = self.find(*result);
        }
    }

    /// Gives the outputs of a kernel memory; returns which took over that of which input.
    fn compute(
        &mut self,
        compute: &mut Compute,
        may_become: impl Fn(Slot, Slot) -> bool,
    ) -> Vec<(Slot, Slot)> {
        let mut taken: Vec<(Slot, Slot)> = Vec::new();
        for (input, output) in compute.kernel.in_place() {
            let (from, (to, size)) = (compute.inputs[input], compute.outputs[output]);
            let occurrences = compute.inputs.iter().filter(|&&slot| slot == from).count();
            let exact = self.memory_sizes[self.find(from).index()] == size;
            if compute.reuse[output].is_none()
                && occurrences == 1
                && !taken.iter().any(|&(input, _)| input == from)
                && self.sizes[from.index()] == size
                && (exact || !self.escaping.contains(&to))
                && may_become(from, to)
            {
                compute.reuse[output] = Some(input);
                self.memory_of[to.index()] = self.memory_of[from.index()];
                taken.push((from, to));
            }
        }
        for (index, (output, _)) in compute.outputs.iter_mut().enumerate() {
            if compute.reuse[index].is_none() {
                self.allocate(*output);
            }
            *output = self.find(*output);
        }
        for input in &mut compute.inputs {
            *input = self.find(*input);
        }
        taken
    }
}

/// Calls `visit` with every slot that a step reads, its bodies included.
fn for_each_read(step: &Step, visit: &mut impl FnMut(Slot)) {
    match step {
        Step::Compute(compute) => compute.inputs.iter().for_each(|&slot| visit(slot)),
        Step::While(step) => {
            step.state.iter().for_each(|&slot| visit(slot));
            for_each_read_in(&step.condition, visit);
            for_each_read_in(&step.body, visit);
        }
        Step::Case(step) => {
            visit(step.selector);
            step.branches.iter().for_each(|branch| for_each_read_in(branch, visit));
        }
        Step::Collective(step) => visit(step.input),
        Step::Transfer { inputs, .. } => inputs.iter().for_each(|&slot| visit(slot)),
        Step::ProcessId { .. } => {}
    }
}

fn for_each_read_in(body: &Body, visit: &mut impl FnMut(Slot)) {
    for step in &body.steps {
        for_each_read(step, visit);
    }
    body.results.iter().for_each(|&slot| visit(slot));
}
