//! The mesh over which everything is spread that a module says in tiles.
//!
//! The devices of the tiles along a dimension are a distance apart, or there are several distances,
//! one within the other. Cut at all distances that the shardings of a module have, the devices
//! are a mesh, of which each tiling uses some axes. The mesh has its devices in their order: an order of
//! devices that no distances describe is refused.

use std::collections::BTreeSet;

use crate::spmd::SpmdError;
use crate::stablehlo::op::{AxisRef, DimSharding, ReductionOp, Sharding};
use crate::stablehlo::xla::{HloSharding, HloTiling, Subgroup};
use crate::stablehlo::{Mesh, Module};

/// The mesh of a module, and what tilings are over it.
pub(super) struct Tiles {
    mesh: Mesh,
    /// The distance between neighbours along each axis, greatest first.
    strides: Vec<usize>,
}

/// `size` tiles whose devices are `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    size: usize,
    stride: usize,
}

impl Tiles {
    /// The mesh on which all of `shardings` can be said.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn new(module: &Module, shardings: &[HloSharding]) -> Result<Self, SpmdError> {
        let refuse = |reason| Err(SpmdError::HloShardings { reason });
        let devices = module.num_partitions;
        let mut cuts = BTreeSet::from([1, devices]);
        for sharding in shardings {
            let HloSharding::Tiled(tiling) = sharding else { continue };
            if tiling.devices().len() != devices {
                let reason = format!("{sharding} is not over the module's {devices} partitions");
                return refuse(reason);
            }
            let Some(runs) = runs(tiling) else {
                return refuse(format!("{sharding} has its devices in an order that no mesh has"));
            };
            for run in runs.into_iter().flatten() {
                cuts.extend([run.stride, run.stride * run.size]);
            }
        }
        let mut axes = Vec::new();
        let mut strides = Vec::new();
        let mut below: Option<usize> = None;
        for cut in cuts {
            if let Some(below) = below {
                if !cut.is_multiple_of(below) {
                    let all: Vec<String> = shardings.iter().map(ToString::to_string).collect();
                    let all = all.join(", ");
                    return refuse(format!("no mesh has axes for all of {all}"));
                }
                axes.push((format!("by_{below}"), cut / below));
                strides.push(below);
            }
            below = Some(cut);
        }
        axes.reverse();
        strides.reverse();
        let mut name = String::from("devices");
        while module.mesh(&name).is_some() {
            name.push('_');
        }
        Ok(Self { mesh: Mesh { name, axes, device_ids: None }, strides })
    }

    pub(super) fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The sharding of an array of `rank` dimensions; `None` where nothing is said.
    ///
    /// # Errors
    /// Why an array is not spread like that.
    pub(super) fn sharding(
        &self,
        hlo: &HloSharding,
        rank: usize,
    ) -> Result<Option<Sharding>, String> {
        match hlo {
            HloSharding::Unknown => Ok(None),
            // In the parts of devices nothing is left to spread.
            HloSharding::Replicated | HloSharding::Manual => {
                Ok(Some(Sharding::whole(&self.mesh.name, rank)))
            }
            HloSharding::Unreduced => {
                let axes = self.mesh.axes.iter();
                let axis =
                    |(name, _): &(String, usize)| AxisRef { name: name.clone(), sub_axis: None };
                let unreduced = axes.map(axis).collect();
                Ok(Some(Sharding { unreduced, ..Sharding::whole(&self.mesh.name, rank) }))
            }
            HloSharding::Tiled(tiling) if tiling.tile_counts().len() == rank => {
                let mut dims = self.axes(tiling)?;
                let subgroups = dims.split_off(rank).into_iter().zip(tiling.subgroups());
                let unreduced =
                    subgroups.filter(|(_, (subgroup, _))| *subgroup == Subgroup::Unreduced);
                let dim = |axes| DimSharding { axes, is_open: false, priority: None };
                Ok(Some(Sharding {
                    mesh: self.mesh.name.clone(),
                    unreduced: unreduced.flat_map(|(axes, _)| axes).collect(),
                    dims: dims.into_iter().map(dim).collect(),
                    replicated: Vec::new(),
                    reduction_op: ReductionOp::default(),
                }))
            }
            HloSharding::Tiled(tiling) => {
                Err(format!("it has {} dimensions, its value {rank}", tiling.tile_counts().len()))
            }
            HloSharding::Maximal(device) => Err(format!("it leaves all to device {device}")),
            HloSharding::Tuple(_) => Err("it is that of a tuple".to_owned()),
        }
    }

    /// The axes that a program handles itself where this is said.
    ///
    /// # Errors
    /// When it handles none.
    pub(super) fn manual_axes(&self, hlo: &HloSharding) -> Result<Vec<String>, String> {
        let tiling = match hlo {
            HloSharding::Manual => {
                return Ok(self.mesh.axes.iter().map(|(name, _)| name.clone()).collect());
            }
            HloSharding::Tiled(tiling) => tiling,
            _ => return Err("it is not manual".to_owned()),
        };
        let groups = self.axes(tiling)?.into_iter().skip(tiling.tile_counts().len());
        let manual = groups.zip(tiling.subgroups());
        let manual = manual.filter(|(_, (subgroup, _))| *subgroup == Subgroup::Manual);
        let axes: Vec<String> = manual.flat_map(|(axes, _)| axes).map(|axis| axis.name).collect();
        if axes.is_empty() && tiling.subgroups().all(|(subgroup, _)| subgroup != Subgroup::Manual) {
            return Err("it is not manual".to_owned());
        }
        Ok(axes)
    }

    /// The axes along each dimension of the tiles, outermost first.
    fn axes(&self, tiling: &HloTiling) -> Result<Vec<Vec<AxisRef>>, String> {
        let runs = runs(tiling).ok_or("its devices are in an order that no mesh has")?;
        let axes = |run: Run| {
            let axes = self.mesh.axes.iter().zip(&self.strides);
            let inside =
                move |stride: usize| run.stride <= stride && stride < run.stride * run.size;
            axes.filter(move |(_, stride)| inside(**stride))
                .map(|((name, _), _)| AxisRef { name: name.clone(), sub_axis: None })
        };
        Ok(runs.into_iter().map(|runs| runs.into_iter().flat_map(axes).collect()).collect())
    }
}

/// Along each dimension of the tiles the runs of their devices, outermost first; `None` when the
/// devices are not those of a mesh in their order.
fn runs(tiling: &HloTiling) -> Option<Vec<Vec<Run>>> {
    let devices = tiling.devices();
    let devices: Option<Vec<usize>> = devices.iter().map(|&id| usize::try_from(id).ok()).collect();
    let devices = devices?;
    let mut step = devices.len();
    let mut dims = Vec::new();
    let mut again = vec![0];
    let sizes = tiling.tile_counts().iter().copied();
    for size in sizes.chain(tiling.subgroups().map(|(_, size)| size)) {
        step /= size;
        let along: Vec<usize> = devices.iter().step_by(step).take(size).copied().collect();
        let runs = runs_of(&along)?;
        for &Run { size, stride } in &runs {
            let next = again.iter().flat_map(|&id| (0..size).map(move |i| id + i * stride));
            again = next.collect();
        }
        dims.push(runs);
    }
    (again == devices).then_some(dims)
}

/// The runs of one dimension, outermost first.
fn runs_of(along: &[usize]) -> Option<Vec<Run>> {
    let mut runs = Vec::new();
    let mut rest = along.to_vec();
    while let [first, second, ..] = rest[..] {
        let stride = second.checked_sub(first)?;
        let straight = rest.iter().zip(0..).take_while(|&(&id, i)| id == first + i * stride);
        let straight = straight.count();
        let size = (2..=straight).rev().find(|&size| rest.len().is_multiple_of(size))?;
        runs.push(Run { size, stride });
        rest = rest.into_iter().step_by(size).collect();
    }
    runs.reverse();
    Some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(num_partitions: usize) -> Module {
        let (name, functions) = (String::new(), Vec::new());
        Module { name, num_partitions, num_replicas: 1, meshes: Vec::new(), functions }
    }

    /// The mesh of shardings of `devices` devices, and each sharding over it.
    fn spread(devices: usize, texts: &[&str]) -> Result<(Vec<usize>, Vec<String>), String> {
        let read: Vec<HloSharding> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let tiles = Tiles::new(&module(devices), &read).map_err(|error| error.to_string())?;
        let said = read.iter().map(|hlo| {
            let rank = match hlo {
                HloSharding::Tiled(tiling) => tiling.tile_counts().len(),
                _ => 2,
            };
            let sharding = tiles.sharding(hlo, rank)?.ok_or("nothing is said")?;
            let dims = sharding.dims.iter().map(|dim| {
                let axes: Vec<&str> = dim.axes.iter().map(|axis| axis.name.as_str()).collect();
                axes.join("*")
            });
            Ok(dims.collect::<Vec<_>>().join(", "))
        });
        let said = said.collect::<Result<Vec<_>, String>>()?;
        Ok((tiles.mesh.axes.iter().map(|(_, size)| *size).collect(), said))
    }

    #[test]
    fn tilings_are_over_the_axes_of_one_mesh() {
        let texts = [
            "{devices=[2,2]<=[4]}",
            "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
            "{devices=[4,1]<=[4]}",
            "{devices=[4]<=[2,2]T(1,0)}",
            "{devices=[2,2]0,2,1,3}",
            "{replicated}",
        ];
        let (sizes, said) = spread(4, &texts).unwrap();
        assert_eq!(sizes, [2, 2]);
        let expected = ["by_2, by_1", ", by_1", "by_2*by_1, ", "by_1*by_2", "by_1, by_2", ", "];
        assert_eq!(said, expected);
    }

    #[test]
    fn sizes_need_not_be_powers_of_two() {
        let texts = ["{devices=[3,4]<=[12]}", "{devices=[2,6]<=[3,2,2]T(1,0,2)}"];
        let (sizes, said) = spread(12, &texts).unwrap();
        assert_eq!(sizes, [3, 2, 2]);
        assert_eq!(said, ["by_4, by_2*by_1", "by_2, by_4*by_1"]);
    }

    #[test]
    fn summands_are_along_axes_of_their_own() {
        let parts: HloSharding =
            "{devices=[2,1,2]<=[4] last_tile_dims={unreduced}}".parse().unwrap();
        let tiles = Tiles::new(&module(4), std::slice::from_ref(&parts)).unwrap();
        let unreduced = |hlo: &HloSharding| -> Vec<String> {
            let sharding = tiles.sharding(hlo, 2).unwrap().unwrap();
            sharding.unreduced.into_iter().map(|axis| axis.name).collect()
        };
        assert_eq!(unreduced(&parts), ["by_1"]);
        assert_eq!(unreduced(&HloSharding::Unreduced), ["by_2", "by_1"]);
        assert!(unreduced(&HloSharding::Replicated).is_empty());
    }

    #[test]
    fn what_no_mesh_has_is_refused() {
        for (devices, texts, words) in [
            (4, vec!["{devices=[4]0,1,3,2}"], "order"),
            (4, vec!["{devices=[4]1,0,3,2}"], "order"),
            (6, vec!["{devices=[2,3]<=[6]}", "{devices=[3,2]<=[6]}"], "no mesh"),
            (8, vec!["{devices=[4]<=[4]}"], "8 partitions"),
            (4, vec!["{maximal device=3}"], "device 3"),
        ] {
            let error = spread(devices, &texts).unwrap_err();
            assert!(error.contains(words), "{texts:?}: {error}");
        }
    }

    #[test]
    fn manual_axes_are_those_of_manual_subgroups() {
        let partly: HloSharding =
            "{devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}".parse().unwrap();
        let tiles = Tiles::new(&module(4), std::slice::from_ref(&partly)).unwrap();
        assert_eq!(tiles.manual_axes(&partly).unwrap(), ["by_2"]);
        assert_eq!(tiles.manual_axes(&HloSharding::Manual).unwrap(), ["by_2", "by_1"]);
        let tiled = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}".parse().unwrap();
        assert!(tiles.manual_axes(&tiled).is_err());
        assert!(tiles.manual_axes(&HloSharding::Replicated).is_err());
    }
}
