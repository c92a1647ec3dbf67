//! What users of other runtimes suffered from, and the tests that hold Lockstep to better.
//!
//! The first table has the forty complaints that came up most in public issue trackers, the second
//! the reports of wrong or hanging collectives, the third those of runtimes that hang, crash or
//! mislead. Each row names its tests, which are looked up in
//! the sources, so that a test that is renamed or lost is missed here.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A number, what went wrong, the file with the tests (after `in`) and their names.
struct Scenario {
    number: &'static str,
    what: &'static str,
    tests: &'static [(&'static str, &'static [&'static str])],
    /// What of it has no test, and why.
    open: &'static str,
}

const FAILURES: &str = "collectives/tests/collectives/failures.rs";
const VALUES: &str = "collectives/tests/collectives/values.rs";
const ARITHMETIC: &str = "collectives/tests/collectives/arithmetic.rs";
const GROUPS: &str = "collectives/tests/collectives/groups.rs";
const STRESS: &str = "collectives/tests/collectives/stress.rs";
const PROCESSES: &str = "collectives/tests/processes.rs";
const RENDEZVOUS: &str = "collectives/tests/rendezvous.rs";
const CORE: &str = "collectives/src/rendezvous/core/tests.rs";
const QUIC: &str = "collectives/src/transport/quic/tests.rs";
const JOBS: &str = "tests/jobs/main.rs";
const CLIENT_JOBS: &str = "src/client/tests/jobs.rs";
const RUN_FLIGHT: &str = "launcher/tests/run/flight.rs";
const RUN_ARGUMENTS: &str = "launcher/tests/run/arguments.rs";
const RUN_EXIT_CODES: &str = "launcher/tests/run/exit_codes.rs";
const RUN_SIGNALS: &str = "launcher/tests/run/signals.rs";
const RUN_LEFTOVERS: &str = "launcher/tests/run/leftovers.rs";
const RUN_OUTPUT: &str = "launcher/tests/run/output.rs";
const RUN_RELAYS: &str = "launcher/tests/run/relays.rs";
const RUN_MEMBERSHIP: &str = "launcher/tests/run/membership.rs";
const CLIENTS: &str = "tests/conformance/main.rs";
const ARRAYS: &str = "tests/conformance/arrays.rs";
const EXECUTIONS: &str = "tests/conformance/executions.rs";
const MOVEMENT: &str = "tests/conformance/movement.rs";

macro_rules! scenarios {
    ($($number:literal $what:literal $(in $file:expr => [$($test:ident),* $(,)?])* $(open $open:literal)?;)*) => {
        &[$(Scenario {
            number: $number,
            what: $what,
            tests: &[$(($file, &[$(stringify!($test)),*])),*],
            open: concat!($($open)?),
        }),*]
    };
}

const COMPLAINTS: &[Scenario] = scenarios! {
    "1" "a rank is alive but stuck, and all others wait for ever"
        in JOBS => [a_stuck_rank_is_named_by_all_others_within_the_deadline]
        in FAILURES => [a_late_member_is_named_by_all_sim, a_late_member_is_named_by_all_quic,
            a_late_member_is_named_by_all_shm];
    "2" "one process dies or leaves, and the rest hang or are aborted"
        in JOBS => [a_killed_rank_ends_the_job_and_is_named, rank_zero_may_leave_first]
        in RENDEZVOUS => [a_rank_that_dies_ends_every_wait_for_it, rank_0_leaving_first_harms_nobody]
        in RUN_MEMBERSHIP => [survivors_learn_of_a_death_at_once_and_end_by_themselves,
            the_first_rank_may_leave_first]
        in PROCESSES => [a_killed_host_of_the_rendezvous_is_missed_by_the_others_at_once]
        in FAILURES => [a_dead_rank_is_named_with_its_cause_sim, a_process_that_leaves_harms_nobody];
    "3" "after a hang nobody can tell which rank is missing"
        in RUN_FLIGHT => [a_killed_rank_has_a_line, a_rank_that_raised_has_a_line,
            a_stuck_rank_has_a_line_and_the_file_has_all, a_stopped_rank_that_answers_nobody_has_a_line];
    "4" "ranks disagree on what they call: a wrong sum, or a hang two calls later"
        in FAILURES => [every_difference_is_told_sim, every_difference_is_told_quic,
            every_difference_is_told_shm, two_members_that_disagree_are_both_named,
            counts_that_do_not_match_are_told_sim, counts_that_do_not_match_are_told_quic,
            counts_that_do_not_match_are_told_shm]
        in GROUPS => [members_that_name_different_groups_miss_each_other];
    "5" "processes compile different programs and deadlock"
        in JOBS => [programs_that_differ_are_refused_on_every_rank_before_anything_runs]
        in CLIENT_JOBS => [processes_with_other_programs_are_named_before_anything_runs,
            a_process_that_does_not_compile_is_named];
    "6" "a send buffer is written over while it is still being sent"
        in STRESS => [rounds_in_groups_at_once_shm, rounds_in_groups_at_once_quic,
            rounds_in_groups_at_once_of_processes_with_several_members,
            a_hundred_rounds_up_to_64_mib_shm, a_hundred_rounds_up_to_64_mib_quic];
    "7" "low-precision reductions lose the answer"
        in ARITHMETIC => [bf16_ones_of_512_members_sum_to_512,
            sums_near_the_greatest_number_are_rounded_once_quic,
            sums_near_the_greatest_number_are_rounded_once_shm,
            what_overflows_on_the_way_does_not_in_the_end, means_keep_their_fractions]
        in VALUES => [every_type_sim, every_type_quic, every_type_shm];
    "8" "NaN vanishes in maximum and minimum"
        in ARITHMETIC => [a_nan_of_any_member_is_in_every_minimum_and_maximum_sim,
            a_nan_of_any_member_is_in_every_minimum_and_maximum_shm,
            a_nan_at_any_place_is_in_every_minimum_and_maximum];
    "9" "strided and transposed inputs give wrong bytes"
        in "src/client/region.rs" => [reads_through_strides_of_any_sign]
        in "src/client/tests/arrays.rs" => [matrices_are_cut_along_both_dimensions];
    "10" "time limits are hard-coded, differ per operation, or are ignored"
        in FAILURES => [a_member_within_the_limit_is_waited_for, a_late_member_is_named_by_all_sim]
        in PROCESSES => [a_rank_stopped_in_a_collective_is_waited_for_within_the_limit];
    "11" "slow or out-of-order start kills the job"
        in RENDEZVOUS => [members_may_start_before_the_coordinator,
            without_a_coordinator_joining_says_what_it_tried, the_wait_for_others_ends_with_their_names]
        in CORE => [those_that_wait_hear_once_a_second_who_is_missing]
        in RUN_MEMBERSHIP => [who_does_not_join_in_time_is_named];
    "12" "a restart meets the previous attempt"
        in JOBS => [strangers_are_refused_with_a_reason_and_harm_nobody]
        in RENDEZVOUS => [strangers_are_refused_with_a_reason_and_the_job_goes_on]
        in CORE => [strangers_are_told_why, the_same_rank_twice_is_refused_and_the_same_process_twice_is_not];
    "13" "the wrong address is advertised"
        in "collectives/src/endpoint.rs" => [the_address_towards_loopback_is_loopback]
        open "between hosts it is what scripts/two-hosts runs; one launcher spans one host";
    "14" "firewalls and dynamic ports hang jobs without a hint"
        in RENDEZVOUS => [without_a_coordinator_joining_says_what_it_tried]
        open "ports cannot be chosen yet";
    "15" "arguments and environment are mangled on the way"
        in RUN_ARGUMENTS => [awkward_arguments, arbitrary_arguments, spaces_survive_a_shell,
            the_environment_is_inherited_and_extended];
    "16" "exit codes are lost, mixed up, or 0 on failure"
        in RUN_EXIT_CODES => [the_code_is_never_lost, the_code_is_never_lost_in_a_thousand_runs,
            the_first_failure_by_time_decides, a_signal_counts_as_128_plus_its_number];
    "17" "signals are not forwarded, and there is no grace"
        in RUN_SIGNALS => [one_signal_ends_the_job_politely, who_does_not_listen_is_killed_after_the_grace,
            a_second_signal_kills_at_once, other_signals_are_passed_on, a_stopped_job_can_be_ended];
    "18" "preemption reaches one rank, which goes to checkpoint alone"
        open "there is no preemption notice yet";
    "19" "orphans are left on the hosts"
        in RUN_LEFTOVERS => [nothing_outlives_a_killed_launcher, nothing_outlives_an_interrupted_job,
            nothing_outlives_a_job_that_ends_well, a_lost_guard_is_replaced]
        in RUN_RELAYS => [no_relay_outlives_the_launcher];
    "20" "stdin is duplicated, eaten, or keeps the launcher alive"
        in RUN_ARGUMENTS => [stdin_is_empty_and_the_launchers_is_not_read]
        in RUN_OUTPUT => [typed_input_is_left_alone];
    "21" "output is torn, lost, or has its prefix inside a line"
        in RUN_OUTPUT => [no_line_is_lost_torn_or_mixed, lines_up_to_64_kib_and_longer_ones_stay_whole,
            a_last_line_without_an_end_is_kept, streams_are_not_swapped,
            tags_are_off_in_a_pipe_and_stand_on_both_streams_when_asked_for]
        in RUN_RELAYS => [every_line_of_every_rank_comes_whole_and_in_order];
    "22" "not enough slots"
        in RUN_RELAYS => [every_line_of_every_rank_comes_whole_and_in_order]
        in RENDEZVOUS => [every_rank_sees_the_same_job];
    "23" "core binding is wrong, or reported otherwise than it is"
        open "ranks are not bound to cores";
    "24" "descriptors and scale: hundreds of local ranks exhaust files"
        in RUN_EXIT_CODES => [the_file_limit_is_raised_or_the_number_needed_is_said]
        in RUN_RELAYS => [the_soft_limit_is_raised_to_the_hard_one]
        in CORE => [a_storm_of_joins_is_no_trouble]
        in "collectives/src/shared_memory/segment.rs" => [a_thousand_places_have_room];
    "25" "the cluster's kind is guessed, and wrongly"
        in "collectives/src/environment.rs" => [no_rank_is_a_world_of_one, says_which_variable_is_wrong_and_why]
        open "nothing is guessed: there is only the launcher's environment";
    "26" "initialising after the backend exists gives a world of one"
        open "a client is made of its world: there is no backend before it";
    "27" "reading a global array crashes or returns a part of it"
        in CLIENT_JOBS => [a_process_holds_its_own_shards_and_says_what_it_lacks]
        in "src/client/tests/arrays.rs" => [replicated_arrays_have_the_same_shard_everywhere]
        in ARRAYS => [partly_remote_arrays_say_what_they_lack, fully_replicated_shards]
        in MOVEMENT => [one_process_fetches, all_processes_gather];
    "28" "local and global shapes are confused"
        in "src/client/tests/arrays.rs" => [arrays_from_shards_need_each_shard_once_in_its_true_shape]
        in "src/ifrt/sharding.rs" => [a_process_holds_a_rectangle_or_no_local_array_does]
        in "tests/conformance/shardings.rs" => [process_data_makes_an_array];
    "29" "uneven shards give wrong values"
        in "src/client/tests/arrays.rs" => [tiled_arrays_are_cut_and_put_together_uneven_ones_too]
        open "partitioned programs are the partitioner's, which is not built yet";
    "30" "sub-groups: names diverge, orders deadlock, making one needs all ranks"
        in GROUPS => [barriers_of_disjoint_groups_do_not_mix_quic, barriers_of_disjoint_groups_do_not_mix_shm,
            members_that_name_different_groups_miss_each_other,
            a_circular_wait_ends_in_time_and_names_both_sides, a_group_needs_nobody_but_its_members]
        in VALUES => [disjoint_groups_sim, disjoint_groups_quic, disjoint_groups_shm,
            a_member_alone_needs_no_transport];
    "31" "empty, scalar and one-rank inputs crash"
        in VALUES => [every_group_and_size_sim, every_group_and_size_quic, every_group_and_size_shm,
            a_member_alone_needs_no_transport]
        in ARRAYS => [empty_arrays_and_scalars];
    "32" "more than 2 GiB: overflow and silent narrowing"
        open "scripts/test-large takes 2^31 + 7 bytes through every collective; the lints of the \
              workspace refuse casts that narrow";
    "33" "element types that fail at run time"
        in "collectives/src/element.rs" => [the_table_in_the_documentation_holds]
        in VALUES => [every_type_sim, every_type_quic, every_type_shm]
        in "src/client/collective.rs" => [every_type_moves_at_its_own_size, types_without_arithmetic_say_so]
        in ARRAYS => [every_element_type_survives];
    "34" "QUIC is far slower than TCP"
        open "BENCHMARKS.md has the figures, and `lockstep-perf --min-busbw` holds a job to one";
    "35" "the UDP environment: offloads that fail, small buffers"
        in QUIC => [a_path_without_segmentation_offload_gets_packets_one_by_one,
            many_peers_with_small_receive_buffers_lose_packets_and_nothing_else]
        in "collectives/src/transport/quic/socket.rs" => [a_batch_arrives_as_its_packets_with_the_offload_and_without];
    "36" "a busy process is declared dead"
        in PROCESSES => [a_stopped_rank_may_go_on_and_a_killed_one_is_missed_at_once,
            a_rank_that_stands_still_for_too_long_is_found_silent,
            a_rank_stopped_in_a_collective_is_waited_for_within_the_limit]
        in RENDEZVOUS => [heartbeats_keep_an_idle_rank_alive]
        in CORE => [a_coordinator_that_slept_does_not_blame_the_members];
    "37" "the PJRT interface drifts" open "there is no PJRT plugin yet";
    "38" "host memory is aliased, donated or laid out wrongly"
        in "src/client/tests/launches.rs" => [donated_inputs_are_deleted_and_handed_over_alone,
            what_is_donated_may_not_be_passed_twice_and_may_be_kept]
        in "src/client/tests/arrays.rs" => [reading_shares_memory_unless_a_copy_is_asked_for]
        in "src/client/host.rs" => [memory_that_may_be_kept_is_where_arrays_lie_and_what_is_read]
        in "src/backend/cpu/buffer.rs" => [memory_of_the_host_stays_where_it_is_and_is_never_written]
        in ARRAYS => [strides_of_any_sign, every_semantics_lets_go_of_the_bytes, deletion_is_idempotent]
        in EXECUTIONS => [donated_arguments_are_gone];
    "39" "remote clients" open "there is no proxy yet";
    "40" "no recovery short of restarting everything"
        in PROCESSES => [after_an_error_the_same_processes_run_on_as_a_smaller_group]
        in FAILURES => [a_dead_rank_is_named_with_its_cause_quic, a_dead_rank_is_named_with_its_cause_shm]
        in RENDEZVOUS => [a_lost_coordinator_ends_pending_and_later_calls];
};

const COLLECTIVES: &[Scenario] = scenarios! {
    "C01" "reduce_scatter is wrong at the end of the first rank's chunk"
        in STRESS => [reduce_scatter_of_twelve_pairs_shm, reduce_scatter_of_twelve_pairs_quic,
            reduce_scatter_of_twelve_pairs_of_4_mib];
    "C03" "f16 sums near the greatest number are off"
        in ARITHMETIC => [sums_near_the_greatest_number_are_rounded_once_quic,
            sums_near_the_greatest_number_are_rounded_once_shm];
    "C05" "the maximum drops the NaN of one rank"
        in ARITHMETIC => [a_nan_of_any_member_is_in_every_minimum_and_maximum_shm];
    "C07" "a scaled sum loses its factor"
        in ARITHMETIC => [means_keep_their_fractions];
    "C09" "the sum of i16 saturates at some counts"
        in ARITHMETIC => [integers_wrap_at_every_count_sim, integers_wrap_at_every_count_shm,
            a_sum_of_booleans_is_0_or_1];
    "C11" "strided columns are reduced wrongly"
        in "src/client/region.rs" => [reads_through_strides_of_any_sign];
    "C13" "reduce leaves partial sums on ranks that are not the root"
        in VALUES => [every_type_sim, every_type_quic, every_type_shm];
    "C15" "a gather of nothing crashes"
        in VALUES => [every_group_and_size_sim, every_group_and_size_quic, every_group_and_size_shm];
    "C17" "a count is narrowed, and the end of the buffer never reduced"
        open "scripts/test-large looks at every element beyond 2^31";
    "C19" "some widths of integers crash"
        in VALUES => [every_type_sim, every_type_quic, every_type_shm];
    "C21" "barriers of disjoint groups mix"
        in GROUPS => [barriers_of_disjoint_groups_do_not_mix_quic, barriers_of_disjoint_groups_do_not_mix_shm];
    "C23" "two groups in another order on some ranks wait in a circle"
        in GROUPS => [a_circular_wait_ends_in_time_and_names_both_sides];
    "C25" "an empty list of axes fails for some collectives"
        in VALUES => [a_member_alone_needs_no_transport];
    "C27" "scatter-add into a sharded table"
        open "partitioned programs are the partitioner's, which is not built yet";
    "C29" "resharding between groups of hosts gives wrong numbers now and then"
        in STRESS => [rounds_in_groups_at_once_shm, rounds_in_groups_at_once_quic]
        in "src/client/route.rs" => [what_nobody_has_is_named,
            replicas_share_the_work_and_neighbours_come_first]
        open "tests/conformance reshards between any two shardings over one, two and four processes";
};

const RUNTIMES: &[Scenario] = scenarios! {
    "R01" "a rank sleeps, and the others wait for ever"
        in JOBS => [a_stuck_rank_is_named_by_all_others_within_the_deadline];
    "R03" "the first process leaves first, and its peers are aborted"
        in JOBS => [rank_zero_may_leave_first]
        in RENDEZVOUS => [rank_0_leaving_first_harms_nobody];
    "R05" "programs differ between processes: a hang"
        in JOBS => [programs_that_differ_are_refused_on_every_rank_before_anything_runs]
        in CLIENT_JOBS => [processes_with_other_programs_are_named_before_anything_runs]
        in EXECUTIONS => [launches_in_another_order_are_refused];
    "R07" "ranks that are started again reach the attempt before"
        in RENDEZVOUS => [strangers_are_refused_with_a_reason_and_the_job_goes_on];
    "R09" "the coordinator's port is taken, and only one rank says so"
        in RENDEZVOUS => [without_a_coordinator_joining_says_what_it_tried]
        open "the launcher lets the system choose the port";
    "R11" "the option that names an interface is understood differently by each layer"
        open "there is no such option: the address is the one that leads to the coordinator";
    "R13" "initialising after devices were listed gives a world of one"
        in CLIENTS => [worlds_follow_one_another_in_one_process]
        open "a client is made of its world: there are no devices to list before it";
    "R15" "two processes that do nothing hang as they end"
        in RUN_EXIT_CODES => [the_code_is_never_lost_in_a_thousand_runs]
        in RENDEZVOUS => [rank_0_leaving_first_harms_nobody];
    "R17" "two devices in each of two processes crash, in a grid and in the transposed one"
        in EXECUTIONS => [sums_go_over_either_axis_of_a_grid];
    "R19" "one worker is told to end, and gathers alone"
        open "there is no preemption notice yet";
    "R21" "a query fails while its feature is off"
        open "nothing can be switched off";
    "R23" "the comparison of shapes overflows to no difference"
        in FAILURES => [every_difference_is_told_sim, counts_that_do_not_match_are_told_sim];
    "R25" "reading an array that spans hosts crashes"
        in ARRAYS => [partly_remote_arrays_say_what_they_lack, fully_replicated_shards]
        in MOVEMENT => [one_process_fetches, all_processes_gather];
    "R27" "starting at other times loses a race"
        in RENDEZVOUS => [members_may_start_before_the_coordinator]
        in CORE => [a_storm_of_joins_is_no_trouble];
    "R29" "the rank that raised is not in the report"
        in RUN_FLIGHT => [a_rank_that_raised_has_a_line];
    "R31" "a program is missing, and the job hangs"
        in RUN_EXIT_CODES => [programs_that_cannot_run];
};

#[test]
fn every_test_that_the_tables_name_is_there() {
    let mut sources = BTreeMap::new();
    let mut missing = Vec::new();
    for scenario in COMPLAINTS.iter().chain(COLLECTIVES).chain(RUNTIMES) {
        let Scenario { number, what, tests, open } = scenario;
        assert!(!tests.is_empty() || !open.is_empty(), "{number} ({what}) has no tests");
        for (file, names) in *tests {
            let text = sources.entry(*file).or_insert_with(|| {
                let root = Path::new(env!("CARGO_MANIFEST_DIR"));
                fs::read_to_string(root.join(file)).unwrap_or_default()
            });
            missing.extend(
                names
                    .iter()
                    .filter(|name| !has_test(text, name))
                    .map(|name| format!("{number} ({what}): {file} has no test {name}")),
            );
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Whether `text` has a function of this name under `#[test]`, perhaps an ignored one, or in its
/// list of cases, which a test runs.
fn has_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let entry = format!("    {name},");
    let mut cases = text.lines().skip_while(|line| !line.ends_with("= cases!["));
    if cases.by_ref().take_while(|line| *line != "];").any(|line| line == entry) {
        return true;
    }
    let mut lines = text.lines().map(str::trim_start);
    let mut is_test = false;
    lines.any(|line| {
        let found = is_test && line.starts_with(&head);
        is_test = line == "#[test]" || is_test && line.starts_with("#[");
        found
    })
}

#[test]
fn the_tables_have_every_row() {
    let numbers: Vec<&str> = COMPLAINTS.iter().map(|scenario| scenario.number).collect();
    assert_eq!(numbers, (1..=40).map(|number| number.to_string()).collect::<Vec<_>>());
    let numbers: Vec<&str> = COLLECTIVES.iter().map(|scenario| scenario.number).collect();
    let odd = (1..30).step_by(2);
    assert_eq!(numbers, odd.map(|number| format!("C{number:02}")).collect::<Vec<_>>());
    let numbers: Vec<&str> = RUNTIMES.iter().map(|scenario| scenario.number).collect();
    let odd = (1..32).step_by(2);
    assert_eq!(numbers, odd.map(|number| format!("R{number:02}")).collect::<Vec<_>>());
}

#[test]
fn what_looks_like_a_test_is_told_from_one() {
    let text = "
        #[test]
        #[ignore = \"stress\"]
        fn slow() {}
        fn helper() {}
        // fn commented() {}
const CASES: &[Case] = cases![
    listed,
];
    ";
    assert!(has_test(text, "listed"));
    assert!(has_test(text, "slow"));
    assert!(!has_test(text, "helper") && !has_test(text, "commented") && !has_test(text, "slo"));
}
