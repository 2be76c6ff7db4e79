//! Values that are taken out of a run.

use super::decode::table;
use super::field::Field;
use super::kinds::{JsonPath, Pattern};
use super::value::{Text, Value};
use super::words::{Better, Pick};

table! {
    /// A value taken out of a run: of text by `stdout`, `stderr`, or `file` with `regex`; of JSON by `stdout_json`, or `file`
    /// with `json`; of the file system by `size`, `sha256` or `entries`. With a unit it is a metric, without a fact.
    Capture {
        /// A pattern that finds it in stdout: its group `value`, else its first group.
        stdout: Field<Pattern>,
        /// A pattern that finds it in stderr.
        stderr: Field<Pattern>,
        /// A JSON path that finds it in stdout.
        stdout_json: Field<JsonPath>,
        /// A file that the run left, relative to the run's directory; with `regex` or `json`.
        file: Field<Text>,
        /// A pattern that finds it in `file`.
        regex: Field<Pattern>,
        /// A JSON path that finds it in `file`.
        json: Field<JsonPath>,
        /// Its value is the size in bytes of this file or directory, as `du -sb` counts.
        size: Field<Text>,
        /// Its value is the SHA-256 of this file.
        sha256: Field<Text>,
        /// Its value is the number of entries below this directory.
        entries: Field<Text>,
        /// Which match counts: `"first"` (default), `"last"`, `"count"` or `"sum"`.
        pick: Field<Pick>,
        /// Its unit: a time, a size, `"1/s"`, `"%"` or a free word. It makes it a number and a metric.
        unit: Field<String>,
        /// Which direction is good.
        better: Field<Better>,
        /// How coarse its clock is.
        step: Field<Value>,
        /// True where no noise is expected.
        exact: Field<bool>,
        /// True where a run without it is no failure.
        optional: Field<bool>,
        /// Its value where nothing is found.
        default: Field<Value>,
    }
}
