//! The scenario language: text in, a typed [`Scenario`] out, or every problem of its files in one pass.
//!
//! [`load`] reads a file and what it includes, merges them, applies a profile and `--set`, and decodes each table on its
//! own. A scenario may still be wrong in what its names and templates mean: `plan` finds that when it expands it.
//! To add a key, add a field with its description to the table it belongs to (`process`, `server`, `http`, `measure`,
//! `file`): decoding, schema and suggestions follow. Then make `plan` use it; a key that is read and ignored is a defect.

mod capture;
mod decode;
mod field;
mod file;
mod http;
mod kinds;
mod measure;
mod node;
mod process;
mod server;
mod source;
pub mod value;
mod words;

pub use capture::Capture;
pub use decode::{AxisWord, Date, Entry, EntryName, Given, KeyKind, Keyed, Word};
pub use field::{Field, FromValue, MAX_STRING, Raw, RawPart, Scope, render, within};
pub use file::{Axis, Cache, Clear, Defaults, Environment, Machine, Profile, Reference, Scenario};
pub use http::{
    AnswerExpect, ChunkTable, Chunked, Load, LoadExpect, LoadRequest, Probe, Repeat, Request, RequestLine,
    RequestTable, UrlBase,
};
pub use kinds::{
    Argv, AxisValue, Cpus, JsonPath, LongerThanZero, Method, Natural, OneLine, Pattern, Port, Positive, Size, Status,
    UrlPath, Whole,
};
pub use measure::{Claim, Derive, Measure, SameValues, Until, Warmup, WarmupTable, Workspace};
pub use process::{Check, Command, Expand, Expect, Process, References, Stdin, StdinFile, Step, StepTable, Tool};
pub use server::{Builtin, Ready, Server, ServerCapture, Stop, Tls};
pub use source::{Loaded, Options, load};
pub use words::{At, Better, CacheState, Order, Pick, Protocol, Record, SameAnswer, SameStream, Signal, Stdout};
