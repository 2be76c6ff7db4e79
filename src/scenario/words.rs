//! The words that keys take: each an enum, with the nearest word as help for a wrong one.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::field::{FromValue, plain_text};
use super::value::Value;
use crate::diagnostic::{Code, Diagnostic, Problems, Span, suggest};

/// Declares an enum of the words that a key takes.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident: $what:literal { $($(#[$word_meta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$word_meta])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// The words, in the order of the documentation.
            pub const WORDS: &'static [&'static str] = &[$($word),*];
        }

        impl FromValue for $name {
            fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
                let word = plain_text($what, &value, span, problems)?;
                match word.as_str() {
                    $($word => Some(Self::$variant),)*
                    other => {
                        let message = format!("`{other}` is no {}", $what);
                        problems.push(Diagnostic::error(Code::InvalidValue, span, message).help(suggest(other, Self::WORDS)));
                        None
                    }
                }
            }

            fn schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "enum": Self::WORDS })
            }
        }
    };
}

words! {
    /// In which order the turns of a group are executed.
    Order: "order" {
        /// A B, B A, A B, …
        Balanced = "balanced",
        /// A B, A B, …
        Alternating = "alternating",
        /// A permutation a round, from the seed.
        Shuffled = "shuffled",
        /// A A, B B.
        Grouped = "grouped",
    }
}

words! {
    /// The state of the caches of a measure.
    CacheState: "state of a cache" {
        /// Cleared and proved empty before every run.
        Cold = "cold",
        /// Proved filled before every measured run.
        Warm = "warm",
    }
}

words! {
    /// What of an answer is compared over servers.
    SameAnswer: "part of an answer" {
        /// The status code.
        Status = "status",
        /// The headers.
        Headers = "headers",
        /// The body.
        Body = "body",
    }
}

words! {
    /// What of an answer is kept.
    Record: "part of an answer" {
        /// The headers.
        Headers = "headers",
        /// The first 1,024 bytes of the body.
        Body = "body",
    }
}

words! {
    /// A stream that a check compares.
    SameStream: "stream" {
        /// Standard output.
        Stdout = "stdout",
        /// Standard error.
        Stderr = "stderr",
    }
}

words! {
    /// Where a command's standard output goes.
    Stdout: "place for stdout" {
        /// Into a file, read after the run.
        File = "file",
        /// Nowhere.
        Null = "null",
    }
}

words! {
    /// The protocol of a load.
    Protocol: "protocol" {
        /// HTTP/1.1.
        Http1 = "http/1.1",
        /// HTTP/2.
        Http2 = "h2",
    }
}

words! {
    /// A direction that is good.
    Better: "direction" {
        /// Less.
        Lower = "lower",
        /// More.
        Higher = "higher",
    }
}

words! {
    /// When a server is asked for a value.
    At: "time" {
        /// When it is ready, before the probes.
        Idle = "idle",
        /// After its last run.
        After = "after",
    }
}

words! {
    /// Which match of a pattern counts.
    Pick: "match" {
        /// The first.
        First = "first",
        /// The last.
        Last = "last",
        /// How many there are.
        Count = "count",
        /// The sum of all.
        Sum = "sum",
    }
}

words! {
    /// A signal that stops a server.
    Signal: "signal" {
        /// Please end.
        Term = "TERM",
        /// As Ctrl-C.
        Int = "INT",
        /// As Ctrl-\.
        Quit = "QUIT",
        /// The terminal is gone.
        Hup = "HUP",
        /// For the program's own use.
        Usr1 = "USR1",
        /// For the program's own use.
        Usr2 = "USR2",
        /// At once.
        Kill = "KILL",
    }
}
