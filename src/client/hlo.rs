//! Shardings as XLA's frontends write them, and back.

use crate::ifrt::{Code, Result, ShardingSpec, Status, Tiling};
use crate::stablehlo::xla::{HloSharding, HloTiling, Subgroup, TileDevices};

/// How `num_shards` shards are cut by an XLA sharding whose device numbers are shard numbers.
///
/// # Errors
/// `InvalidArgument` when it is not for so many devices; `Unimplemented` for shardings that leave
/// to the program what a shard has, or put an array on one of several devices.
pub fn from_hlo_sharding(sharding: &HloSharding, num_shards: usize) -> Result<ShardingSpec> {
    let tiling = match sharding {
        HloSharding::Replicated => return Ok(ShardingSpec::Replicated { num_shards }),
        HloSharding::Maximal(0) if num_shards == 1 => return Ok(ShardingSpec::SingleDevice),
        HloSharding::Tiled(tiling) => tiling,
        _ => return Err(Status::unimplemented(format!("an array with the sharding {sharding}"))),
    };
    if tiling.subgroups().any(|(kind, _)| kind != Subgroup::Replicated) {
        return Err(Status::unimplemented(format!("an array with the sharding {sharding}")));
    }
    let replicas: usize = tiling.subgroups().map(|(_, size)| size).product();
    let devices = tiling.devices();
    let mut tile_of_shard = vec![None; num_shards];
    for (place, device) in devices.iter().enumerate() {
        let shard = usize::try_from(*device).ok().and_then(|shard| tile_of_shard.get_mut(shard));
        if let Some(shard) = shard {
            *shard = Some(place / replicas);
        }
    }
    let complete = tile_of_shard.into_iter().collect::<Option<Vec<_>>>();
    match complete.filter(|_| devices.len() == num_shards) {
        Some(tile_of_shard) => {
            Tiling::listed(tiling.tile_counts().to_vec(), tile_of_shard).map(ShardingSpec::Tiled)
        }
        None => Err(Status::invalid_argument(format!(
            "the sharding {sharding} is not for the devices 0 to {num_shards}, exclusive"
        ))),
    }
}

/// The XLA sharding that cuts arrays as `spec` does, with shard numbers for device numbers.
///
/// # Errors
/// `Unimplemented` when XLA has none: for parts given one by one, and opaque ones.
pub fn to_hlo_sharding(spec: &ShardingSpec) -> Result<HloSharding> {
    let (tiling, mut subgroups) = match spec {
        _ if spec.is_fully_replicated() => return Ok(HloSharding::Replicated),
        ShardingSpec::Tiled(tiling) => (tiling, Vec::new()),
        ShardingSpec::Unreduced(unreduced) => (unreduced.tiling(), vec![Subgroup::Unreduced]),
        _ => return Err(Status::unimplemented(format!("XLA has no sharding for {spec}"))),
    };
    let mut shards: Vec<usize> = (0..tiling.num_shards()).collect();
    // Stable: replicas of a tile follow each other in order.
    shards.sort_by_key(|&shard| tiling.tile_of(shard));
    let count: usize = tiling.num_tiles().iter().product();
    let mut dims = tiling.num_tiles().to_vec();
    if count < shards.len() {
        dims.push(shards.len() / count);
        subgroups.push(Subgroup::Replicated);
    }
    if subgroups == [Subgroup::Unreduced] && dims.last() == Some(&count) {
        return Ok(HloSharding::Unreduced);
    }
    let ids = shards.iter().map(|&shard| i64::try_from(shard).unwrap_or(i64::MAX)).collect();
    let tiling = HloTiling::new(dims, TileDevices::Listed(ids), subgroups);
    Ok(HloSharding::Tiled(tiling.map_err(|error| Status::wrap(Code::InvalidArgument, error))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifrt::{Mesh, OpaqueSharding, UnreducedSharding};

    #[test]
    fn shardings_are_read_as_what_they_cut() {
        let mesh = Mesh::new([("x", 2), ("y", 2)]).unwrap();
        let cases: [(&str, [&[&str]; 2]); 5] = [
            ("{devices=[2,2]<=[4]}", [&["x"], &["y"]]),
            ("{devices=[2,2]<=[2,2]T(1,0)}", [&["y"], &["x"]]),
            ("{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}", [&[], &["y"]]),
            ("{devices=[4,1]0,2,1,3}", [&["y", "x"], &[]]),
            ("{replicated}", [&[], &[]]),
        ];
        for (text, dims) in cases {
            let read = from_hlo_sharding(&text.parse().unwrap(), 4).unwrap();
            let tiling = mesh.tiling(&dims).unwrap();
            assert_eq!(read, ShardingSpec::Tiled(tiling), "{text}");
            let written = to_hlo_sharding(&read).unwrap();
            assert_eq!(from_hlo_sharding(&written, 4).unwrap(), read, "{written}");
        }
        let odd = from_hlo_sharding(&"{devices=[3]2,0,1}".parse().unwrap(), 3).unwrap();
        assert_eq!(to_hlo_sharding(&odd).unwrap().to_string(), "{devices=[3]2,0,1}");
    }

    #[test]
    fn summands_are_written_behind_the_dimensions_and_before_replicas() {
        let mesh = Mesh::new([("x", 2), ("y", 2), ("z", 2)]).unwrap();
        let written = |dims: &[&[&str]]| {
            let unreduced = UnreducedSharding::new(mesh.tiling(dims).unwrap()).unwrap();
            to_hlo_sharding(&ShardingSpec::Unreduced(unreduced)).unwrap().to_string()
        };
        assert_eq!(
            written(&[&["z"], &["x"]]),
            "{devices=[2,2,2]0,2,4,6,1,3,5,7 last_tile_dims={unreduced, replicated}}"
        );
        assert_eq!(
            written(&[&["z"], &["y", "x"]]),
            "{devices=[2,4]0,4,2,6,1,5,3,7 last_tile_dims={unreduced}}"
        );
        assert_eq!(written(&[&[], &[], &["x", "y", "z"]]), "{unreduced}");
        assert_eq!(written(&[&["x", "z", "y"]]), "{unreduced}");
    }

    #[test]
    fn what_has_no_counterpart_is_refused_by_name() {
        let code = |text: &str, shards| {
            from_hlo_sharding(&text.parse().unwrap(), shards).unwrap_err().code()
        };
        assert_eq!(code("{devices=[4]<=[4]}", 8), Code::InvalidArgument);
        assert_eq!(code("{devices=[2]4,5}", 2), Code::InvalidArgument);
        assert_eq!(code("{manual}", 4), Code::Unimplemented);
        assert_eq!(code("{maximal device=1}", 2), Code::Unimplemented);
        assert_eq!(code("{devices=[2,2]<=[4] last_tile_dims={manual}}", 4), Code::Unimplemented);
        let opaque = ShardingSpec::Opaque(OpaqueSharding::new(2).unwrap());
        assert_eq!(to_hlo_sharding(&opaque).unwrap_err().code(), Code::Unimplemented);
    }
}
