//! What names mean: vars, axes and their fields, and what only a run knows.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use crate::diagnostic::{Code, Diagnostic, Problems, Span, Spanned, suggest};
use crate::expr::Name;
use crate::plan::{Axes, ClaimField, Hole, Place, ServerField, Text, Value};
use crate::scenario::{AxisValue, Raw, Scope, render};

/// Names that vars and axes cannot have.
pub(super) const RESERVED: [&str; 9] =
    ["port", "url", "dir", "run_dir", "scenario_dir", "server", "servers", "vars", "value"];

/// The vars and axes of a scenario.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Vars in file order.
    pub(super) vars: IndexMap<String, Spanned<Raw>>,
    /// Axes in file order.
    pub(super) axes: IndexMap<String, AxisValues>,
    /// Vars and axes whose values are wrong, which was reported.
    pub(super) broken: HashSet<String>,
    /// Axes that the profile replaced: what is said of values that it left out is no mistake.
    pub(super) replaced: HashSet<String>,
    /// How many bytes were filled in so far.
    pub(super) filled: Cell<usize>,
}

/// How many bytes all templates of a scenario may fill in together.
const MAX_FILLED: usize = 256 << 20;

/// The values of an axis, and the fields that each has.
#[derive(Debug)]
pub(super) struct AxisValues {
    pub(super) values: Vec<AxisValue>,
    /// By value, then field; empty for a list of values.
    pub(super) fields: HashMap<String, HashMap<String, Spanned<Raw>>>,
    pub(super) origin: Span,
}

/// What of a run may be used, beside the directories.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Everything may: where vars are checked, which are used elsewhere.
    pub(super) all: bool,
    /// `dir`.
    pub(super) dir: bool,
    /// `port` and `url` of the server with this id.
    pub(super) own: Option<String>,
    /// `server.…`: a measured server is addressed.
    pub(super) server: bool,
    /// `servers.NAME`: names of needed servers, and ids, to ids.
    pub(super) needs: HashMap<String, String>,
    /// `value` of a claim.
    pub(super) claim: bool,
}

/// What names mean at one place of the scenario.
pub(super) struct Reach<'a> {
    names: &'a Names,
    axes: &'a Axes,
    known: Known,
    /// Vars and fields that were looked up before, so that each is rendered once.
    seen: HashMap<String, Option<Value>>,
    /// How many vars may be used: while a var is rendered, only those before it.
    vars: usize,
    /// While a var or a field of an axis is rendered, no axis is in reach.
    within: bool,
    problems: &'a mut Problems,
}

impl<'a> Reach<'a> {
    pub(super) fn new(names: &'a Names, axes: &'a Axes, known: Known, problems: &'a mut Problems) -> Self {
        let vars = names.vars.len();
        Self { names, axes, known, seen: HashMap::new(), vars, within: false, problems }
    }

    /// The var at `index`, rendered with the vars before it.
    pub(super) fn var(&mut self, index: usize) -> Option<Value> {
        let (name, raw) = self.names.vars.get_index(index)?;
        self.remembered(name.clone(), index, raw)
    }

    fn remembered(&mut self, key: String, vars: usize, raw: &Spanned<Raw>) -> Option<Value> {
        if !self.seen.contains_key(&key) {
            let outer = (self.vars, self.within);
            (self.vars, self.within) = (vars, true);
            let value = render(raw, self);
            (self.vars, self.within) = outer;
            self.seen.insert(key.clone(), value);
        }
        let value = self.seen.get(&key)?.as_ref()?;
        let before = self.names.filled.get();
        self.names.filled.set(before.saturating_add(match value {
            Value::Text(text) => text.len(),
            other => other.weight(),
        }));
        if self.names.filled.get() <= MAX_FILLED {
            return Some(value.clone());
        }
        if before <= MAX_FILLED {
            let message = "templates fill in more than 256 MiB";
            self.problems.push(Diagnostic::error(Code::TooLarge, raw.span, message).label("of which this is a part"));
        }
        None
    }

    fn axis(&mut self, axis: &str, field: Option<&str>, name: &Name, span: Span) -> Option<Value> {
        let names = self.names;
        let values = &names.axes[axis];
        let Some(value) = self.axes.get(axis).filter(|_| !self.within) else {
            let message = format!("`{axis}` has no value here");
            let help = match self.within {
                true => "vars and fields of axes cannot use axes".to_owned(),
                false => format!("expand the entry over it: each = [\"{axis}\"]"),
            };
            self.problems
                .push(Diagnostic::error(Code::UndefinedName, span, message).help(help).also(values.origin, "the axis"));
            return None;
        };
        let Some(field) = field else { return Some(value.into()) };
        let word = value.to_string();
        match values.fields.get(&word).and_then(|fields| fields.get(field)) {
            Some(raw) => self.remembered(format!("{axis}/{word}/{field}"), names.vars.len(), raw),
            None => {
                let known: Vec<&str> =
                    values.fields.values().next().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                let message = format!("`{name}`: the axis `{axis}` has no field `{field}`");
                let help = suggest(field, &known);
                self.problems.push(
                    Diagnostic::error(Code::UndefinedName, span, message).help(help).also(values.origin, "the axis"),
                );
                None
            }
        }
    }

    /// What only a run knows; `None` where `segments` name no such thing.
    fn hole(&self, segments: &[&str]) -> Option<Result<Hole, String>> {
        let known = &self.known;
        let may = |may: bool, hole: Hole, where_: &str| match may || known.all {
            true => Ok(hole),
            false => Err(format!("it is known only {where_}")),
        };
        let own = || known.own.clone().unwrap_or_default();
        let has_own = known.own.is_some();
        let measured = "where a measured server is addressed: requests, and commands that drive servers";
        let hole = match segments {
            ["scenario_dir"] => Ok(Hole::Place(Place::ScenarioDir)),
            ["run_dir"] => Ok(Hole::Place(Place::RunDir)),
            ["dir"] => may(known.dir, Hole::Place(Place::Dir), "in strings of processes and steps"),
            ["port"] => may(has_own, Hole::Port(own()), "in a server's own strings"),
            ["url"] => may(has_own, Hole::Url(own()), "in a server's own strings"),
            ["value"] => may(known.claim, Hole::Claim(ClaimField::Value), "in the text of a claim"),
            ["server", "name"] => may(known.server, Hole::Server(ServerField::Name), measured),
            ["server", "port"] => may(known.server, Hole::Server(ServerField::Port), measured),
            ["server", "url"] => may(known.server, Hole::Server(ServerField::Url), measured),
            ["servers", name, field @ ("port" | "url" | "dir")] => match known.needs.get(*name) {
                Some(id) => Ok(server_hole(field, id.clone())),
                None if known.all => Ok(server_hole(field, (*name).to_owned())),
                None => return None,
            },
            _ => return None,
        };
        Some(hole)
    }

    fn undefined(&self, segments: &[&str], name: &Name, span: Span) -> Diagnostic {
        let undefined = |message: String| Diagnostic::error(Code::UndefinedName, span, message);
        match segments {
            ["servers", server, "port" | "url" | "dir"] => {
                let known: Vec<&str> = self.known.needs.keys().map(String::as_str).collect();
                undefined(format!("`{name}`: `{server}` is no server that is needed here")).help(
                    match known.is_empty() {
                        true => format!("name it in needs = [\"{server}\"]"),
                        false => suggest(server, &known),
                    },
                )
            }
            ["servers", ..] => undefined(format!("`{name}` is not defined"))
                .help("write `servers[\"NAME\"].port`, `.url` or `.dir` of a server that is needed"),
            ["server", ..] => undefined(format!("`{name}` is not defined"))
                .help("there are `server.name`, `server.port` and `server.url`"),
            [first, ..] => {
                let mut known: Vec<&str> = self.names.vars.keys().take(self.vars).map(String::as_str).collect();
                known.extend(self.axes.keys().map(String::as_str));
                known.extend(["scenario_dir", "run_dir"]);
                let may = |name| self.hole(&[name]).is_some_and(|hole| hole.is_ok());
                known.extend(["dir", "port", "url", "value"].into_iter().filter(|name| may(name)));
                undefined(format!("`{first}` is not defined")).help(suggest(first, &known))
            }
            [] => undefined("a name is missing".to_owned()),
        }
    }
}

fn server_hole(field: &str, id: String) -> Hole {
    match field {
        "port" => Hole::Port(id),
        "url" => Hole::Url(id),
        _ => Hole::Dir(id),
    }
}

impl Scope for Reach<'_> {
    fn lookup(&mut self, name: &Name, span: Span) -> Option<Value> {
        let segments = name.segments();
        if let Some(hole) = self.hole(&segments) {
            return match hole {
                Ok(hole) => Some(Value::Text(Text::from(hole))),
                Err(why) => {
                    let message = format!("`{name}` cannot be used here");
                    self.problems.push(Diagnostic::error(Code::MisplacedPlaceholder, span, message).help(why));
                    None
                }
            };
        }
        let names = self.names;
        match segments.as_slice() {
            [axis] if names.axes.contains_key(*axis) => self.axis(axis, None, name, span),
            [axis, field] if names.axes.contains_key(*axis) => self.axis(axis, Some(field), name, span),
            [var] if names.vars.contains_key(*var) => {
                let (index, _, raw) = names.vars.get_full(*var)?;
                if index < self.vars {
                    return self.remembered((*var).to_owned(), index, raw);
                }
                let message = format!("`{var}` is defined only here or further down");
                let cycle = Diagnostic::error(Code::VarsCycle, span, message).also(raw.span, "its definition");
                self.problems.push(cycle.help("a var may use the vars above it"));
                None
            }
            [name, ..] if names.broken.contains(*name) => None,
            _ => {
                let undefined = self.undefined(&segments, name, span);
                self.problems.push(undefined);
                None
            }
        }
    }

    fn problems(&mut self) -> &mut Problems {
        self.problems
    }
}
