//! `lockstep foo` is `lockstep-foo`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Scratch, code, finish, lockstep, stderr, stdout};

#[test]
fn unknown_commands_are_programs_in_path() {
    let scratch = Scratch::new();
    let program = scratch.file("lockstep-some-tool");
    fs::write(&program, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 6\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = lockstep(["some-tool", "-n", "a  b", "--help", ""]);
    let path = format!("{}:{}", scratch.path().display(), std::env::var("PATH").unwrap());
    let output = finish(command.env("PATH", path).spawn().unwrap());
    assert_eq!((code(&output), stdout(&output)), (6, "<-n><a  b><--help><>".into()));
}

#[test]
fn missing_programs_are_named() {
    for name in ["surely-missing", "../bin/true", "a/b"] {
        let output = finish(lockstep([name]).spawn().unwrap());
        assert_eq!(code(&output), 127);
        assert!(stderr(&output).contains(&format!("no command `{name}`")), "{}", stderr(&output));
    }
}

#[test]
fn the_version_is_said() {
    let output = finish(lockstep(["--version"]).spawn().unwrap());
    assert_eq!(stdout(&output), format!("lockstep {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(code(&output), 0);
}
