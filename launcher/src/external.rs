//! `lockstep foo`: programs that extend the command, found as git finds them.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::{env, io};

use crate::{complain, exit};

/// Becomes `lockstep-NAME` from beside this program or, failing that, from PATH; returns only if
/// that fails, with the exit code. `words` are the name and the arguments.
pub(crate) fn exec(words: &[OsString]) -> u8 {
    let Some((name, arguments)) = words.split_first() else {
        return exit::LAUNCHER_ERROR;
    };
    let mut program = OsString::from("lockstep-");
    program.push(name);
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    // A name with a slash would be a path, not a command.
    if !name.as_encoded_bytes().contains(&b'/') {
        for path in beside(&program).into_iter().chain([PathBuf::from(&program)]) {
            error = Command::new(path).args(arguments).exec();
            if error.kind() != io::ErrorKind::NotFound {
                break;
            }
        }
    }
    report(name, &program, &error)
}

fn beside(program: &OsStr) -> Option<PathBuf> {
    Some(env::current_exe().ok()?.parent()?.join(program))
}

fn report(name: &OsStr, program: &OsStr, error: &io::Error) -> u8 {
    let (name, program) = (name.display(), program.display());
    if error.kind() == io::ErrorKind::NotFound {
        complain(format_args!(
            "there is no command `{name}`, nor {program} beside lockstep or in PATH; \
             see `lockstep --help`"
        ));
        return exit::NOT_FOUND;
    }
    complain(format_args!("cannot execute {program}: {error}"));
    exit::CANNOT_EXECUTE
}
