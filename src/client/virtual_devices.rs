//! Devices of this process on which programs run in step, without a job and without arrays.
//!
//! Each has a thread while it runs and reaches the others over the transport of a world of one, by
//! the same collectives as the devices of a job.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use lockstep_collectives::transport::{LocalTransport, Transport};
use lockstep_collectives::{Communicator, Member};

use super::assignment::DeviceAssignment;
use super::collective::{LaunchContext, Scope, Station};
use super::exchange::Exchange;
use crate::backend::{Buffer, Executable, LocalDevice};
use crate::ifrt::{Result, Status};
use crate::stablehlo::Module;

/// The most devices there can be: each is a thread.
const MAX_DEVICES: usize = 1024;

/// A grid of replicas and partitions.
pub struct VirtualDevices {
    communicators: Vec<Communicator>,
    assignment: Arc<DeviceAssignment>,
    launches: AtomicU64,
    exchange: Arc<Exchange>,
    timeout: Duration,
}

/// What one virtual device runs.
pub struct VirtualLaunch<'a> {
    /// The program, whose groups its collectives name.
    pub module: &'a Module,
    /// The program as compiled for a backend with at least one device.
    pub executable: Arc<dyn Executable>,
    /// Its arguments.
    pub arguments: Vec<Buffer>,
}

impl VirtualDevices {
    /// `num_replicas` times `num_partitions` devices, whose collectives may take `timeout` each.
    ///
    /// # Errors
    /// `InvalidArgument` when that is none at all or too many.
    pub fn new(num_replicas: usize, num_partitions: usize, timeout: Duration) -> Result<Self> {
        let count = num_replicas.saturating_mul(num_partitions);
        let members = u32::try_from(count).ok().filter(|_| (1..=MAX_DEVICES).contains(&count));
        let members = members.ok_or_else(|| {
            Status::invalid_argument(format!(
                "{num_replicas} replicas of {num_partitions} partitions are not between 1 and \
                 {MAX_DEVICES} devices"
            ))
        })?;
        let transport: Arc<dyn Transport> = Arc::new(LocalTransport::new(members));
        let communicators = (0..members)
            .map(|member| Communicator::new(Member(member), Arc::clone(&transport), timeout));
        let assignment = DeviceAssignment::new((0..members).map(Member).collect(), num_partitions);
        let assignment = assignment
            .ok_or_else(|| Status::internal("a grid of devices does not come out even"))?;
        Ok(Self {
            communicators: communicators.collect(),
            assignment: Arc::new(assignment),
            launches: AtomicU64::new(0),
            exchange: Arc::new(Exchange::new(Vec::new(), timeout)),
            timeout,
        })
    }

    /// The same devices, whose infeeds take these arrays, as bytes, one list after the other.
    #[must_use]
    pub fn fed_with(self, infeed: Vec<Vec<Vec<u8>>>) -> Self {
        Self { exchange: Arc::new(Exchange::new(infeed, self.timeout)), ..self }
    }

    /// Runs one launch on each device, all at once: replica 0's partitions first.
    ///
    /// # Errors
    /// `InvalidArgument` when there are not as many launches as devices; the failure of the first
    /// device that has one.
    pub fn run(&self, mut launches: Vec<VirtualLaunch<'_>>) -> Result<Vec<Vec<Buffer>>> {
        if launches.len() != self.communicators.len() {
            return Err(Status::invalid_argument(format!(
                "{} devices cannot run {} programs",
                self.communicators.len(),
                launches.len()
            )));
        }
        let launch = self.launches.fetch_add(1, Ordering::Relaxed);
        if self.communicators.len() == 1
            && let Some(VirtualLaunch { executable, arguments, .. }) = launches.pop()
        {
            // Nobody waits for it: the calling thread will do.
            return Ok(vec![run(&self.context(0, launch), &[], &*executable, arguments)?]);
        }
        // What a program waits for in another one's place, that one's scopes say.
        let scopes: Vec<Scope> =
            launches.iter().flat_map(|launch| Scope::of_program(launch.module).to_vec()).collect();
        thread::scope(|threads| {
            let running: Vec<_> = launches
                .into_iter()
                .enumerate()
                .map(|(position, VirtualLaunch { executable, arguments, .. })| {
                    let context = self.context(position, launch);
                    let scopes = &scopes;
                    threads.spawn(move || run(&context, scopes, &*executable, arguments))
                })
                .collect();
            let ended = running.into_iter().map(std::thread::ScopedJoinHandle::join);
            let panicked = || Err(Status::internal("a virtual device panicked"));
            // All threads are waited for before the first failure is reported.
            let outcomes: Vec<_> =
                ended.map(|outcome| outcome.unwrap_or_else(|_| panicked())).collect();
            outcomes.into_iter().collect()
        })
    }

    fn context(&self, position: usize, launch: u64) -> LaunchContext {
        let station = Station {
            communicator: self.communicators[position].clone(),
            assignment: Arc::clone(&self.assignment),
            position,
            program: 0,
            host_callbacks: None,
            leads: None,
        };
        let exchange = Some(Arc::clone(&self.exchange));
        LaunchContext { exchange, ..LaunchContext::new(&Arc::new(station), launch) }
    }
}

fn run(
    context: &LaunchContext,
    scopes: &[Scope],
    executable: &dyn Executable,
    arguments: Vec<Buffer>,
) -> Result<Vec<Buffer>> {
    let groups = context.begin(scopes);
    let execute = || executable.execute(LocalDevice(0), arguments, context);
    let outcome = catch_unwind(AssertUnwindSafe(execute))
        .unwrap_or_else(|_| Err(Status::internal("the backend panicked: please report this")));
    outcome.inspect_err(|status| context.decline(&groups, status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend as _;
    use crate::backend::cpu::CpuBackend;
    use crate::ifrt::{Code, DType, Shape};
    use crate::stablehlo::{TensorType, parse};

    /// Runs `body` on a grid, with `ui32` of the device's number as `%a`.
    fn run(grid: (usize, usize), body: &str) -> Result<Vec<u32>> {
        let text = format!(
            "func.func @main(%a: tensor<ui32>) -> tensor<ui32> {{ {body} return %0 : tensor<ui32> }}"
        );
        let module = parse(&text).unwrap();
        let backend = CpuBackend::new(1);
        let ty = TensorType::new(DType::U32, Shape::scalar());
        let executable = backend.compile(&module)?;
        let launches = (0..grid.0 * grid.1).map(|number| {
            let number = u32::try_from(number).unwrap();
            let bytes = number.to_le_bytes();
            let argument = backend.buffer_from_host(LocalDevice(0), &ty, &bytes).unwrap();
            let executable = Arc::clone(&executable);
            VirtualLaunch { module: &module, executable, arguments: vec![argument] }
        });
        let devices = VirtualDevices::new(grid.0, grid.1, Duration::from_secs(20))?;
        let results = devices.run(launches.collect())?;
        let number =
            |buffers: &Vec<Buffer>| u32::from_le_bytes(buffers[0].bytes().try_into().unwrap());
        Ok(results.iter().map(number).collect())
    }

    #[test]
    fn devices_know_their_place_and_meet() {
        let sum = "%0 = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[1, 0]]> : \
                   tensor<1x2xi64>}> ({ ^bb0(%x: tensor<ui32>, %y: tensor<ui32>): \
                   %s = stablehlo.add %x, %y : tensor<ui32> stablehlo.return %s : tensor<ui32> \
                   }) : (tensor<ui32>) -> tensor<ui32>";
        assert_eq!(run((2, 3), sum).unwrap(), [3, 5, 7, 3, 5, 7]);
        let place = "%r = stablehlo.replica_id : tensor<ui32> \
                     %p = stablehlo.partition_id : tensor<ui32> \
                     %c = stablehlo.constant dense<10> : tensor<ui32> \
                     %t = stablehlo.multiply %r, %c : tensor<ui32> \
                     %0 = stablehlo.add %t, %p : tensor<ui32>";
        assert_eq!(run((2, 3), place).unwrap(), [0, 1, 2, 10, 11, 12]);
    }

    #[test]
    fn any_body_reduces_in_the_order_of_the_group() {
        // 10 a + b of the members in their order: no member could fold on the way.
        let body = "({ ^bb0(%x: tensor<ui32>, %y: tensor<ui32>): \
                    %ten = stablehlo.constant dense<10> : tensor<ui32> \
                    %t = stablehlo.multiply %x, %ten : tensor<ui32> \
                    %s = stablehlo.add %t, %y : tensor<ui32> stablehlo.return %s : tensor<ui32> })";
        let all_reduce = format!(
            "%0 = \"stablehlo.all_reduce\"(%a) <{{replica_groups = dense<[[2, 0, 1]]> : \
             tensor<1x3xi64>}}> {body} : (tensor<ui32>) -> tensor<ui32>"
        );
        assert_eq!(run((3, 1), &all_reduce).unwrap(), [201; 3]);
        let scatter = format!(
            "%one = stablehlo.constant dense<[1, 2]> : tensor<2xui32> \
             %b = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<ui32>) -> tensor<2xui32> \
             %c = stablehlo.add %b, %one : tensor<2xui32> \
             %d = \"stablehlo.reduce_scatter\"(%c) <{{scatter_dimension = 0 : i64, \
             replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> {body} : \
             (tensor<2xui32>) -> tensor<1xui32> \
             %0 = stablehlo.reshape %d : (tensor<1xui32>) -> tensor<ui32>"
        );
        assert_eq!(run((2, 1), &scatter).unwrap(), [12, 23]);
    }

    #[test]
    fn a_failure_is_everybodys() {
        let bad = "%0 = \"stablehlo.collective_broadcast\"(%a) <{replica_groups = \
                   dense<[[0, 5]]> : tensor<1x2xi64>}> : (tensor<ui32>) -> tensor<ui32>";
        let error = run((2, 1), bad).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("[[0, 5]]: 5 is not below 2"), "{error}");
        assert!(VirtualDevices::new(0, 1, Duration::ZERO).is_err());
        assert!(VirtualDevices::new(1 << 32, 1 << 32, Duration::ZERO).is_err());
    }
}
