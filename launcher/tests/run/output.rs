//! What the processes write arrives whole, and where it belongs.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::support::{code, finish, lockstep, run, stderr, stdout};

#[test]
fn streams_are_not_swapped() {
    let output = run(&["-n", "1", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!((stdout(&output), stderr(&output)), ("out\n".into(), "err\n".into()));
}

/// Lines of very different lengths, written in pieces, from many ranks at once.
#[test]
fn no_line_is_lost_torn_or_mixed() {
    const RANKS: usize = 8;
    const LINES: usize = 3000;
    let script = format!(
        r#"BEGIN {{ r = ENVIRON["LOCKSTEP_RANK"]; for (i = 0; i < {LINES}; i++) {{
            printf "%s:%d:", r, i; for (k = 0; k < (i * 7) % 50; k++) printf "%s", r;
            if (i % 3 == 0) fflush(); printf ".\n" }} }}"#
    );
    for tag in [true, false] {
        let option = if tag { "--tag" } else { "--no-tag" };
        let output = run(&["-n", &RANKS.to_string(), option, "awk", &script]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let mut next: HashMap<usize, usize> = HashMap::new();
        for line in stdout(&output).lines() {
            let line = match line.split_once("] ") {
                Some((prefix, line)) if tag => {
                    assert_eq!(prefix[1..], line[..1], "{line}");
                    line
                }
                _ => line,
            };
            let parts: Vec<_> = line.splitn(3, ':').collect();
            let (rank, number): (usize, usize) =
                (parts[0].parse().unwrap(), parts[1].parse().unwrap());
            assert_eq!(number, *next.entry(rank).or_default(), "{line}");
            assert_eq!(parts[2], format!("{}.", parts[0].repeat((number * 7) % 50)));
            next.insert(rank, number + 1);
        }
        assert_eq!(next, (0..RANKS).map(|rank| (rank, LINES)).collect());
    }
}

#[test]
fn lines_up_to_64_kib_and_longer_ones_stay_whole() {
    for length in [65_535, 65_536, 65_537, 300_000] {
        let script = format!(
            "for i in 1 2 3; do head -c {length} /dev/zero | tr '\\0' $LOCKSTEP_RANK; echo; done"
        );
        let output = run(&["-n", "3", "--tag", "sh", "-c", &script]);
        let out = stdout(&output);
        let mut seen = [0; 3];
        for line in out.lines() {
            let (prefix, line) = line.split_once(' ').unwrap();
            let rank = usize::from(prefix.as_bytes()[1] - b'0');
            assert_eq!(prefix, format!("[{rank}]"));
            assert_eq!(line.len(), length);
            assert!(line.bytes().all(|byte| byte == b'0' + u8::try_from(rank).unwrap()));
            seen[rank] += 1;
        }
        assert_eq!(seen, [3; 3], "{length}");
    }
}

#[test]
fn a_rank_in_the_middle_of_an_endless_line_does_not_silence_the_others() {
    let script = r#"case $LOCKSTEP_RANK in
        0) head -c 100000 /dev/zero | tr '\0' x; read line < "$0";;
        1) echo other; echo > "$0";;
    esac"#;
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let output = run(&["-n", "2", "--tag", "sh", "-c", script, fifo.to_str().unwrap()]);
    let out = stdout(&output);
    let mut lines: Vec<_> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.pop(), Some("[1] other"));
    let text: String = lines.iter().map(|line| line.strip_prefix("[0] ").unwrap()).collect();
    assert_eq!(text, "x".repeat(100_000));
}

#[test]
fn a_last_line_without_an_end_is_kept() {
    assert_eq!(run(&["-n", "1", "printf", "a\nb"]).stdout, b"a\nb");
    let output = run(&["-n", "1", "--tag", "printf", "a\nb"]);
    assert_eq!(stdout(&output), "[0] a\n[0] b\n");
    let output = run(&["-n", "3", "--tag", "sh", "-c", "printf $LOCKSTEP_RANK"]);
    let out = stdout(&output);
    let mut lines: Vec<_> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] 0", "[1] 1", "[2] 2"]);
}

#[test]
fn tags_are_off_in_a_pipe_and_stand_on_both_streams_when_asked_for() {
    let script = "echo out; echo err >&2";
    let output = run(&["-n", "2", "sh", "-c", script]);
    assert_eq!((stdout(&output), stderr(&output)), ("out\nout\n".into(), "err\nerr\n".into()));
    let output = run(&["-n", "2", "--tag", "sh", "-c", script]);
    for (text, word) in [(stdout(&output), "out"), (stderr(&output), "err")] {
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, [format!("[0] {word}"), format!("[1] {word}")]);
    }
}

#[test]
fn the_summary_follows_all_output_even_on_one_stream() {
    let lockstep = env!("CARGO_BIN_EXE_lockstep");
    let script = format!("{lockstep} run -n 2 sh -c 'seq 1000; printf end; exit 3' 2>&1");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let out = stdout(&output);
    let summary: Vec<_> = out.lines().skip_while(|line| !line.starts_with("lockstep: ")).collect();
    assert_eq!(summary.len(), 3, "{summary:?}");
    assert!(summary.iter().all(|line| line.starts_with("lockstep: ")));
    assert_eq!(out.lines().filter(|line| *line == "end").count(), 2);
}

/// As without a launcher: who writes what nobody reads gets SIGPIPE.
#[test]
fn a_closed_stdout_ends_the_writers() {
    let mut launcher = lockstep(["run", "-n", "2", "yes"]).spawn().unwrap();
    let mut head = [0; 4];
    launcher.stdout.take().unwrap().read_exact(&mut head).unwrap();
    assert_eq!(&head, b"y\ny\n");
    assert_eq!(code(&finish(launcher)), 128 + 13);
}

#[test]
fn a_full_disk_is_named_and_no_success() {
    for (program, expected) in [("yes", 128 + 13), ("id", 125)] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = lockstep(["run", "-n", "1", program]);
        let output = finish(command.stdout(full).spawn().unwrap());
        assert_eq!(code(&output), expected);
        assert!(stderr(&output).contains("lockstep: cannot write to stdout: No space left"));
    }
}

#[test]
fn typed_input_is_left_alone() {
    let lockstep = env!("CARGO_BIN_EXE_lockstep");
    let script = format!("{lockstep} run -n 1 cat; read line; echo \"got $line\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = command.spawn().unwrap();
    shell.stdin.take().unwrap().write_all(b"typed\n").unwrap();
    assert_eq!(stdout(&finish(shell)), "got typed\n");
}
