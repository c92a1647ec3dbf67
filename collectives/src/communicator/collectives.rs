//! The collectives as a program calls them.
//!
//! In all of them: operands are bytes of whole elements of the named type, in the order of the
//! group where there is one of several. Every member of the group makes the same call with the
//! same type, number of elements, reduction and root. A group of one, operands without elements
//! and operands of one element are groups and operands like any others.
//!
//! The forms in place have one buffer, which is operand and result.
//!
//! # Errors
//! Every one of them: the same error on every member; see [`CollectiveError`].

use super::{Call, CollectiveCause, CollectiveError, Communicator};
use crate::algorithm::{
    AllGather, AllReduce, AllToAll, AllToAllV, Barrier, Broadcast, CollectivePermute, Counts,
    Disagreement, End, Gather, Layout, Operand, Reduce, ReduceScatter, Scatter, Send, SendRecv,
    all_to_all_v, piece_range,
};
use crate::descriptor::Descriptor;
use crate::element::{ElementType, Operator};
use crate::ids::Member;

impl Communicator {
    /// Folds the inputs of all members into the output of each, in the order of the group unless the
    /// algorithm has another ([`Policy`](crate::Policy)).
    ///
    /// `input` and `output`: equally long.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn all_reduce<'a>(
        &self,
        call: &Call<'_>,
        element: ElementType,
        operator: impl Into<Operator<'a>>,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let (operator, input) = (operator.into(), Operand::Apart(input));
        self.run_all_reduce(call, AllReduce { element, operator, input, output })
    }

    /// [`Communicator::all_reduce`] of `buffer` into itself.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn all_reduce_in_place<'a>(
        &self,
        call: &Call<'_>,
        element: ElementType,
        operator: impl Into<Operator<'a>>,
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let (operator, input) = (operator.into(), Operand::Within(0..buffer.len()));
        self.run_all_reduce(call, AllReduce { element, operator, input, output: buffer })
    }

    /// Folds the inputs as all-reduce does, into the output of the member at place `root` only.
    ///
    /// `output`: as long as `input` on the root, and empty elsewhere.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn reduce<'a>(
        &self,
        call: &Call<'_>,
        element: ElementType,
        operator: impl Into<Operator<'a>>,
        root: usize,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let (operator, input) = (operator.into(), Operand::Apart(input));
        let is_root = call.group.position() == root;
        self.run_reduce(call, Reduce { element, operator, root, input, output, is_root })
    }

    /// [`Communicator::reduce`] into the root's `buffer`; the other members' stay as they are.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn reduce_in_place<'a>(
        &self,
        call: &Call<'_>,
        element: ElementType,
        operator: impl Into<Operator<'a>>,
        root: usize,
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let operator = operator.into();
        let is_root = call.group.position() == root;
        let (input, output) = if is_root {
            (Operand::Within(0..buffer.len()), buffer)
        } else {
            (Operand::Apart(buffer), &mut [][..])
        };
        self.run_reduce(call, Reduce { element, operator, root, input, output, is_root })
    }

    /// Folds the inputs as all-reduce does and leaves the member at place `i` with the `i`th of
    /// equal consecutive pieces.
    ///
    /// `input`: as many times as long as `output` as there are members.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn reduce_scatter<'a>(
        &self,
        call: &Call<'_>,
        element: ElementType,
        operator: impl Into<Operator<'a>>,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let (operator, input) = (operator.into(), Operand::Apart(input));
        self.run_reduce_scatter(call, ReduceScatter { element, operator, input, output })
    }

    /// [`Communicator::reduce_scatter`] of `buffer` into its own piece `i`; the other pieces stay
    /// as they are.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn reduce_scatter_in_place<'a>(
        &self,
        call: &Call<'_>,
        element: ElementType,
        operator: impl Into<Operator<'a>>,
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let (operator, input) = (operator.into(), Operand::Within(0..buffer.len()));
        self.run_reduce_scatter(call, ReduceScatter { element, operator, input, output: buffer })
    }

    /// Puts the inputs of all members one after the other, in the order of the group.
    ///
    /// `output`: as long as all inputs together, which are equally long.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn all_gather(
        &self,
        call: &Call<'_>,
        element: ElementType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        self.run(call, &mut AllGather { element, input: Operand::Apart(input), output })
    }

    /// [`Communicator::all_gather`] of the piece of `buffer` that is this member's.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn all_gather_in_place(
        &self,
        call: &Call<'_>,
        element: ElementType,
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let input = own_piece(call, buffer);
        self.run(call, &mut AllGather { element, input, output: buffer })
    }

    /// Puts the inputs of all members one after the other, on the member at place `root` only.
    ///
    /// `output`: as long as all inputs together on the root, and empty elsewhere.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn gather(
        &self,
        call: &Call<'_>,
        element: ElementType,
        root: usize,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let is_root = call.group.position() == root;
        let input = Operand::Apart(input);
        self.run(call, &mut Gather { element, root, input, output, is_root })
    }

    /// [`Communicator::gather`] into the root's `buffer`, which holds its own piece; elsewhere
    /// `buffer` is the piece.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn gather_in_place(
        &self,
        call: &Call<'_>,
        element: ElementType,
        root: usize,
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let is_root = call.group.position() == root;
        let (input, output) = if is_root {
            (own_piece(call, buffer), buffer)
        } else {
            (Operand::Apart(buffer), &mut [][..])
        };
        self.run(call, &mut Gather { element, root, input, output, is_root })
    }

    /// The `i`th of equal consecutive pieces of the root's input becomes the output of the member
    /// at place `i`.
    ///
    /// `input`: as many times as long as `output` as there are members on the root, and ignored
    /// elsewhere.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn scatter(
        &self,
        call: &Call<'_>,
        element: ElementType,
        root: usize,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let (piece_bytes, count) = (output.len(), call.group.members().len());
        let input = (call.group.position() == root).then_some(input);
        let output = Some(output);
        self.run(call, &mut Scatter { element, root, piece_bytes, input, output, count })
    }

    /// [`Communicator::scatter`] of the root's `buffer`, which stays as it is; elsewhere `buffer`
    /// is for the piece.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn scatter_in_place(
        &self,
        call: &Call<'_>,
        element: ElementType,
        root: usize,
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let count = call.group.members().len();
        let is_root = call.group.position() == root;
        let piece_bytes = if is_root { buffer.len() / count } else { buffer.len() };
        let (input, output) = if is_root { (Some(&*buffer), None) } else { (None, Some(buffer)) };
        self.run(call, &mut Scatter { element, root, piece_bytes, input, output, count })
    }

    /// The input of the member at place `root` becomes everyone's output.
    ///
    /// `input`: as long as `output` on the root, and ignored elsewhere.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn broadcast(
        &self,
        call: &Call<'_>,
        element: ElementType,
        root: usize,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let is_root = call.group.position() == root;
        let length_bytes = if is_root { input.len() } else { output.len() };
        let (input, output) = (is_root.then_some(input), Some(output));
        self.run(call, &mut Broadcast { element, root, length_bytes, input, output })
    }

    /// [`Communicator::broadcast`] of the root's `buffer` into everyone's.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn broadcast_in_place(
        &self,
        call: &Call<'_>,
        element: ElementType,
        root: usize,
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let length_bytes = buffer.len();
        let is_root = call.group.position() == root;
        let (input, output) = if is_root { (Some(&*buffer), None) } else { (None, Some(buffer)) };
        self.run(call, &mut Broadcast { element, root, length_bytes, input, output })
    }

    /// The `j`th of equal consecutive pieces of the member at place `i` becomes the `i`th of the
    /// member at place `j`.
    ///
    /// `input` and `output`: equally long, as many equal pieces as there are members.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn all_to_all(
        &self,
        call: &Call<'_>,
        element: ElementType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        self.run(call, &mut AllToAll { element, input, output })
    }

    /// [`Communicator::all_to_all`] of a copy of `buffer` into it.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn all_to_all_in_place(
        &self,
        call: &Call<'_>,
        element: ElementType,
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let input = buffer.to_vec();
        self.all_to_all(call, element, &input, buffer)
    }

    /// The `j`th of consecutive pieces of the member at place `i` becomes the `i`th of the member
    /// at place `j`, whatever the lengths.
    ///
    /// `send_counts`, `receive_counts`: for each member, how many elements go there and how many
    /// come from there. What one sends is what the other expects. `input` and `output`: as long as
    /// the counts together. The members agree on the counts before any output is written.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn all_to_all_v(
        &self,
        call: &Call<'_>,
        element: ElementType,
        send_counts: &[usize],
        input: &[u8],
        receive_counts: &[usize],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let group = call.group;
        let sequence = group.next_sequence();
        let deadline = self.deadline(call);
        let told = Layout::tell(send_counts, receive_counts);
        let mut heard = told.clone();
        let exchange = AllToAll {
            element: ElementType::U64,
            input: bytemuck::cast_slice(&told),
            output: bytemuck::cast_slice_mut(&mut heard),
        };
        let operands = [(send_counts, input.len()), (receive_counts, output.len())];
        let counted = self.run_as(sequence, call, &mut Counts { element, exchange, operands });
        let pieces = &self.second_part_of(group);
        let timeout = Some(self.until(deadline));
        let layout = counted.and_then(|()| {
            Layout::of(element, group.position(), &told, &heard).map_err(|found| {
                let Disagreement { sender, receiver, sent, expected } = found;
                let [sender, receiver] = [sender, receiver].map(|at| self.participant(group, at));
                let cause = CollectiveCause::Counts { sender, receiver, sent, expected };
                let signature = all_to_all_v::signature(element);
                let operation = self.operation(group, sequence).id;
                let algorithm = self.algorithm(group, &signature);
                let descriptor =
                    Box::new(Descriptor { signature, key: call.key, operation, algorithm });
                CollectiveError { descriptor, group: group.members().to_vec(), cause }
            })
        });
        match layout {
            Ok(layout) => {
                let call = Call { group: pieces, timeout, ..*call };
                self.run_as(sequence, &call, &mut AllToAllV { element, layout, input, output })
            }
            // Others may be about to move the pieces.
            Err(error) => Err(self.refuse(pieces, sequence, error)),
        }
    }

    /// For each pair, the input of the first becomes the output of the second; a member that is
    /// nobody's second gets zeros.
    ///
    /// `pairs`: the same list on every member of the group, each member at most once as either.
    /// `input` and `output`: equally long.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn collective_permute(
        &self,
        call: &Call<'_>,
        element: ElementType,
        pairs: &[(Member, Member)],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let me = self.member();
        self.run(call, &mut CollectivePermute { element, pairs, me, input, output })
    }

    /// [`Communicator::collective_permute`] of a copy of `buffer` into it.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn collective_permute_in_place(
        &self,
        call: &Call<'_>,
        element: ElementType,
        pairs: &[(Member, Member)],
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let input = buffer.to_vec();
        self.collective_permute(call, element, pairs, &input, buffer)
    }

    /// Sends `input` to the other member of the group, a pair, which receives it.
    ///
    /// # Errors
    /// The same error on both members; see [`CollectiveError`].
    pub fn send(
        &self,
        call: &Call<'_>,
        element: ElementType,
        input: &[u8],
    ) -> Result<(), CollectiveError> {
        let sender = call.group.position();
        self.run(call, &mut Send { element, end: End::Sender(input), sender })
    }

    /// Receives into `output` what the other member of the group, a pair, sends.
    ///
    /// # Errors
    /// The same error on both members; see [`CollectiveError`].
    pub fn recv(
        &self,
        call: &Call<'_>,
        element: ElementType,
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        // Of a pair the other is the sender; of any other group it does not matter.
        let sender = 1_usize.saturating_sub(call.group.position());
        self.run(call, &mut Send { element, end: End::Receiver(output), sender })
    }

    /// Sends `input` to the other member of the group, a pair, and receives its.
    ///
    /// `input` and `output`: equally long. A ring of such exchanges is a
    /// [`Communicator::collective_permute`].
    ///
    /// # Errors
    /// The same error on both members; see [`CollectiveError`].
    pub fn send_recv(
        &self,
        call: &Call<'_>,
        element: ElementType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        self.run(call, &mut SendRecv { element, input, output })
    }

    /// [`Communicator::send_recv`] of a copy of `buffer` into it.
    ///
    /// # Errors
    /// The same error on both members; see [`CollectiveError`].
    pub fn send_recv_in_place(
        &self,
        call: &Call<'_>,
        element: ElementType,
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let input = buffer.to_vec();
        self.send_recv(call, element, &input, buffer)
    }

    /// Returns when every member has called it.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn barrier(&self, call: &Call<'_>) -> Result<(), CollectiveError> {
        self.run(call, &mut Barrier)
    }

    // The three whose callers name an operator by any type: they are compiled here, not once more
    // for each caller.

    fn run_all_reduce(
        &self,
        call: &Call<'_>,
        mut collective: AllReduce<'_>,
    ) -> Result<(), CollectiveError> {
        self.run(call, &mut collective)
    }

    fn run_reduce(
        &self,
        call: &Call<'_>,
        mut collective: Reduce<'_>,
    ) -> Result<(), CollectiveError> {
        self.run(call, &mut collective)
    }

    fn run_reduce_scatter(
        &self,
        call: &Call<'_>,
        mut collective: ReduceScatter<'_>,
    ) -> Result<(), CollectiveError> {
        self.run(call, &mut collective)
    }
}

/// This member's piece of a buffer that has one for each.
fn own_piece<'a>(call: &Call<'_>, buffer: &[u8]) -> Operand<'a> {
    let group = call.group;
    Operand::Within(piece_range(buffer.len(), group.position(), group.members().len()))
}
