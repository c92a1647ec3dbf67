//! The one way in which a backend reaches other devices.

use crate::ifrt::{DType, Result, Status};

/// How values of several devices become one, element by element, in group order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum; logical or for booleans.
    Sum,
    /// The product; logical and for booleans.
    Product,
    /// The least; NaN if any is NaN.
    Min,
    /// The greatest; NaN if any is NaN.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

/// Which collective of the program this is.
#[derive(Clone, Copy, Debug)]
pub struct CollectiveSite<'a> {
    /// The position of the operation among the program's collectives.
    pub ordinal: u32,
    /// How many times this operation has run in this launch before (loops).
    pub iteration: u64,
    /// `replica_groups`, as in the program.
    pub replica_groups: &'a [Vec<i64>],
    /// `channel_id`, 0 when absent.
    pub channel_id: i64,
    /// `use_global_device_ids`.
    pub use_global_device_ids: bool,
}

/// How values leave or enter a program by another way than a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// From the host, the next that it feeds.
    Infeed,
    /// To the host.
    Outfeed,
    /// To whoever receives from this channel.
    Send(i64),
    /// From whoever sends to this channel.
    Receive(i64),
    /// To a function of the host, by its number, and back.
    Callback(u64),
}

/// A launch whose program reaches nobody: a collective is refused.
pub(super) struct Nobody;

impl Nobody {
    fn refuse<T>() -> Result<T> {
        Err(Status::unimplemented("a shape that other devices decide on"))
    }
}

impl CollectiveContext for Nobody {
    fn partition_id(&self) -> u32 {
        0
    }

    fn replica_id(&self) -> u32 {
        0
    }

    fn all_reduce(
        &self,
        _: &CollectiveSite<'_>,
        _: Reduction,
        _: DType,
        _: &[u8],
        _: &mut [u8],
    ) -> Result<()> {
        Self::refuse()
    }

    fn all_gather(&self, _: &CollectiveSite<'_>, _: DType, _: &[u8], _: &mut [u8]) -> Result<()> {
        Self::refuse()
    }

    fn reduce_scatter(
        &self,
        _: &CollectiveSite<'_>,
        _: Reduction,
        _: DType,
        _: &[u8],
        _: &mut [u8],
    ) -> Result<()> {
        Self::refuse()
    }

    fn all_to_all(&self, _: &CollectiveSite<'_>, _: DType, _: &[u8], _: &mut [u8]) -> Result<()> {
        Self::refuse()
    }

    fn collective_permute(
        &self,
        _: &CollectiveSite<'_>,
        _: &[(i64, i64)],
        _: DType,
        _: &[u8],
        _: &mut [u8],
    ) -> Result<()> {
        Self::refuse()
    }

    fn collective_broadcast(
        &self,
        _: &CollectiveSite<'_>,
        _: DType,
        _: &[u8],
        _: &mut [u8],
    ) -> Result<()> {
        Self::refuse()
    }
}

/// What the launch gives a running program: its place among the devices, and its collectives.
///
/// Arrays are flat bytes in row-major order. Every method blocks the calling thread, has a
/// deadline, and either fills the whole output or fails on every member of the group alike;
/// output bytes are unspecified after a failure. The group is resolved from the site as the
/// StableHLO specification says ("Collective ops").
pub trait CollectiveContext: Send + Sync {
    /// `partition_id` of the device that runs the program.
    fn partition_id(&self) -> u32;

    /// `replica_id` of the device that runs the program.
    fn replica_id(&self) -> u32;

    /// Folds the inputs of all members into the output of each.
    ///
    /// # Errors
    /// The named failure of the collective, the same on every member.
    fn all_reduce(
        &self,
        site: &CollectiveSite<'_>,
        reduction: Reduction,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()>;

    /// Puts the inputs of all members one after the other, in group order.
    ///
    /// # Errors
    /// The named failure of the collective, the same on every member.
    fn all_gather(
        &self,
        site: &CollectiveSite<'_>,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()>;

    /// Folds the inputs and leaves member `i` with the `i`th of equal consecutive pieces.
    ///
    /// # Errors
    /// The named failure of the collective, the same on every member.
    fn reduce_scatter(
        &self,
        site: &CollectiveSite<'_>,
        reduction: Reduction,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()>;

    /// Member `i`'s `j`th of equal consecutive pieces becomes member `j`'s `i`th.
    ///
    /// # Errors
    /// The named failure of the collective, the same on every member.
    fn all_to_all(
        &self,
        site: &CollectiveSite<'_>,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()>;

    /// Sends along pairs of process ids; a device that is nobody's target gets zeros.
    ///
    /// # Errors
    /// The named failure of the collective, the same on every member.
    fn collective_permute(
        &self,
        site: &CollectiveSite<'_>,
        source_target_pairs: &[(i64, i64)],
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()>;

    /// Hands `inputs` over, or fills `outputs`, by another way than a collective.
    ///
    /// # Errors
    /// `Unimplemented` unless whoever launches the program provides for it, `DeadlineExceeded` when
    /// nobody is at the other end.
    fn transfer(
        &self,
        transfer: Transfer,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let _ = (inputs, outputs);
        Err(Status::unimplemented(format!("{transfer:?}: nobody is at the other end")))
    }

    /// The first member's input becomes everyone's output.
    ///
    /// # Errors
    /// The named failure of the collective, the same on every member.
    fn collective_broadcast(
        &self,
        site: &CollectiveSite<'_>,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()>;
}
