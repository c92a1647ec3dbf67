//! Plans by which the shards of some arrays become those of others, without moving a byte.

use std::sync::Arc;

use super::{
    ArrayCopySemantics, ArraySpec, DeviceList, Result, Shape, SingleDeviceShardSemantics, Status,
};

/// Some of a list, as a Python slice: every `step`th from `start` on, before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    /// The first.
    pub start: usize,
    /// What is behind the last.
    pub end: usize,
    /// From one to the next, not 0.
    pub step: usize,
}

impl Interval {
    /// The places, ascending.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        (self.start..self.end).step_by(self.step.max(1))
    }
}

/// Shards of one input that become shards of one output, in order; addressable ones, by their
/// numbers among the addressable shards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemapMapping {
    /// The input, by its place.
    pub input: usize,
    /// The output, by its place.
    pub output: usize,
    /// Shards of the input.
    pub from: Vec<Interval>,
    /// As many shards of the output.
    pub to: Vec<Interval>,
}

/// A checked plan; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemapPlan {
    parts: Arc<Parts>,
}

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    inputs: Vec<ArraySpec>,
    outputs: Vec<ArraySpec>,
    /// For each output, the input and the shard that each of its addressable shards comes from.
    sources: Vec<Vec<(usize, usize)>>,
}

impl RemapPlan {
    /// The plan by which arrays of the specifications `inputs` become arrays of `outputs`.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no input, a mapping names what does not exist, an input
    /// shard is used twice, an output shard is not assigned exactly once, or the two differ in
    /// element type, true shape, device or memory.
    pub fn new(
        inputs: Vec<ArraySpec>,
        outputs: Vec<ArraySpec>,
        mappings: &[RemapMapping],
    ) -> Result<Self> {
        if inputs.is_empty() {
            return Err(Status::invalid_argument("a remap plan has no inputs"));
        }
        let shards =
            |specs: &[ArraySpec]| -> Result<Vec<Shards>> { specs.iter().map(Shards::of).collect() };
        let (from_shards, to_shards) = (shards(&inputs)?, shards(&outputs)?);
        let mut used: Vec<Vec<bool>> =
            from_shards.iter().map(|shards| vec![false; shards.shapes.len()]).collect();
        let mut sources: Vec<Vec<Option<(usize, usize)>>> =
            to_shards.iter().map(|shards| vec![None; shards.shapes.len()]).collect();
        for RemapMapping { input, output, from, to } in mappings {
            let (Some(input_spec), Some(output_spec)) = (inputs.get(*input), outputs.get(*output))
            else {
                return Err(Status::invalid_argument(format!(
                    "a mapping is from input {input} to output {output}, there are {} and {}",
                    inputs.len(),
                    outputs.len()
                )));
            };
            if input_spec.dtype != output_spec.dtype {
                return Err(Status::invalid_argument(format!(
                    "input {input} is of {}, output {output} of {}",
                    input_spec.dtype, output_spec.dtype
                )));
            }
            let (from, to) = (places(from)?, places(to)?);
            if from.len() != to.len() {
                return Err(Status::invalid_argument(format!(
                    "{} shards of input {input} cannot be {} shards of output {output}",
                    from.len(),
                    to.len()
                )));
            }
            for (from, to) in from.into_iter().zip(to) {
                let ends = (from_shards[*input].get(from), to_shards[*output].get(to));
                let (Some(source), Some(target)) = ends else {
                    return Err(Status::invalid_argument(format!(
                        "shard {from} of input {input} or shard {to} of output {output} is not \
                         addressable: there are {} and {}",
                        from_shards[*input].shapes.len(),
                        to_shards[*output].shapes.len()
                    )));
                };
                if source != target {
                    return Err(Status::invalid_argument(format!(
                        "shard {from} of input {input} is {} on {}, shard {to} of output {output} \
                         is {} on {}",
                        source.0, source.1, target.0, target.1
                    )));
                }
                if std::mem::replace(&mut used[*input][from], true) {
                    return Err(Status::invalid_argument(format!(
                        "shard {from} of input {input} is used twice"
                    )));
                }
                if sources[*output][to].replace((*input, from)).is_some() {
                    return Err(Status::invalid_argument(format!(
                        "shard {to} of output {output} is assigned twice"
                    )));
                }
                if input_spec.sharding.memory_kind() != output_spec.sharding.memory_kind() {
                    return Err(Status::invalid_argument(format!(
                        "input {input} is in {} memory, output {output} in {}",
                        input_spec.sharding.memory_kind(),
                        output_spec.sharding.memory_kind()
                    )));
                }
            }
        }
        let complete = |(output, shards): (usize, Vec<Option<(usize, usize)>>)| {
            let complete: Option<Vec<_>> = shards.iter().copied().collect();
            complete.ok_or_else(|| {
                let missing: Vec<usize> =
                    (0..shards.len()).filter(|&shard| shards[shard].is_none()).collect();
                Status::invalid_argument(format!(
                    "nothing becomes shards {missing:?} of output {output}"
                ))
            })
        };
        let sources = sources.into_iter().enumerate().map(complete).collect::<Result<_>>()?;
        Ok(Self { parts: Arc::new(Parts { inputs, outputs, sources }) })
    }

    /// What the inputs must be.
    pub fn inputs(&self) -> &[ArraySpec] {
        &self.parts.inputs
    }

    /// What the outputs will be.
    pub fn outputs(&self) -> &[ArraySpec] {
        &self.parts.outputs
    }

    /// For each output, the input and the addressable shard of it that each of its addressable
    /// shards comes from.
    pub fn sources(&self) -> &[Vec<(usize, usize)>] {
        &self.parts.sources
    }

    /// Checks that the plan can be carried out with these semantics.
    ///
    /// # Errors
    /// `InvalidArgument` for copies, which a plan does not make, and when inputs are to stay usable
    /// though shards of several go into one output.
    pub fn check_copy_semantics(&self, copy: ArrayCopySemantics) -> Result<()> {
        let is_mixed =
            |sources: &Vec<(usize, usize)>| sources.windows(2).any(|pair| pair[0].0 != pair[1].0);
        match copy {
            ArrayCopySemantics::DonateInput => Ok(()),
            ArrayCopySemantics::AlwaysCopy => Err(Status::invalid_argument(
                "a remap plan moves no bytes: it reuses its inputs or takes them over",
            )),
            ArrayCopySemantics::ReuseInput => match self.parts.sources.iter().position(is_mixed) {
                None => Ok(()),
                Some(output) => Err(Status::invalid_argument(format!(
                    "output {output} is made of several inputs, which must be donated"
                ))),
            },
        }
    }
}

/// The addressable shards of an array.
struct Shards {
    shapes: Vec<Shape>,
    devices: DeviceList,
}

impl Shards {
    fn of(spec: &ArraySpec) -> Result<Self> {
        let addressable = SingleDeviceShardSemantics::AddressableShards;
        Ok(Self {
            shapes: spec.sharding.shard_shapes(&spec.shape, addressable)?,
            devices: spec.sharding.devices().addressable(),
        })
    }

    /// The true shape of a shard, and its device.
    fn get(&self, shard: usize) -> Option<(&Shape, super::DeviceId)> {
        Some((self.shapes.get(shard)?, self.devices.get(shard)?.id()))
    }
}

/// What intervals name, one after the other.
fn places(intervals: &[Interval]) -> Result<Vec<usize>> {
    /// More shards than any array has.
    const MAX_PLACES: usize = 1 << 24;
    let mut places = Vec::new();
    for interval in intervals {
        if interval.step == 0 || interval.end > MAX_PLACES {
            return Err(Status::invalid_argument(format!("{interval:?} is no interval of shards")));
        }
        places.extend(interval.places());
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::super::device_list::tests::devices;
    use super::super::{DType, Mesh, Sharding};
    use super::*;

    fn spec(list: DeviceList, length: usize) -> ArraySpec {
        let tiling = Mesh::new([("x", list.len())]).unwrap().tiling(&[&["x"]]).unwrap();
        let shape = Shape::new([length]).unwrap();
        ArraySpec { dtype: DType::U8, shape, sharding: Sharding::tiled(list, tiling).unwrap() }
    }

    fn every(start: usize, end: usize, step: usize) -> Vec<Interval> {
        vec![Interval { start, end, step }]
    }

    #[test]
    fn a_plan_splits_an_array_by_devices() {
        let all = devices(4, 4, 0);
        let half = |places: [usize; 2]| {
            let chosen = places.map(|place| all.get(place).unwrap().clone());
            spec(DeviceList::new(chosen), 4)
        };
        let (even, odd) = (half([0, 2]), half([1, 3]));
        let mapping = |output, start| RemapMapping {
            input: 0,
            output,
            from: every(start, 4, 2),
            to: every(0, 2, 1),
        };
        let whole = spec(all.clone(), 8);
        let plan = |mappings: &[RemapMapping]| {
            RemapPlan::new(vec![whole.clone()], vec![even.clone(), odd.clone()], mappings)
        };
        let split = plan(&[mapping(0, 0), mapping(1, 1)]).unwrap();
        assert_eq!(split.sources(), [vec![(0, 0), (0, 2)], vec![(0, 1), (0, 3)]]);
        split.check_copy_semantics(ArrayCopySemantics::ReuseInput).unwrap();
        split.check_copy_semantics(ArrayCopySemantics::AlwaysCopy).unwrap_err();

        let message = |mappings: &[RemapMapping]| plan(mappings).unwrap_err().message().to_owned();
        assert_eq!(message(&[mapping(0, 0)]), "nothing becomes shards [0, 1] of output 1");
        assert!(message(&[mapping(0, 0), mapping(1, 0)]).contains("shard 0 of input 0 is [2] on"));
        assert!(message(&[mapping(0, 0), mapping(0, 0)]).contains("is used twice"));
        assert!(message(&[mapping(2, 0)]).contains("to output 2"));
        let endless = RemapMapping { from: every(0, usize::MAX, 1), ..mapping(0, 0) };
        assert!(message(&[endless]).contains("no interval"));
        let past = RemapMapping { from: every(0, 5, 4), ..mapping(0, 0) };
        assert!(message(&[past]).contains("is not addressable"));

        let join = RemapPlan::new(
            vec![even, odd],
            vec![whole],
            &[0, 1].map(|input| RemapMapping {
                input,
                output: 0,
                from: every(0, 2, 1),
                to: every(input, 4, 2),
            }),
        );
        let join = join.unwrap();
        join.check_copy_semantics(ArrayCopySemantics::ReuseInput).unwrap_err();
        join.check_copy_semantics(ArrayCopySemantics::DonateInput).unwrap();
    }
}
