//! What an algorithm costs: its steps, and the bytes that a member sends in them.

use super::Hosts;
use super::all_reduce::is_one_step;
use super::choice::Algorithm;
use super::chunk::Chunks;
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::{Operator, OperatorName};
use crate::reduce::Partial;

/// What a collective costs one member, besides the opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// How often it waits for others.
    pub steps: usize,
    /// What it puts on the wire.
    pub sent_bytes: usize,
}

impl Algorithm {
    /// What it costs the member at `position`, where the members of a host share memory if
    /// `is_shared`; `None` of the kinds that have but one form, which their documentation states.
    pub(crate) fn cost(
        self,
        signature: &Signature,
        hosts: &Hosts,
        position: usize,
        is_shared: bool,
    ) -> Option<Cost> {
        let members = hosts.members();
        let (kind, element) = (signature.kind, signature.element?);
        let operand = usize::try_from(signature.operand_bytes()).ok()?;
        let folds = kind != CollectiveKind::AllGather;
        let gathers = kind != CollectiveKind::ReduceScatter;
        if !matches!(
            kind,
            CollectiveKind::AllReduce | CollectiveKind::AllGather | CollectiveKind::ReduceScatter
        ) {
            return None;
        }
        let whole = if folds { operand } else { operand.checked_mul(members)? };
        let chunks = Chunks::new(element, whole, members);
        let chunk = |index: usize| chunks.range(index).len();
        let operator = signature.reduction.and_then(|name| match name {
            OperatorName::Named(reduction) => Some(Operator::from(reduction)),
            OperatorName::Function { .. } => None,
        });
        let partial = operator.and_then(|operator| Partial::new(element, &operator));
        let carried = |bytes| partial.map_or(bytes, |partial| partial.carried_bytes(bytes));
        let others = members - 1;
        let own = chunk(position);
        let cost = match self {
            Self::Shared => Cost::default(),
            Self::Direct if kind == CollectiveKind::AllReduce && is_one_step(operand, members) => {
                Cost { steps: 1, sent_bytes: others * operand }
            }
            Self::Direct => Cost {
                steps: usize::from(folds) + usize::from(gathers),
                sent_bytes: if folds { whole - own } else { 0 }
                    + if gathers { others * own } else { 0 },
            },
            Self::Ring => {
                let order: Vec<usize> = hosts.order().collect();
                let place = order.iter().position(|other| *other == position)?;
                let next = chunk(order[(place + 1) % members]);
                Cost {
                    steps: others * (usize::from(folds) + usize::from(gathers)),
                    sent_bytes: if folds { carried(whole - own) } else { 0 }
                        + if gathers { whole - next } else { 0 },
                }
            }
            Self::RecursiveDoubling if kind == CollectiveKind::AllGather => Cost {
                steps: members.next_power_of_two().ilog2() as usize,
                sent_bytes: others * operand,
            },
            Self::RecursiveDoubling => {
                let rounds = members.ilog2() as usize;
                let pairs = members - (1 << rounds);
                let doubles = rounds * carried(operand);
                Cost {
                    steps: rounds + if pairs > 0 { 2 } else { 0 },
                    sent_bytes: match position {
                        given if given < 2 * pairs && given % 2 == 1 => carried(operand),
                        takes if takes < 2 * pairs => doubles + operand,
                        _ => doubles,
                    },
                }
            }
            Self::TwoLevel => {
                let share: usize = hosts.share(position).into_iter().map(chunk).sum();
                let neighbours = hosts.of(position).0.members.len() - 1;
                let steps = 2 * (usize::from(folds) + usize::from(gathers));
                let mut sent_bytes = if folds { carried(share - own) } else { 0 };
                sent_bytes += if gathers { (hosts.count() - 1) * own } else { 0 };
                if !is_shared {
                    sent_bytes += if folds { whole - share } else { 0 };
                    sent_bytes += if gathers { neighbours * share } else { 0 };
                }
                Cost { steps, sent_bytes }
            }
        };
        Some(cost)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::algorithm::Policy;
    use crate::element::{ElementType, OperatorName, Reduction};
    use crate::transport::sim::{Sent, Simulation};
    use crate::{Call, Communicator, Group, Member};

    const TIMEOUT: Duration = Duration::from_secs(60);

    /// What every member sends while all of them run `body`, rank `r` on the host `hosts[r]`.
    fn sent(
        hosts: &[usize],
        policy: Policy,
        body: impl Fn(&Communicator, &Group) + Sync,
    ) -> Vec<Sent> {
        let ranks = vec![1; hosts.len()];
        let job = Simulation::on_hosts(&ranks, hosts, Duration::from_micros(10));
        let members: Vec<Member> = (0..).map(Member).take(hosts.len()).collect();
        for outcome in job.run(TIMEOUT, |communicator| {
            let communicator = communicator.with_policy(policy);
            body(&communicator, &communicator.group(&members).unwrap());
        }) {
            outcome.unwrap();
        }
        job.sent()
    }

    /// The signature of a collective of `count` elements, which it runs too.
    fn run(
        communicator: &Communicator,
        group: &Group,
        kind: CollectiveKind,
        element: ElementType,
        count: usize,
    ) -> Signature {
        let size = element.size_bytes();
        let input = vec![0; count * size];
        let members = group.members().len();
        let (call, sum) = (Call::on(group), Reduction::Sum);
        let mut output = vec![0; input.len() * members];
        match kind {
            CollectiveKind::AllReduce => {
                let output = &mut output[..input.len()];
                communicator.all_reduce(&call, element, sum, &input, output).unwrap();
            }
            CollectiveKind::ReduceScatter => {
                let output = &mut output[..input.len() / members];
                communicator.reduce_scatter(&call, element, sum, &input, output).unwrap();
            }
            _ => communicator.all_gather(&call, element, &input, &mut output).unwrap(),
        }
        let reduction = (kind != CollectiveKind::AllGather).then_some(OperatorName::Named(sum));
        Signature { reduction, ..Signature::new(kind, element, input.len()) }
    }

    /// On the simulated network every member sends what the formulas say, and none takes more
    /// steps than they say; for groups of all sizes, on hosts with equally many members and not,
    /// and of operands that make no equal chunks.
    #[test]
    fn members_send_what_is_said() {
        for members in 2..=8_usize {
            let own_hosts = (0..members).collect();
            let pairs = (0..members).map(|rank| rank / 2).collect();
            let uneven = (0..members).map(|rank| usize::from(rank > 0)).collect();
            for hosts in [vec![0; members], own_hosts, pairs, uneven] {
                check(members, &hosts);
            }
        }
    }

    fn check(members: usize, hosts: &[usize]) {
        let opening = sent(hosts, Policy::default(), |communicator, group| {
            communicator.barrier(&Call::on(group)).unwrap();
        });
        for (kind, algorithm) in
            [CollectiveKind::AllReduce, CollectiveKind::ReduceScatter, CollectiveKind::AllGather]
                .into_iter()
                .flat_map(|kind| Algorithm::ALL.map(|algorithm| (kind, algorithm)))
                .filter(|(kind, algorithm)| algorithm.serves(*kind))
        {
            let counts: &[usize] = match (kind, members) {
                // In one step and in two.
                (CollectiveKind::AllReduce, 2) => &[2003, 300_001],
                (CollectiveKind::AllReduce, _) => &[2003],
                _ => &[300 * members],
            };
            for &count in counts {
                check_count(hosts, &opening, (kind, algorithm), count);
            }
        }
    }

    fn check_count(
        hosts: &[usize],
        opening: &[Sent],
        (kind, algorithm): (CollectiveKind, Algorithm),
        count: usize,
    ) {
        let policy = Policy { algorithm: Some(algorithm), reproducible: false };
        for element in [ElementType::F32, ElementType::F16] {
            let said = std::sync::Mutex::new(vec![Cost::default(); hosts.len()]);
            let spent = sent(hosts, policy, |communicator, group| {
                let signature = run(communicator, group, kind, element, count);
                let hosts = &Hosts::new(group.members(), |member| {
                    (0..)
                        .zip(hosts)
                        .find(|(_, host)| **host == hosts[member.0 as usize])
                        .map(|(rank, _)| crate::Rank(rank))
                });
                let position = group.position();
                let cost = algorithm.cost(&signature, hosts, position, false).unwrap();
                assert_eq!(communicator.plan(group, &signature).0, algorithm);
                said.lock().unwrap()[position] = cost;
            });
            let said = said.into_inner().unwrap();
            for (position, cost) in said.iter().enumerate() {
                let case =
                    format!("{kind} of {count} {element} by {algorithm}, {position} of {hosts:?}");
                let bytes = spent[position].bytes - opening[position].bytes;
                let steps = spent[position].exchanges - opening[position].exchanges;
                assert_eq!(bytes, cost.sent_bytes, "{case}");
                assert!(steps <= cost.steps, "{case}: {steps} of {} steps", cost.steps);
            }
            // Somebody takes them all, but for those within hosts where nobody has neighbours.
            let most = spent.iter().map(|sent| sent.exchanges - 1).max().unwrap();
            if algorithm != Algorithm::TwoLevel {
                assert_eq!(most, said[0].steps, "{kind} by {algorithm} of {hosts:?}");
            }
        }
    }
}
