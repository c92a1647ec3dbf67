//! The processes of a job, by the environment that they carry.

use std::fs;

/// All processes that carry the job in their environment, with their variables.
pub(crate) fn processes_of(job: &str) -> Vec<(u32, Vec<String>)> {
    let wanted = format!("LOCKSTEP_JOB={job}");
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .map(|pid| (pid, environment_of(pid)))
        .filter(|(_, variables)| variables.contains(&wanted))
        .collect()
}

/// The process of a rank.
pub(crate) fn process_of(job: &str, rank: u32) -> Option<u32> {
    let wanted = format!("LOCKSTEP_RANK={rank}");
    let found = processes_of(job).into_iter().find(|(_, variables)| variables.contains(&wanted));
    found.map(|(pid, _)| pid)
}

/// The variables of a process; none if it is gone.
pub(crate) fn environment_of(pid: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    bytes.split(|&byte| byte == 0).map(|v| String::from_utf8_lossy(v).into_owned()).collect()
}
