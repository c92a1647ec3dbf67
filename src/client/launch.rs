//! One launch of an executable: a job for each local device, and one outcome for all of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use lockstep_collectives::{CancelToken, Group, Member};
use smallvec::SmallVec;

use super::collective::{LaunchContext, Scope};
use crate::backend::{self, Buffer, LocalDevice};
use crate::ifrt::{Code, ExecutionStatistics, Future, Promise, Result, Status, UserContext};

/// What the local devices of one launch share.
///
/// A launch succeeds or fails as one: outputs resolve when the last local device is through, and
/// if any of them failed, none has a value (invariant I9).
pub(super) struct Launch {
    statistics: Arc<Statistics>,
    user_context: Option<UserContext>,
    /// Ends its collectives.
    pub(super) token: CancelToken,
    /// Why it shall end early.
    cancelled: OnceLock<Status>,
    state: Mutex<State>,
}

struct State {
    running: usize,
    failure: Option<Status>,
    /// Promises of devices that have not run yet are with their jobs.
    finished: Vec<(Vec<Promise<Buffer>>, Vec<Buffer>)>,
    status: Option<Promise<()>>,
}

/// The costs of an executable's launches.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    launches: AtomicU64,
    compute_nanoseconds: AtomicU64,
    communication_nanoseconds: AtomicU64,
}

/// One device's part of a launch.
pub(super) struct DeviceLaunch {
    pub(super) statistics: Arc<Statistics>,
    pub(super) program: Arc<dyn backend::Executable>,
    pub(super) device: LocalDevice,
    pub(super) context: LaunchContext,
    /// Of the program's collectives.
    pub(super) scopes: Arc<[Scope]>,
    /// Where this device has not arrived yet: see [`super::executable::LocalPart`].
    pub(super) everyone: Option<Group>,
    pub(super) arguments: SmallVec<[Future<Buffer>; 4]>,
}

impl Launch {
    /// A launch on `devices` local devices, and the future of its end.
    pub(super) fn new(devices: usize, statistics: Arc<Statistics>) -> (Arc<Self>, Future<()>) {
        let (promise, status) = Promise::new();
        let mut state =
            State { running: devices, failure: None, finished: Vec::new(), status: Some(promise) };
        if devices == 0 {
            statistics.count();
            if let Some(promise) = state.status.take() {
                promise.set(Ok(()));
            }
        }
        let launch = Self {
            statistics,
            user_context: UserContext::current(),
            token: CancelToken::new(),
            cancelled: OnceLock::new(),
            state: Mutex::new(state),
        };
        (Arc::new(launch), status)
    }

    fn failure(&self) -> Option<Status> {
        self.lock().failure.clone()
    }

    /// Ends the launch early if it is not over.
    pub(super) fn cancel(&self, error: Status) {
        if self.cancelled.set(error).is_ok() {
            self.token.cancel();
        }
    }

    /// Keeps the first failure.
    fn fail(&self, status: Status) {
        let status = match self.cancelled.get() {
            Some(error) if status.code() == Code::Cancelled => error.clone(),
            _ => status,
        };
        let status = status.in_user_context(self.user_context.as_ref());
        self.lock().failure.get_or_insert(status);
    }

    /// Counts a device that is through; the last one resolves everything.
    fn finish(&self, outputs: Vec<Promise<Buffer>>, buffers: Vec<Buffer>) {
        let (finished, failure, status) = {
            let mut state = self.lock();
            state.finished.push((outputs, buffers));
            state.running = state.running.saturating_sub(1);
            if state.running > 0 {
                return;
            }
            let finished = std::mem::take(&mut state.finished);
            (finished, state.failure.clone(), state.status.take())
        };
        self.statistics.count();
        for (outputs, buffers) in finished {
            match &failure {
                None => {
                    for (promise, buffer) in outputs.into_iter().zip(buffers) {
                        promise.set(Ok(buffer));
                    }
                }
                Some(failure) => {
                    for promise in outputs {
                        promise.set(Err(failure.clone()));
                    }
                }
            }
        }
        if let Some(promise) = status {
            promise.set(failure.map_or(Ok(()), Err));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeviceLaunch {
    /// Whether it takes no longer than having another thread do it, but for what it waits in
    /// collectives.
    pub(super) fn is_brief(&self) -> bool {
        self.program.is_brief() && self.arguments.iter().all(Future::is_ready)
    }

    /// Whether it waits for other devices.
    pub(super) fn has_company(&self) -> bool {
        self.context.station.leads.is_some() || !self.scopes.is_empty()
    }

    /// Whether nobody has to be waited for: all devices that it meets have come, or it meets none.
    /// This one comes with the first question.
    pub(super) fn is_met(&mut self) -> bool {
        let everyone = self.everyone.take();
        everyone.is_some_and(|everyone| everyone.have_arrived(everyone.arrive()))
            || !self.has_company()
    }

    /// Runs on the device's stream: waits for the arguments, computes, settles.
    pub(super) fn run(mut self, launch: &Launch, outputs: Vec<Promise<Buffer>>) {
        // What it fails with, the launch knows.
        let buffers = self.complete(Some(launch)).unwrap_or_default();
        launch.finish(outputs, buffers);
    }

    /// Runs the whole launch here and now, where no other device of this process has part in it.
    pub(super) fn run_alone(&mut self) -> Result<Vec<Buffer>> {
        let outcome = self.complete(None);
        self.statistics.count();
        outcome.map_err(|status| status.in_user_context(UserContext::current().as_ref()))
    }

    /// Runs a whole launch here and now that meets nobody, on these arguments.
    pub(super) fn run_on(&self, arguments: Vec<Buffer>) -> Result<Vec<Buffer>> {
        let _span = tracing::debug_span!("launch", number = self.context.launch).entered();
        let outcome = unpanicked(|| self.compute(arguments));
        self.statistics.count();
        outcome.map_err(|status| status.in_user_context(UserContext::current().as_ref()))
    }

    /// Computes the results. Who waits for this device in a collective that it does not come to is
    /// told so.
    fn complete(&mut self, launch: Option<&Launch>) -> Result<Vec<Buffer>> {
        let _span = tracing::debug_span!("launch", number = self.context.launch).entered();
        if let Some(everyone) = self.everyone.take() {
            everyone.arrive();
        }
        let arguments = std::mem::take(&mut self.arguments);
        let groups = self.context.begin(&self.scopes);
        let outcome = unpanicked(|| self.execute(launch, arguments));
        if let Err(status) = &outcome {
            // First, so that it is not what the others fail with when they hear of it.
            if let Some(launch) = launch {
                launch.fail(status.clone());
            }
            // After a collective that failed, too: another member may have completed it.
            self.context.decline(&groups, status);
        }
        outcome
    }

    fn execute(
        &self,
        launch: Option<&Launch>,
        arguments: SmallVec<[Future<Buffer>; 4]>,
    ) -> Result<Vec<Buffer>> {
        // In order, so that of several poisoned arguments the first names the cause.
        let arguments: Vec<Buffer> = arguments.into_iter().map(take).collect::<Result<_>>()?;
        if let Some(error) = launch.and_then(|launch| launch.cancelled.get()) {
            return Err(error.clone());
        }
        // Whatever other devices of this process have come to: its launch is here.
        self.context.meet()?;
        if let Some(failure) = launch.and_then(Launch::failure) {
            return Err(failure);
        }
        self.compute(arguments)
    }

    fn compute(&self, arguments: Vec<Buffer>) -> Result<Vec<Buffer>> {
        let start = Instant::now();
        let buffers = self.program.execute(self.device, arguments, &self.context);
        let communication = self.context.communication_time();
        self.statistics.add(start.elapsed().saturating_sub(communication), communication);
        let buffers = buffers.map_err(|status| {
            // A collective's error has the same words on every member already.
            if self.context.collective_failed() {
                status
            } else {
                status.context(format_args!("launch {} on {}", self.context.launch, self.member()))
            }
        })?;
        let promised = self.program.result_types().len();
        if buffers.len() == promised {
            Ok(buffers)
        } else {
            Err(Status::internal(format!(
                "the backend returned {} outputs where it promised {promised}",
                buffers.len()
            )))
        }
    }

    fn member(&self) -> Member {
        self.context.station.communicator.member()
    }
}

/// What `run` returns; a panic of it is an error.
fn unpanicked<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(Status::internal("the backend panicked: please report this")))
}

/// The buffer itself if nobody else holds it, so that the program may overwrite it.
fn take(argument: Future<Buffer>) -> Result<Buffer> {
    match argument.try_take() {
        Ok(buffer) => buffer,
        Err(pending_or_shared) => pending_or_shared.wait(),
    }
}

impl Statistics {
    /// Counts a launch that is over.
    fn count(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    fn add(&self, compute: Duration, communication: Duration) {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.compute_nanoseconds.fetch_add(nanoseconds(compute), Ordering::Relaxed);
        self.communication_nanoseconds.fetch_add(nanoseconds(communication), Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> ExecutionStatistics {
        ExecutionStatistics {
            launches: self.launches.load(Ordering::Relaxed),
            compute_time: Duration::from_nanos(self.compute_nanoseconds.load(Ordering::Relaxed)),
            communication_time: Duration::from_nanos(
                self.communication_nanoseconds.load(Ordering::Relaxed),
            ),
        }
    }
}
