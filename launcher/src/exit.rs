//! The exit codes of the launcher.
//!
//! They follow `timeout` and `env`: a caller can tell a failure of the launcher (124 to 127) from
//! one of the program as far as the program does not use these codes itself.

use lockstep_collectives::{ProcessExit, signal_name};

/// `--timeout` was reached.
pub(crate) const TIMED_OUT: u8 = 124;
/// The command line is wrong, or the launcher cannot do its work.
pub(crate) const LAUNCHER_ERROR: u8 = 125;
/// The program exists and cannot be executed.
pub(crate) const CANNOT_EXECUTE: u8 = 126;
/// There is no such program.
pub(crate) const NOT_FOUND: u8 = 127;

/// What a shell shows for a process that ended so: its code, or 128 plus the signal.
pub(crate) fn shell_code(exit: ProcessExit) -> u8 {
    match exit {
        ProcessExit::Exited { code } => code.to_le_bytes()[0],
        ProcessExit::Signalled { signal } => signalled(signal),
    }
}

/// The exit code that stands for the end by `signal`.
pub(crate) fn signalled(signal: i32) -> u8 {
    signal.saturating_add(128).to_le_bytes()[0]
}

/// What to say of a process that ended so: `exited with code 3`.
pub(crate) fn words(exit: ProcessExit) -> String {
    exit.failure().map_or_else(|| "exited with code 0".into(), |cause| cause.to_string())
}

/// What to call a signal: `SIGKILL`.
pub(crate) fn signal_words(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_a_shell() {
        for (exit, code) in [
            (ProcessExit::Exited { code: 0 }, 0),
            (ProcessExit::Exited { code: 3 }, 3),
            (ProcessExit::Exited { code: 255 }, 255),
            (ProcessExit::Signalled { signal: 9 }, 137),
            (ProcessExit::Signalled { signal: 64 }, 192),
        ] {
            assert_eq!(shell_code(exit), code, "{exit:?}");
        }
    }

    #[test]
    fn ends_read_as_sentences() {
        assert_eq!(words(ProcessExit::Exited { code: 0 }), "exited with code 0");
        assert_eq!(words(ProcessExit::Exited { code: 7 }), "exited with code 7");
        assert_eq!(words(ProcessExit::Signalled { signal: 9 }), "was killed by signal 9 (SIGKILL)");
        assert_eq!(signal_words(15), "SIGTERM");
        assert_eq!(signal_words(40), "signal 40");
    }
}
