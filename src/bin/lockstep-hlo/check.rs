//! `lockstep-hlo check`: runs modules that say what they expect of their values.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lockstep::check::{self, Options, Report};
use lockstep::stablehlo::{Excerpt, Location, Module, parse_bytecode, parse_each, verify};

use super::{BYTECODE_MAGIC, Failure, read_bytes};

#[derive(Args)]
pub(crate) struct Check {
    /// The files; `-` is standard input.
    #[arg(default_value = "-")]
    files: Vec<PathBuf>,
    /// Take what is between lines that begin with `// -----` for modules of their own, as is always
    /// done; for those who are used to say so.
    #[arg(long)]
    split_input_file: bool,
    /// How long programs that run at once may wait for each other, in seconds.
    #[arg(long, default_value_t = 10.0)]
    timeout: f64,
    /// Print a JSON object for each function, one a line.
    #[arg(long)]
    json: bool,
    /// Say nothing of functions that pass.
    #[arg(long, short)]
    quiet: bool,
}

/// MLIR's tools write long options with one dash, too.
pub(crate) fn long_option(argument: OsString) -> OsString {
    if argument == "-split-input-file" { "--split-input-file".into() } else { argument }
}

impl Check {
    /// Checks every function of every file and says which passed.
    pub(crate) fn answer(&self) -> Result<String, Failure> {
        let mut tally = Tally { passed: 0, failed: 0 };
        for file in &self.files {
            let name = file.display().to_string();
            let bytes = read_bytes(file).map_err(Failure::Usage)?;
            self.file(&name, &bytes, &mut tally)?;
        }
        let Tally { passed, failed } = tally;
        let summary = format!("{passed} passed, {failed} failed");
        match (failed, self.json) {
            (0, true) => Ok(String::new()),
            (0, false) => Ok(summary + "\n"),
            _ => Err(Failure::Program(summary)),
        }
    }

    fn file(&self, name: &str, bytes: &[u8], tally: &mut Tally) -> Result<(), Failure> {
        if bytes.starts_with(BYTECODE_MAGIC) {
            let module = parse_bytecode(bytes).map_err(|error| error.to_string());
            return self.module(name, "", module, tally);
        }
        let text = String::from_utf8_lossy(bytes);
        for module in parse_each(&text) {
            let module = module.map_err(|error| error.with_name(name).to_string());
            self.module(name, &text, module, tally)?;
        }
        Ok(())
    }

    fn module(
        &self,
        name: &str,
        text: &str,
        module: Result<Module, String>,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let verified = module.and_then(|module| match verify(&module) {
            Ok(()) => Ok(module),
            Err(error) => {
                let constraint = error.constraint.map_or(String::new(), |c| format!(" ({c})"));
                let message = format!("{}: {}{constraint}", error.subject, error.message);
                Err(message + &place(name, text, error.location))
            }
        });
        let module = match verified {
            Ok(module) => module,
            Err(message) => {
                tally.failed += 1;
                return self.say(&Line { name, function: "", outcome: Err(message), printed: &[] });
            }
        };
        for function in check::functions(&module) {
            progress(&format!("{name} @{}", function.name));
            let timeout = Duration::try_from_secs_f64(self.timeout).unwrap_or(Duration::MAX);
            let report = check::run(&module, &function.name, Options { timeout });
            let Report { function, outcome, printed } = report;
            let outcome =
                outcome.map_err(|failure| failure.message + &place(name, text, failure.location));
            match &outcome {
                Ok(_) => tally.passed += 1,
                Err(_) => tally.failed += 1,
            }
            self.say(&Line { name, function: &function, outcome, printed: &printed })?;
        }
        Ok(())
    }

    fn say(&self, line: &Line<'_>) -> Result<(), Failure> {
        progress("");
        let text = match (self.json, self.quiet, &line.outcome) {
            (true, _, _) => line.to_json(),
            (false, true, Ok(_)) => return Ok(()),
            (false, ..) => line.to_text(),
        };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
            Failure::Usage(anyhow::Error::new(error).context("cannot write to standard output"))
        })
    }
}

struct Tally {
    passed: usize,
    failed: usize,
}

/// What there is to say about one function, or about a module that has none to run.
struct Line<'a> {
    name: &'a str,
    function: &'a str,
    outcome: Result<usize, String>,
    printed: &'a [String],
}

impl Line<'_> {
    fn to_text(&self) -> String {
        let Self { name, function, outcome, printed } = self;
        let mut text = String::new();
        for value in *printed {
            // Writing to a string does not fail.
            _ = writeln!(text, "     @{function}: {value}");
        }
        let function = if function.is_empty() { String::new() } else { format!(" @{function}") };
        _ = match outcome {
            Ok(count) => writeln!(text, "ok   {name}{function} ({count})"),
            Err(message) => writeln!(text, "FAIL {name}{function}\n{}", message.trim_end()),
        };
        text
    }

    fn to_json(&self) -> String {
        let Self { name, function, outcome, printed } = self;
        let (ok, rest) = match outcome {
            Ok(count) => (true, format!("\"expectations\": {count}")),
            Err(message) => (false, format!("\"message\": {}", json_string(message))),
        };
        let printed: Vec<String> = printed.iter().map(|text| json_string(text)).collect();
        format!(
            "{{\"file\": {}, \"function\": {}, \"ok\": {ok}, {rest}, \"printed\": [{}]}}\n",
            json_string(name),
            json_string(function),
            printed.join(", ")
        )
    }
}

/// The line that a location is on, if it is known.
fn place(name: &str, text: &str, location: Location) -> String {
    match Excerpt::new(text, location) {
        Some(excerpt) => {
            let gutter = excerpt.gutter();
            format!("\n{:gutter$}--> {name}:{location}\n{excerpt}", "")
        }
        None => String::new(),
    }
}

/// Shows on a terminal what is being run.
fn progress(what: &str) {
    let mut err = io::stderr().lock();
    if err.is_terminal() {
        // Progress that nobody sees is no loss.
        _ = write!(err, "\r\x1b[K{what}").and_then(|()| err.flush());
    }
}

fn json_string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            '\n' => json.push_str("\\n"),
            c if c.is_control() => _ = write!(json, "\\u{:04x}", u32::from(c)),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
