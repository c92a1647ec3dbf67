//! The signals that the launcher receives.

use std::{fs, io};

use crossbeam_channel::Sender;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::run::Message;

/// Signals that end the job.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// Signals that are passed on to the ranks.
const FORWARDED: [i32; 5] = [SIGUSR1, SIGUSR2, SIGQUIT, SIGCONT, SIGTSTP];

/// Sends [`Message::Signal`] for each signal from now on.
///
/// A signal that the launcher was started to ignore, as `nohup` does with HUP and a shell script
/// with the INT of background jobs, stays ignored.
///
/// # Errors
/// When handlers cannot be installed.
pub(crate) fn listen(messages: Sender<Message>) -> io::Result<()> {
    let ignored = ignored();
    let wanted = ENDING.iter().chain(&FORWARDED).filter(|signal| ignored >> (*signal - 1) & 1 == 0);
    let mut signals = Signals::new(wanted)?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            if messages.send(Message::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// Whether `signal` ends the job.
pub(crate) fn is_ending(signal: i32) -> bool {
    ENDING.contains(&signal)
}

/// The ignored signals: bit `s - 1` stands for signal `s`.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
