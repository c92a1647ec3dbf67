//! Where the figures come from: the hosts of the job and the processor of this one.

use std::collections::BTreeMap;

use lockstep_collectives::{HostId, World};
use serde::Serialize;

/// What has to be known to compare figures.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// The version of this program.
    pub(crate) lockstep: &'static str,
    /// How bytes travel between members: shm, quic, both, or local between the devices of one
    /// process.
    pub(crate) transport: &'static str,
    /// The processor of this host.
    pub(crate) cpu: String,
    /// Processors that this process may use.
    pub(crate) cores: usize,
    pub(crate) hosts: Vec<Host>,
}

/// A host of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// How many processes it runs.
    pub(crate) processes: usize,
    /// How many members those have; the figures call members ranks.
    pub(crate) ranks: u32,
}

impl Machine {
    /// The machine under `world`, seen from this process.
    pub(crate) fn of(world: &World) -> Self {
        let topology = world.topology();
        let mut hosts: BTreeMap<&HostId, Host> = BTreeMap::new();
        for info in topology.ranks() {
            let name = info.host.name.clone();
            let host = hosts.entry(&info.host).or_insert(Host { name, processes: 0, ranks: 0 });
            host.processes += 1;
            host.ranks = host.ranks.saturating_add(info.devices);
        }
        Self {
            lockstep: env!("CARGO_PKG_VERSION"),
            transport: transport(world),
            cpu: cpu_model(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            hosts: hosts.into_values().collect(),
        }
    }
}

/// What this process reaches the other members by.
fn transport(world: &World) -> &'static str {
    let (me, topology) = (world.rank(), world.topology());
    let shared = world.sharing().partners_of(me).count();
    if shared == topology.ranks().len() {
        "shm"
    } else if topology.world_size() == 1 {
        "local"
    } else if shared > 1 {
        "shm and quic"
    } else {
        "quic"
    }
}

/// The processor's name in the text of `/proc/cpuinfo`; the architecture if it has none there.
fn cpu_model(text: &str) -> String {
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    let mut names = fields.filter(|(field, _)| field.trim() == "model name");
    let name = names.next().map(|(_, name)| name.trim()).filter(|name| !name.is_empty());
    name.unwrap_or(std::env::consts::ARCH).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_by_its_model_or_its_architecture() {
        let text = "processor\t: 0\nmodel\t\t: 1\nmodel name\t: Fast: 9000\nprocessor\t: 1\n";
        assert_eq!(cpu_model(text), "Fast: 9000");
        assert_eq!(cpu_model("Features\t: fp asimd\n"), std::env::consts::ARCH);
    }

    #[test]
    fn hosts_count_their_processes_and_ranks() {
        let machine = Machine::of(&World::solo(3));
        assert_eq!(machine.transport, "shm");
        assert_eq!(Machine::of(&World::solo(1)).transport, "local");
        let counts: Vec<_> =
            machine.hosts.iter().map(|host| (host.processes, host.ranks)).collect();
        assert_eq!(counts, [(1, 3)]);
        assert!(machine.cores >= 1);
    }
}
