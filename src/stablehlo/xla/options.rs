//! `CompileOptionsProto` and `DeviceAssignmentProto`.

use prost::Message as _;

use super::messages::{CompileOptionsProto, ComputationDevice, DeviceAssignmentProto};
use super::{FormatError, decode};

/// Options of XLA's that have another beginning than `xla_`.
const EFFORT: [&str; 4] = [
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "optimization_level",
    "memory_fitting_level",
];

/// What is asked of the compiler, as far as it concerns Lockstep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// How many copies of the program run on data of their own; 1 when absent.
    pub num_replicas: usize,
    /// Over how many devices each copy is spread; 1 when absent.
    pub num_partitions: usize,
    /// Which devices these are; without one, the first ones in order.
    pub device_assignment: Option<DeviceAssignment>,
    /// Whether the program is to be partitioned as one program for all devices.
    pub use_spmd_partitioning: bool,
    /// Whether shardings are those of Shardy.
    pub use_shardy_partitioner: bool,
    /// Whether the compiler may choose how results are spread: one answer for all, or one each.
    pub may_shard_outputs: Vec<bool>,
    /// The same for parameters.
    pub may_shard_parameters: Vec<bool>,
    /// How many processes the devices are in; 1 when absent.
    pub process_count: usize,
}

/// Which device runs which partition of which replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceAssignment {
    /// Device ids, row-major: a row per partition, in it one for each replica.
    ids: Vec<i64>,
    num_replicas: usize,
}

impl CompileOptions {
    /// Reads a `CompileOptionsProto`.
    ///
    /// # Errors
    /// When `bytes` are no such message, ask for what is not known yet, or override an option that
    /// by its name is none of XLA's. What XLA's options say is left to XLA.
    pub fn from_proto(bytes: &[u8]) -> Result<Self, FormatError> {
        const WHAT: &str = "CompileOptionsProto";
        let proto: CompileOptionsProto = decode(bytes, WHAT)?;
        if proto.parameter_is_tupled_arguments {
            let what = "an executable whose parameters are one tuple".to_owned();
            return Err(FormatError::NotKnown { what });
        }
        if proto.compile_portable_executable {
            let what = "an executable for any device".to_owned();
            return Err(FormatError::NotKnown { what });
        }
        let is_known = |name: &&String| name.starts_with("xla_") || EFFORT.contains(&name.as_str());
        if let Some(name) = proto.env_option_overrides.keys().find(|name| !is_known(name)) {
            return Err(FormatError::NoOption { name: name.clone() });
        }
        let build = proto.executable_build_options.unwrap_or_default();
        let count = |name: &str, value: i64| match value {
            // Absent numbers are 0.
            0 => Ok(1),
            _ => usize::try_from(value).map_err(|_| FormatError::Malformed {
                what: WHAT,
                reason: format!("{name} is {value}"),
            }),
        };
        let options = Self {
            num_replicas: count("num_replicas", build.num_replicas)?,
            num_partitions: count("num_partitions", build.num_partitions)?,
            device_assignment: build
                .device_assignment
                .map(DeviceAssignment::from_message)
                .transpose()?,
            use_spmd_partitioning: build.use_spmd_partitioning,
            use_shardy_partitioner: build.use_shardy_partitioner,
            may_shard_outputs: build.allow_spmd_sharding_propagation_to_output,
            may_shard_parameters: build.allow_spmd_sharding_propagation_to_parameters,
            process_count: count("process_count", build.process_count)?,
        };
        if let Some(assignment) = &options.device_assignment {
            let found = (assignment.num_replicas(), assignment.num_partitions());
            let expected = (options.num_replicas, options.num_partitions);
            if found != expected {
                let reason = format!(
                    "devices are assigned to {} replicas of {} partitions, the program has {} of {}",
                    found.0, found.1, expected.0, expected.1
                );
                return Err(FormatError::Malformed { what: WHAT, reason });
            }
        }
        Ok(options)
    }
}

impl DeviceAssignment {
    /// The devices of one replica, in the order of its partitions.
    pub fn of_partitions(devices: Vec<i64>) -> Self {
        Self { ids: devices, num_replicas: 1 }
    }

    /// Reads a `DeviceAssignmentProto`.
    ///
    /// # Errors
    /// When `bytes` are no such message, or its parts do not fit.
    pub fn from_proto(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::from_message(decode(bytes, "DeviceAssignmentProto")?)
    }

    fn from_message(proto: DeviceAssignmentProto) -> Result<Self, FormatError> {
        let malformed = |reason| FormatError::Malformed { what: "DeviceAssignmentProto", reason };
        let DeviceAssignmentProto { replica_count, computation_count, computation_devices } = proto;
        let partitions = computation_devices.len();
        if usize::try_from(computation_count) != Ok(partitions) || partitions == 0 {
            return Err(malformed(format!(
                "{computation_count} partitions are announced, {partitions} found"
            )));
        }
        let num_replicas = usize::try_from(replica_count).unwrap_or(0);
        let mut ids = Vec::new();
        for (partition, devices) in computation_devices.into_iter().enumerate() {
            let found = devices.replica_device_ids.len();
            if num_replicas == 0 || found != num_replicas {
                return Err(malformed(format!(
                    "partition {partition} has {found} devices for {replica_count} replicas"
                )));
            }
            ids.extend(devices.replica_device_ids);
        }
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(malformed(format!("device {} is assigned twice", pair[0]))),
            None => Ok(Self { ids, num_replicas }),
        }
    }

    /// The message.
    pub fn to_proto(&self) -> Vec<u8> {
        let saturating = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let rows = self.ids.chunks(self.num_replicas);
        let proto = DeviceAssignmentProto {
            replica_count: saturating(self.num_replicas),
            computation_count: saturating(self.num_partitions()),
            computation_devices: rows
                .map(|ids| ComputationDevice { replica_device_ids: ids.to_vec() })
                .collect(),
        };
        proto.encode_to_vec()
    }

    /// How many copies of the program there are.
    pub fn num_replicas(&self) -> usize {
        self.num_replicas
    }

    /// Over how many devices each copy is spread.
    pub fn num_partitions(&self) -> usize {
        self.ids.len() / self.num_replicas
    }

    /// The device of a partition of a replica; `None` when there is no such.
    pub fn device(&self, replica: usize, partition: usize) -> Option<i64> {
        let row = self.ids.chunks(self.num_replicas).nth(partition)?;
        row.get(replica).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As jaxlib 0.10.2 writes `DeviceAssignment.create([[0, 1], [2, 3], [4, 5]])`, three replicas
    /// of two partitions.
    const ASSIGNMENT: &[u8] = &[
        0x08, 0x03, 0x10, 0x02, 0x1A, 0x05, 0x0A, 0x03, 0x00, 0x02, 0x04, 0x1A, 0x05, 0x0A, 0x03,
        0x01, 0x03, 0x05,
    ];

    #[test]
    fn device_assignments_are_read_and_written() {
        let assignment = DeviceAssignment::from_proto(ASSIGNMENT).unwrap();
        assert_eq!((assignment.num_replicas(), assignment.num_partitions()), (3, 2));
        let device = |replica, partition| assignment.device(replica, partition);
        assert_eq!([device(0, 0), device(0, 1), device(2, 1)], [Some(0), Some(1), Some(5)]);
        assert_eq!([device(3, 0), device(0, 2)], [None, None]);
        assert_eq!(assignment.to_proto(), ASSIGNMENT);
        let four = DeviceAssignment::of_partitions(vec![3, 2, 1, 0]);
        assert_eq!(DeviceAssignment::from_proto(&four.to_proto()), Ok(four));
    }

    #[test]
    fn device_assignments_that_do_not_fit_are_refused() {
        let refused = |change: &dyn Fn(&mut Vec<u8>), expected: &str| {
            let mut bytes = ASSIGNMENT.to_vec();
            change(&mut bytes);
            let error = DeviceAssignment::from_proto(&bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused(&|bytes| bytes[3] = 3, "3 partitions are announced, 2 found");
        refused(&|bytes| bytes[1] = 2, "partition 0 has 3 devices for 2 replicas");
        refused(&|bytes| bytes[8] = 2, "device 2 is assigned twice");
        refused(&|bytes| bytes.truncate(9), "this is no DeviceAssignmentProto");
        refused(&|bytes| bytes.clear(), "0 partitions are announced, 0 found");
    }

    /// As jaxlib 0.10.2 writes them, without the fields that are not used here.
    #[test]
    fn compile_options_are_read() {
        let assignment = DeviceAssignment::of_partitions(vec![3, 2, 1, 0]);
        let mut build = vec![
            0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x20, 0x01, 0x28,
            0x04, 0x30, 0x01, 0x4A, 0x18,
        ];
        build.extend(assignment.to_proto());
        build.extend([0x62, 0x02, 0x01, 0x00, 0x92, 0x01, 0x03, 0x00, 0x01, 0x01]);
        build.extend([0x98, 0x01, 0x01, 0xB8, 0x01, 0x01]);
        let mut bytes = vec![0x1A, u8::try_from(build.len()).unwrap()];
        bytes.extend(build);
        let options = CompileOptions::from_proto(&bytes).unwrap();
        let expected = CompileOptions {
            num_replicas: 1,
            num_partitions: 4,
            device_assignment: Some(assignment),
            use_spmd_partitioning: true,
            use_shardy_partitioner: true,
            may_shard_outputs: vec![true, false],
            may_shard_parameters: vec![false, true, true],
            process_count: 1,
        };
        assert_eq!(options, expected);
        let mut other = bytes.clone();
        other[16] = 3;
        let error = CompileOptions::from_proto(&other).unwrap_err().to_string();
        assert!(error.contains("1 replicas of 4 partitions, the program has 1 of 3"), "{error}");
        for end in 1..bytes.len() {
            assert!(CompileOptions::from_proto(&bytes[..end]).is_err(), "{end}");
        }
        let error = CompileOptions::from_proto(&[0x10, 0x01]).unwrap_err().to_string();
        assert!(error.starts_with("an executable whose parameters are one tuple is not known"));
    }

    /// As jaxlib 0.10.2 writes them.
    #[test]
    fn options_are_overridden_by_names_that_xla_may_have() {
        let overrides = |name: &str, value: &[u8]| {
            let mut entry = vec![0x0A, u8::try_from(name.len()).unwrap()];
            entry.extend_from_slice(name.as_bytes());
            entry.extend([0x12, u8::try_from(value.len()).unwrap()]);
            entry.extend_from_slice(value);
            let mut bytes = vec![0x3A, u8::try_from(entry.len()).unwrap()];
            bytes.extend(entry);
            CompileOptions::from_proto(&bytes)
        };
        for value in [
            &[0x0A, 4, b't', b'r', b'u', b'e'][..],
            &[0x10, 1],
            &[0x18, 200, 1],
            &[0x21, 0, 0, 0, 0, 0, 0, 0xE0, 0x3F],
        ] {
            overrides("xla_dump_max_hlo_modules", value).unwrap();
            overrides("optimization_level", value).unwrap();
            let error = overrides("invalid_key", value).unwrap_err().to_string();
            assert_eq!(error, "No such compile option: 'invalid_key'");
        }
    }

    #[test]
    fn absent_options_are_one_device() {
        let options = CompileOptions::from_proto(&[]).unwrap();
        let counts = (options.num_replicas, options.num_partitions, options.process_count);
        assert_eq!((counts, options.device_assignment), ((1, 1, 1), None));
    }
}
