//! One call of any collective, as a test varies it: one list, so that no test forgets a collective.

use std::time::Duration;

use lockstep_collectives::{
    Call, CollectiveError, CollectiveKey, CollectiveKind, Communicator, ElementType, Group, Member,
    Reduction,
};

/// What a member calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) kind: CollectiveKind,
    pub(crate) element: ElementType,
    pub(crate) reduction: Reduction,
    /// Elements of one operand, a multiple of the number of members.
    pub(crate) count: usize,
    /// The root's place, or the sender's.
    pub(crate) root: usize,
    /// By how many places a permutation shifts.
    pub(crate) shift: usize,
    pub(crate) key: Option<CollectiveKey>,
    /// Where there is such a form.
    pub(crate) in_place: bool,
}

pub(crate) const KEY: CollectiveKey =
    CollectiveKey { launch: 1, program: 2, ordinal: 3, iteration: 4 };

pub(crate) const TERMS: Terms = Terms {
    kind: CollectiveKind::AllReduce,
    element: ElementType::F32,
    reduction: Reduction::Sum,
    count: 12,
    root: 0,
    shift: 1,
    key: Some(KEY),
    in_place: false,
};

/// Each collective in each of its forms, `terms` for the rest.
pub(crate) fn every_form(terms: Terms) -> impl Iterator<Item = Terms> {
    CollectiveKind::ALL.into_iter().flat_map(move |kind| {
        let forms: &[bool] = if has_in_place(kind) { &[false, true] } else { &[false] };
        forms.iter().map(move |&in_place| Terms { kind, in_place, ..terms })
    })
}

pub(crate) fn has_in_place(kind: CollectiveKind) -> bool {
    use CollectiveKind::{AllToAllV, Barrier, Send};
    !matches!(kind, AllToAllV | Barrier | Send)
}

pub(crate) fn reduces(kind: CollectiveKind) -> bool {
    use CollectiveKind::{AllReduce, Reduce, ReduceScatter};
    matches!(kind, AllReduce | Reduce | ReduceScatter)
}

pub(crate) fn has_root(kind: CollectiveKind) -> bool {
    use CollectiveKind::{Broadcast, Gather, Reduce, Scatter, Send};
    matches!(kind, Broadcast | Gather | Reduce | Scatter | Send)
}

/// How many of `members` run it together: two where it is for pairs.
pub(crate) fn members_of(kind: CollectiveKind, members: u32) -> u32 {
    match kind {
        CollectiveKind::Send | CollectiveKind::SendRecv => 2,
        _ => members,
    }
}

/// The group of the first `count` members.
pub(crate) fn first(communicator: &Communicator, count: u32) -> Group {
    communicator.group(&(0..count).map(Member).collect::<Vec<_>>()).unwrap()
}

/// What the outputs hold before a call.
const UNTOUCHED: u8 = 0xa5;

/// Calls a collective as `terms` say. On an error the output must be as it was.
pub(crate) fn call(
    communicator: &Communicator,
    group: &Group,
    terms: &Terms,
    timeout: Option<Duration>,
) -> Result<(), CollectiveError> {
    let Terms { kind, element, key, in_place, .. } = *terms;
    let call = Call { key, timeout, ..Call::on(group) };
    let (inputs, outputs) = operands(group, terms);
    let size = element.size_bytes();
    let input = vec![3; inputs * size];
    let mut output = vec![UNTOUCHED; outputs * size];
    if in_place && has_in_place(kind) {
        // The longer operand holds both.
        let mut buffer = if inputs > outputs { input } else { output };
        let before = buffer.clone();
        let result = call_in_place(communicator, &call, terms, &mut buffer);
        assert!(result.is_ok() || buffer == before, "{kind} wrote its buffer");
        return result;
    }
    let result = call_apart(communicator, &call, terms, &input, &mut output);
    let untouched = output.iter().all(|byte| *byte == UNTOUCHED);
    assert!(result.is_ok() || untouched, "{kind} wrote its output");
    result
}

/// Elements of this member's input and output.
fn operands(group: &Group, terms: &Terms) -> (usize, usize) {
    let (members, count) = (group.members().len(), terms.count);
    let is_root = group.position() == terms.root;
    let on_root = |count| if is_root { count } else { 0 };
    match terms.kind {
        CollectiveKind::AllReduce
        | CollectiveKind::AllToAll
        | CollectiveKind::AllToAllV
        | CollectiveKind::CollectivePermute
        | CollectiveKind::SendRecv => (count, count),
        CollectiveKind::AllGather => (count, count * members),
        CollectiveKind::Barrier => (0, 0),
        CollectiveKind::Broadcast => (on_root(count), count),
        CollectiveKind::Gather => (count, on_root(count * members)),
        CollectiveKind::Reduce => (count, on_root(count)),
        CollectiveKind::ReduceScatter => (count, count / members),
        CollectiveKind::Scatter => (on_root(count * members), count),
        CollectiveKind::Send => (on_root(count), count - on_root(count)),
    }
}

fn call_apart(
    communicator: &Communicator,
    call: &Call<'_>,
    terms: &Terms,
    input: &[u8],
    output: &mut [u8],
) -> Result<(), CollectiveError> {
    let Terms { kind, element, reduction, count, root, .. } = *terms;
    match kind {
        CollectiveKind::AllGather => communicator.all_gather(call, element, input, output),
        CollectiveKind::AllReduce => {
            communicator.all_reduce(call, element, reduction, input, output)
        }
        CollectiveKind::AllToAll => communicator.all_to_all(call, element, input, output),
        CollectiveKind::AllToAllV => {
            let members = call.group.members().len();
            let counts = vec![count / members; members];
            communicator.all_to_all_v(call, element, &counts, input, &counts, output)
        }
        CollectiveKind::Barrier => communicator.barrier(call),
        CollectiveKind::Broadcast => communicator.broadcast(call, element, root, input, output),
        CollectiveKind::CollectivePermute => {
            let pairs = pairs(call.group, terms);
            communicator.collective_permute(call, element, &pairs, input, output)
        }
        CollectiveKind::Gather => communicator.gather(call, element, root, input, output),
        CollectiveKind::Reduce => {
            communicator.reduce(call, element, reduction, root, input, output)
        }
        CollectiveKind::ReduceScatter => {
            communicator.reduce_scatter(call, element, reduction, input, output)
        }
        CollectiveKind::Scatter => communicator.scatter(call, element, root, input, output),
        CollectiveKind::Send if call.group.position() == root => {
            communicator.send(call, element, input)
        }
        CollectiveKind::Send => communicator.recv(call, element, output),
        CollectiveKind::SendRecv => communicator.send_recv(call, element, input, output),
    }
}

fn call_in_place(
    communicator: &Communicator,
    call: &Call<'_>,
    terms: &Terms,
    buffer: &mut [u8],
) -> Result<(), CollectiveError> {
    let Terms { kind, element, reduction, root, .. } = *terms;
    match kind {
        CollectiveKind::AllGather => communicator.all_gather_in_place(call, element, buffer),
        CollectiveKind::AllReduce => {
            communicator.all_reduce_in_place(call, element, reduction, buffer)
        }
        CollectiveKind::AllToAll => communicator.all_to_all_in_place(call, element, buffer),
        CollectiveKind::Broadcast => communicator.broadcast_in_place(call, element, root, buffer),
        CollectiveKind::CollectivePermute => {
            let pairs = pairs(call.group, terms);
            communicator.collective_permute_in_place(call, element, &pairs, buffer)
        }
        CollectiveKind::Gather => communicator.gather_in_place(call, element, root, buffer),
        CollectiveKind::Reduce => {
            communicator.reduce_in_place(call, element, reduction, root, buffer)
        }
        CollectiveKind::ReduceScatter => {
            communicator.reduce_scatter_in_place(call, element, reduction, buffer)
        }
        CollectiveKind::Scatter => communicator.scatter_in_place(call, element, root, buffer),
        CollectiveKind::SendRecv => communicator.send_recv_in_place(call, element, buffer),
        CollectiveKind::AllToAllV | CollectiveKind::Barrier | CollectiveKind::Send => {
            panic!("{kind} has no form in place")
        }
    }
}

/// Everyone sends to the member `shift` places further.
fn pairs(group: &Group, terms: &Terms) -> Vec<(Member, Member)> {
    let members = group.members();
    let targets = members.iter().copied().cycle().skip(terms.shift);
    members.iter().copied().zip(targets).collect()
}
