//! The stable codes. They stand in messages, in the log and in `docs/diagnostics.md`: first those of `validate` and `plan`,
//! then those of a run.

macro_rules! codes {
    ($($variant:ident $name:literal $about:literal,)*) => {
        /// What kind of thing is wrong: a stable code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $about] $variant,)*
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name, kebab case.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// What it means, one phrase.
            #[must_use]
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => $about),* }
            }
        }
    };
}

impl Code {
    /// Whether only a run raises it: `validate` and `plan` never do.
    #[must_use]
    pub fn at_run(self) -> bool {
        self >= Self::NotYet
    }
}

codes! {
    Syntax "syntax" "the file is not TOML",
    UnknownKey "unknown-key" "a key that this table does not have",
    WrongType "wrong-type" "a value of another type than the key takes",
    InvalidValue "invalid-value" "a value that the key cannot have",
    MissingKey "missing-key" "a key that must be there is not",
    Conflict "conflict" "keys that exclude each other, or that make no sense together",
    InvalidName "invalid-name" "a name that entries, vars or axes cannot have",
    Duplicate "duplicate" "a name defined twice",
    UnsupportedFormat "unsupported-format" "the file does not begin with a `format` that this program reads",
    UnreadableFile "unreadable-file" "a file cannot be read, or may not be",
    IncludeCycle "include-cycle" "files that include each other in a circle",
    VarsCycle "vars-cycle" "a var that uses itself or a later one",
    NeedsCycle "needs-cycle" "servers that need each other in a circle",
    TemplateSyntax "template-syntax" "a template that is not a name or a string literal",
    UndefinedName "undefined-name" "a name in a template that nothing defines",
    MisplacedPlaceholder "misplaced-placeholder" "a value that only a run knows, where it cannot be used",
    UnknownEntry "unknown-entry" "a server, command, probe, load, cache or axis that is not defined",
    UnknownOverride "unknown-override" "a profile or `--set` replaces what does not exist",
    UnknownProfile "unknown-profile" "a profile that is not defined",
    InvalidPattern "invalid-pattern" "a regular expression or JSON path that does not compile",
    InvalidExpression "invalid-expression" "an expression that does not parse or is of the wrong type",
    UnknownMetric "unknown-metric" "a metric that the runs of this measure do not have",
    EmptyExpansion "empty-expansion" "an expansion or a join that leaves nothing",
    AmbiguousJoin "ambiguous-join" "a join that leaves more than the one that is needed",
    TooLarge "too-large" "an expansion, a string or a plan over its limit",
    NothingToRun "nothing-to-run" "a scenario without measures, checks or setup",
    NotYet "not-yet" "a key that this version validates and plans, but does not execute",
    OutputUnwritable "output-unwritable" "the results cannot be written",
    SetupFailed "setup-failed" "a setup step failed",
    ToolFailed "tool-failed" "a tool failed or is not the one that is expected",
    ProgramMissing "program-missing" "a program does not exist or cannot be executed",
    CertificatesUnreadable "certificates-unreadable" "the certificates that a server's `tls` trusts cannot be read",
    StepFailed "step-failed" "a `before` or `after` step failed",
    PortTaken "port-taken" "something answers on a server's port before it is started",
    ServerExited "server-exited" "a server ended while it should be serving",
    ServerNotReady "server-not-ready" "a server did not get ready in time",
    ServerNotOurs "server-not-ours" "the process that answers is not the one that was started",
    ServerLeftBehind "server-left-behind" "a server's port is still taken after it was stopped",
    ProbeFailed "probe-failed" "an answer is not what the probe expects, or there was none",
    CommandFailed "command-failed" "a command did not do what is expected of it",
    RequireFailed "require-failed" "what a measure requires of every run does not hold",
    LoadFailed "load-failed" "the load generator could not do its work",
    WorkspaceFailed "workspace-failed" "a workspace could not be made",
}
