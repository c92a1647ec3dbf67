//! What a process did when, as a file that Perfetto shows.
//!
//! Owns the form of these files: Chrome's trace events, a JSON array with an event on each line,
//! so that a file is readable up to where its process died, and files of several processes are
//! joined line by line. What is an event, the spans say that the rest of the crate opens with
//! `tracing`; one with a field `name` is shown by that name. Times are microseconds since 1970, by this host's clock when the trace began and by
//! its monotonic clock since: traces of one host are in step.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufRead, BufWriter, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Instant, SystemTime};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The trace of one process, as a layer of its `tracing` subscriber; clones write the same file.
///
/// ```
/// use lockstep::trace::Trace;
/// use tracing_subscriber::prelude::*;
///
/// # let folder = tempfile::tempdir()?;
/// let trace = Trace::create(&folder.path().join("trace-0.json"), 0)?;
/// let _scope = tracing_subscriber::registry().with(trace.clone()).set_default();
/// tracing::info_span!("setup").in_scope(|| ());
/// trace.flush()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Trace {
    shared: Arc<Shared>,
}

struct Shared {
    process: u32,
    began: Instant,
    /// Microseconds from 1970 to `began`.
    offset: u128,
    out: Mutex<Out>,
}

struct Out {
    file: BufWriter<File>,
    /// The first failure to write; nothing is written after it.
    failure: Option<io::Error>,
    /// Threads by the order of their first events.
    threads: Vec<ThreadId>,
}

/// What a span remembers.
struct Timing {
    fields: Fields,
    entered: Option<Instant>,
}

#[derive(Default)]
struct Fields {
    /// What the span is shown as, if not by its own name.
    name: Option<String>,
    /// The others, as members of a JSON object.
    members: String,
}

impl Trace {
    /// A trace of process number `process`, in a new file.
    ///
    /// # Errors
    /// When the file cannot be made or written to.
    pub fn create(file: &Path, process: u32) -> io::Result<Self> {
        let mut out = BufWriter::new(File::create(file)?);
        writeln!(out, "[")?;
        writeln!(
            out,
            "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{process},\"tid\":0,\
             \"args\":{{\"name\":\"process {process}\"}}}},"
        )?;
        let began = Instant::now();
        let offset = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
        let out = Mutex::new(Out { file: out, failure: None, threads: Vec::new() });
        Ok(Self { shared: Arc::new(Shared { process, began, offset, out }) })
    }

    /// Writes out what is buffered; so does dropping the last clone, without telling.
    ///
    /// # Errors
    /// The first failure since the last call.
    pub fn flush(&self) -> io::Result<()> {
        let mut out = self.out();
        match out.failure.take() {
            Some(failure) => Err(failure),
            None => out.file.flush(),
        }
    }

    /// Writes one event, `rest` of which follows its name, place and time.
    fn write(&self, name: &str, start: Instant, rest: fmt::Arguments<'_>) {
        let Shared { process, began, offset, .. } = &*self.shared;
        let time = offset + start.saturating_duration_since(*began).as_micros();
        let mut out = self.out();
        if out.failure.is_some() {
            return;
        }
        let current = thread::current();
        let known = out.threads.iter().position(|thread| *thread == current.id());
        let written = known.map_or_else(
            || {
                out.threads.push(current.id());
                let (number, label) = (out.threads.len(), current.name().unwrap_or("unnamed"));
                let label = escaped(label);
                writeln!(
                    out.file,
                    "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{process},\"tid\":{number},\
                     \"args\":{{\"name\":\"{label}\"}}}},"
                )?;
                Ok(number)
            },
            |place| Ok(place + 1),
        );
        let written = written.and_then(|thread| {
            let name = escaped(name);
            writeln!(
                out.file,
                "{{\"name\":\"{name}\",\"pid\":{process},\"tid\":{thread},\"ts\":{time},{rest}}},"
            )
        });
        out.failure = written.err();
    }

    fn out(&self) -> MutexGuard<'_, Out> {
        // Lines are written whole, or a failure is kept.
        self.shared.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Trace {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(Timing { fields, entered: None });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(timing) = span.extensions_mut().get_mut::<Timing>() {
            values.record(&mut timing.fields);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(timing) = span.extensions_mut().get_mut::<Timing>() {
            timing.entered = Some(Instant::now());
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let end = Instant::now();
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(Timing { fields, entered }) = extensions.get_mut::<Timing>() else { return };
        let Some(start) = entered.take() else { return };
        let took = end.duration_since(start).as_micros();
        self.write(
            fields.name.as_deref().unwrap_or(span.name()),
            start,
            format_args!("\"ph\":\"X\",\"dur\":{took},\"args\":{{{}}}", fields.members),
        );
    }

    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.write(
            event.metadata().target(),
            Instant::now(),
            format_args!("\"ph\":\"i\",\"s\":\"t\",\"args\":{{{}}}", fields.members),
        );
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "name" {
            self.name = Some(value.to_owned());
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let comma = if self.members.is_empty() { "" } else { "," };
        let (name, value) = (escaped(field.name()), escaped(&format!("{value:?}")));
        // Writing to a string does not fail.
        let _ = write!(self.members, "{comma}\"{name}\":\"{value}\"");
    }
}

/// `text` as the inside of a JSON string.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Joins the traces of several processes to one, and returns how many events it has.
///
/// # Errors
/// When a file cannot be read or written, or one has a line that is no event; it is named. The last
/// line of a process that died may be cut off: it is left out.
pub fn merge(traces: &[&Path], merged: &Path) -> io::Result<usize> {
    let mut out = BufWriter::new(File::create(merged)?);
    let mut count = 0;
    for trace in traces {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", trace.display()))
        };
        let mut lines = io::BufReader::new(File::open(trace).map_err(named)?).lines().peekable();
        while let Some(line) = lines.next() {
            let line = line.map_err(named)?;
            let event = line.trim().trim_end_matches(',');
            match event {
                "" | "[" | "]" => {}
                _ if event.starts_with('{') && event.ends_with('}') => {
                    out.write_all(if count == 0 { b"[\n" } else { b",\n" })?;
                    out.write_all(event.as_bytes())?;
                    count += 1;
                }
                _ if lines.peek().is_none() => {}
                _ => {
                    let message = format!("{}: `{event}` is no event", trace.display());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
            }
        }
    }
    out.write_all(if count == 0 { b"[]\n" } else { b"\n]\n" })?;
    out.flush()?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::prelude::*;

    #[test]
    fn spans_and_events_of_two_processes_become_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let files = [0, 1].map(|process| folder.path().join(format!("trace-{process}.json")));
        for (process, file) in (0..).zip(&files) {
            let trace = Trace::create(file, process).unwrap();
            let subscriber = tracing_subscriber::registry().with(trace.clone());
            tracing::subscriber::with_default(subscriber, || {
                let span = tracing::info_span!(
                    "outer",
                    what = "a \"quoted\" word",
                    late = tracing::field::Empty
                );
                let inside = span.enter();
                tracing::info!("line 1\nline 2");
                span.record("late", 7);
                drop(inside);
            });
            trace.flush().unwrap();
        }
        // What a process that dies leaves behind.
        let mut cut = std::fs::OpenOptions::new().append(true).open(&files[1]).unwrap();
        write!(cut, "{{\"name\":\"cut o").unwrap();
        let merged = folder.path().join("merged.json");
        let traces: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
        assert_eq!(merge(&traces, &merged).unwrap(), 8);
        let text = std::fs::read_to_string(&merged).unwrap();
        assert!(text.starts_with("[\n{") && text.ends_with("}\n]\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.ends_with("},")).count(), 7);
        for expected in [
            r#""args":{"name":"process 1"}"#,
            r#"{"name":"outer","pid":1,"tid":1,"ts":"#,
            r#""what":"\"a \\\"quoted\\\" word\"","late":"7""#,
            r#""message":"line 1\u000aline 2""#,
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }

        std::fs::write(&files[0], "[\nno event\n{}\n").unwrap();
        let error = merge(&traces, &merged).unwrap_err().to_string();
        assert!(error.contains("trace-0.json") && error.contains("`no event`"), "{error}");
        assert_eq!(merge(&[], &merged).unwrap(), 0);
        assert_eq!(std::fs::read_to_string(&merged).unwrap(), "[]\n");
    }
}
