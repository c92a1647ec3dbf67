//! The exit code is that of the first process to fail, and the launcher's own codes are 124 to 127.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use crate::support::{Scratch, code, run, stderr, stdout};

#[test]
fn success_is_silent() {
    let output = run(&["-n", "4", "true"]);
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
}

/// The stress test below does the same a thousand times.
#[test]
fn the_code_is_never_lost() {
    for _ in 0..20 {
        assert_eq!(code(&run(&["-n", "2", "sh", "-c", "exit 3"])), 3);
    }
}

#[test]
#[ignore = "stress: 1000 jobs"]
fn the_code_is_never_lost_in_a_thousand_runs() {
    for _ in 0..1000 {
        assert_eq!(code(&run(&["-n", "2", "sh", "-c", "exit 3"])), 3);
    }
}

/// Ranks end one after the other, each when the one before is dead: it stays a zombie until the
/// job is over.
#[test]
fn the_first_failure_by_time_decides() {
    let scratch = Scratch::new();
    let script = format!(
        r#"cd {}
        echo $$ > $LOCKSTEP_RANK
        await() {{ until read pid < $1 && read pid name state rest < /proc/$pid/stat \
            && [ $state = Z ]; do sleep 0.01; done; }} 2> /dev/null
        case $LOCKSTEP_RANK in
            2) exit 0;;
            1) await 2; exit 4;;
            0) await 1; exit 2;;
        esac"#,
        scratch.path().display()
    );
    for _ in 0..5 {
        assert_eq!(code(&run(&["-n", "3", "sh", "-c", &script])), 4);
        for rank in 0..3 {
            fs::remove_file(scratch.file(&rank.to_string())).unwrap();
        }
    }
}

#[test]
fn a_signal_counts_as_128_plus_its_number() {
    for (signal, expected) in [("KILL", 137), ("TERM", 143), ("ABRT", 134), ("SEGV", 139)] {
        let script = format!("ulimit -c 0; kill -{signal} $$");
        let output = run(&["-n", "1", "sh", "-c", &script]);
        assert_eq!(code(&output), expected);
        let last = stderr(&output).lines().last().unwrap().to_owned();
        assert!(last.ends_with(&format!("(SIG{signal})")), "{last}");
    }
}

#[test]
fn survivors_are_ended_in_two_seconds_and_do_not_decide() {
    let scratch = Scratch::new();
    let script = format!(
        r#"case $LOCKSTEP_RANK in
            1) until [ -e {0}/0 ] && [ -e {0}/2 ]; do sleep 0.01; done
                : > {0}/killed; kill -KILL $$;;
            *) trap 'exit 7' TERM; : > {0}/$LOCKSTEP_RANK; while :; do sleep 0.05; done;;
        esac"#,
        scratch.path().display()
    );
    let output = run(&["-n", "3", "sh", "-c", &script]);
    let killed = fs::metadata(scratch.file("killed")).unwrap().modified().unwrap();
    assert!(killed.elapsed().unwrap() < Duration::from_secs(2), "{:?}", killed.elapsed());
    assert_eq!(code(&output), 137);
    let text = stderr(&output);
    assert_eq!(text.matches("was told to end and exited with code 7").count(), 2, "{text}");
}

#[test]
fn survivors_that_do_not_listen_are_killed_after_the_grace() {
    let scratch = Scratch::new();
    let script = format!(
        r#"case $LOCKSTEP_RANK in
            0) until [ -e {0}/1 ]; do sleep 0.01; done; exit 9;;
            1) trap '' TERM; : > {0}/1; while :; do sleep 0.05; done;;
        esac"#,
        scratch.path().display()
    );
    let output = run(&["-n", "2", "--kill-grace", "200ms", "sh", "-c", &script]);
    assert_eq!(code(&output), 9);
    let text = stderr(&output);
    assert!(text.contains("was told to end and was killed by signal 9 (SIGKILL)"), "{text}");
}

#[test]
fn the_summary_is_last_and_names_the_culprit() {
    let script = r#"[ $LOCKSTEP_RANK = 1 ] || exit 0
        i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo "line $i" >&2; done; echo "pid $$"; exit 5"#;
    let output = run(&["-n", "2", "--no-tag", "sh", "-c", script]);
    let out = stdout(&output);
    let pid = out.trim().strip_prefix("pid ").unwrap();
    let text = stderr(&output);
    let tail: String = (11..=30).map(|line| format!("  | line {line}\n")).collect();
    let expected = format!(
        "lockstep: the last 20 lines of stderr of rank 1:\n{tail}\
         lockstep: rank 1 (pid {pid}) failed first: it exited with code 5\n"
    );
    assert!(text.ends_with(&expected), "{text}");
    let others = text.lines().filter(|line| line.starts_with("lockstep: rank 0 (pid ")).count();
    assert_eq!(others, 1, "{text}");
}

#[test]
fn programs_that_cannot_run() {
    let scratch = Scratch::new();
    let (file, script) = (scratch.file("file"), scratch.file("script"));
    fs::write(&file, "not a program").unwrap();
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for (program, expected) in [
        ("surely-no-such-program", 127),
        ("/no/such/program", 127),
        (&*script, 127),
        (&*file, 126),
        (scratch.path().to_str().unwrap(), 126),
    ] {
        let output = run(&["-n", "2", program]);
        assert_eq!(code(&output), expected, "{program}");
        let text = stderr(&output);
        let start = format!("lockstep: cannot execute {program}: ");
        assert!(text.starts_with(&start) && text.lines().count() == 1, "{text}");
        assert_eq!(text.contains("interpreter is not"), program == script, "{text}");
    }
}

#[test]
fn wrong_usage_is_125_and_help_is_0() {
    for arguments in [&["-n", "0", "true"][..], &["-n", "1"], &["--bogus"], &[]] {
        let output = run(arguments);
        assert_eq!((code(&output), output.stdout.len()), (125, 0), "{arguments:?}");
        assert!(stderr(&output).contains("--help"), "{arguments:?}");
    }
    let output = run(&["--help"]);
    assert_eq!((code(&output), output.stderr.len()), (0, 0));
    assert!(stdout(&output).contains("124  --timeout was reached"));
}

#[test]
fn a_timeout_is_124() {
    let start = Instant::now();
    let output = run(&["-n", "2", "--timeout", "300ms", "sleep", "60"]);
    assert_eq!(code(&output), 124);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let last = stderr(&output).lines().last().unwrap().to_owned();
    assert_eq!(last, "lockstep: the job was not over after 300ms (--timeout)");
}

#[test]
fn the_file_limit_is_raised_or_the_number_needed_is_said() {
    let lockstep = env!("CARGO_BIN_EXE_lockstep");
    for (limits, n, expected) in [("ulimit -Sn 100", "30", 0), ("ulimit -n 100", "40", 125)] {
        let script = format!("{limits}; exec {lockstep} run -n {n} true");
        let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
        assert_eq!(code(&output), expected, "{limits}: {}", stderr(&output));
        if expected != 0 {
            assert!(
                stderr(&output).contains("40 processes need 105 open files and the limit is 100")
            );
        }
    }
}
