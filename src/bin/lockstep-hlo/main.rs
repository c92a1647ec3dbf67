//! `lockstep-hlo`: looks at a program from the shell.
//!
//! Reads a StableHLO module, text or bytecode, from a file or standard input and prints it, in the
//! custom or the generic form, checks it, names it by its fingerprint, counts what it costs, runs
//! it, times it, or compares its values with what it says it expects. A text may have several modules, with lines that begin with `// -----` between
//! them; each is answered for, in their order, but only one is run. Exits with 0 when all is well,
//! with 1 when the program is at fault and with 2 when the command is: wrong arguments, or a file
//! that cannot be read.
//! `lockstep hlo …` is the same command.

mod check;
mod npz;
mod run;

use std::fmt::{self, Write as _};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand, ValueEnum};
use lockstep::stablehlo::{
    Excerpt, Module, Statistics, VerifyError, parse_all, parse_bytecode, verify,
};

/// What MLIR bytecode begins with.
const BYTECODE_MAGIC: &[u8] = b"ML\xEFR";

#[derive(Parser)]
#[command(name = "lockstep-hlo", version, about = "Look at a StableHLO program")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the program as Lockstep understands it.
    Print(Source),
    /// Check the program by the constraints of the StableHLO specification.
    Verify(Source),
    /// Write the program, text or bytecode, in a form of text.
    Convert {
        #[command(flatten)]
        source: Source,
        /// The form.
        #[arg(long, value_enum)]
        to: Form,
    },
    /// Print the SHA-256 by which processes know that they run the same program.
    Fingerprint {
        #[command(flatten)]
        source: Source,
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Count operations, arithmetic, bytes and collectives; each operation once, as written.
    Stats {
        #[command(flatten)]
        source: Source,
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Run the program once on one CPU device.
    Run(run::Run),
    /// Run every function that says what it expects (`check.expect_eq` and its kin) and compare.
    Check(check::Check),
    /// Run the program again and again on one CPU device and say how long it takes.
    Bench(run::Bench),
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// As people write it; what `print` prints.
    Custom,
    /// As any MLIR parser reads it, whatever dialects it knows.
    Generic,
}

#[derive(Args)]
struct Source {
    /// The program's file; `-` is standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
}

/// Why there is no answer.
enum Failure {
    /// The program is at fault; what to say about it.
    Program(String),
    /// The command is.
    Usage(anyhow::Error),
}

fn main() -> ExitCode {
    // Clap itself exits with 2.
    let cli = Cli::parse_from(std::env::args_os().map(check::long_option));
    match answer(&cli.command) {
        Ok(text) => say(&text),
        Err(Failure::Program(text)) => {
            complain(format_args!("{text}"));
            ExitCode::from(1)
        }
        Err(Failure::Usage(error)) => {
            complain(format_args!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Writes to standard output; a reader that goes away early has seen what it wanted.
fn say(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("cannot write to standard output: {error}"));
            ExitCode::from(2)
        }
    }
}

/// Says what is wrong. When nobody can be told, the exit code still says it.
fn complain(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "error: {text}");
}

/// What the command prints.
fn answer(command: &Command) -> Result<String, Failure> {
    match command {
        Command::Print(source) => Ok(written(&source.read()?.modules, Form::Custom)),
        Command::Convert { source, to } => Ok(written(&source.read()?.modules, *to)),
        Command::Verify(source) => {
            source.verified()?;
            Ok(String::new())
        }
        Command::Fingerprint { source, json } => {
            let modules = source.read()?.modules;
            Ok(modules.iter().map(|module| fingerprint(module, *json)).collect())
        }
        Command::Stats { source, json } => {
            let statistics = source.verified()?.modules.into_iter().map(|m| m.statistics());
            let texts =
                statistics.map(|counts| if *json { to_json(&counts) } else { to_table(&counts) });
            Ok(texts.collect())
        }
        Command::Run(run) => run.answer(),
        Command::Check(check) => check.answer(),
        Command::Bench(bench) => bench.answer(),
    }
}

fn written(modules: &[Module], form: Form) -> String {
    let texts = modules.iter().map(|module| match form {
        Form::Custom => module.to_string(),
        Form::Generic => module.to_generic_text(),
    });
    texts.collect::<Vec<_>>().join("// -----\n")
}

fn fingerprint(module: &Module, json: bool) -> String {
    let mut hex = String::with_capacity(64);
    for byte in module.fingerprint().bytes() {
        // Writing to a string does not fail.
        _ = write!(hex, "{byte:02x}");
    }
    if json { format!("{{\"fingerprint\": \"{hex}\"}}\n") } else { format!("{hex}\n") }
}

/// A file as it was read.
struct Program {
    name: String,
    text: String,
    modules: Vec<Module>,
}

impl Source {
    fn read(&self) -> Result<Program, Failure> {
        let name = self.name();
        let bytes = read_bytes(&self.file).map_err(Failure::Usage)?;
        if bytes.starts_with(BYTECODE_MAGIC) {
            return match parse_bytecode(&bytes) {
                // Bytecode has no lines to show; its operations may know some of another file.
                Ok(module) => Ok(Program { name, text: String::new(), modules: vec![module] }),
                Err(error) => Err(Failure::Program(format!("{error}\n--> {name}"))),
            };
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Failure::Program(format!("byte {at} is not UTF-8 text\n--> {name}"))
        })?;
        match parse_all(&text) {
            Ok(modules) => Ok(Program { name, text, modules }),
            Err(error) => Err(Failure::Program(error.with_name(name).to_string())),
        }
    }

    fn verified(&self) -> Result<Program, Failure> {
        let program = self.read()?;
        match program.modules.iter().try_for_each(verify) {
            Ok(()) => Ok(program),
            Err(error) => Err(Failure::Program(program.finding(&error))),
        }
    }

    fn name(&self) -> String {
        if is_standard_input(&self.file) {
            "<stdin>".to_owned()
        } else {
            self.file.display().to_string()
        }
    }
}

impl Program {
    /// A violation, with the line it is on.
    fn finding(&self, error: &VerifyError) -> String {
        let VerifyError { message, subject, constraint, location, .. } = error;
        let constraint = constraint.map(|number| format!(" ({number})")).unwrap_or_default();
        let mut text = format!("{subject}: {message}{constraint}\n");
        let written = match Excerpt::new(&self.text, *location) {
            Some(excerpt) => {
                let gutter = excerpt.gutter();
                write!(text, "{:gutter$}--> {}:{location}\n{excerpt}", "", self.name)
            }
            None => write!(text, "--> {}", self.name),
        };
        // Writing to a string does not fail.
        _ = written;
        text
    }
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn read_bytes(file: &Path) -> anyhow::Result<Vec<u8>> {
    if !is_standard_input(file) {
        return std::fs::read(file).with_context(|| format!("cannot read {}", file.display()));
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
    Ok(bytes)
}

fn to_table(statistics: &Statistics) -> String {
    let Statistics { ops, collectives, .. } = statistics;
    let mut text = String::new();
    let totals = totals(statistics);
    let rows = totals.iter().map(|&(name, total)| (name, total, String::new()));
    let rows = rows.chain(ops.iter().map(|(name, &count)| {
        let bytes = collectives.get(name).map(|traffic| format!("  {} bytes", traffic.bytes));
        (name.as_str(), count, bytes.unwrap_or_default())
    }));
    for (name, number, note) in rows {
        // Writing to a string does not fail.
        _ = writeln!(text, "{number:>20}  {name}{note}");
    }
    text
}

/// Names of operations and numbers: nothing here needs escapes.
fn to_json(statistics: &Statistics) -> String {
    let ops = statistics.ops.iter().map(|(name, count)| format!("\"{name}\": {count}"));
    let collectives = statistics.collectives.iter().map(|(name, traffic)| {
        format!("\"{name}\": {{\"count\": {}, \"bytes\": {}}}", traffic.count, traffic.bytes)
    });
    let object = |fields: Vec<String>| format!("{{{}}}", fields.join(", "));
    let totals = totals(statistics).map(|(name, total)| format!("\"{name}\": {total}"));
    let mut fields = Vec::from(totals);
    fields.push(format!("\"ops\": {}", object(ops.collect())));
    fields.push(format!("\"collectives\": {}", object(collectives.collect())));
    object(fields) + "\n"
}

fn totals(statistics: &Statistics) -> [(&'static str, u64); 5] {
    [
        ("flops", statistics.flops),
        ("bytes_accessed", statistics.bytes_accessed),
        ("parameter_bytes", statistics.parameter_bytes),
        ("result_bytes", statistics.result_bytes),
        ("constant_bytes", statistics.constant_bytes),
    ]
}
