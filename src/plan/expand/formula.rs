//! Expressions of measures and claims: parsed, their names checked against what a run has.

use std::collections::HashSet;
use std::ops::Range;

use super::Expander;
use crate::diagnostic::{Code, Diagnostic, Span, Spanned};
use crate::expr::expression::Signature;
use crate::expr::{Expression, Kind};
use crate::plan::{Formula, Value};
use crate::scenario;

impl Expander<'_> {
    /// A parsed expression of this kind, if it is one.
    pub(super) fn formula(
        &mut self,
        text: &Spanned<String>,
        kind: Option<Kind>,
        calls: &[Signature],
    ) -> Option<Formula> {
        let place = |at: Range<usize>| scenario::within(self.sources.slice(text.span), text.span, at);
        match Expression::parse(&text.value, calls) {
            Ok(parsed) if kind.is_none_or(|kind| kind == parsed.kind()) => {
                Some(Formula { text: text.value.clone(), parsed })
            }
            Ok(_) => {
                let (message, help) = match kind {
                    Some(Kind::Truth) => {
                        ("a comparison is expected, not a number", "write such as `errors.total == 0`")
                    }
                    _ => ("a number is expected, not a comparison", "write such as `throughput / cpu.cores`"),
                };
                self.problems.push(Diagnostic::error(Code::InvalidExpression, text.span, message).help(help));
                None
            }
            Err(error) => {
                let wrong = Diagnostic::error(Code::InvalidExpression, place(error.at), error.message);
                self.problems.push(wrong.maybe_help(error.help));
                None
            }
        }
    }

    /// Says of every name in a formula that is neither a metric in `metrics` nor a numeric var what is wrong with it.
    pub(super) fn check_formula(&mut self, formula: &Formula, span: Span, metrics: &HashSet<String>) {
        for (name, at) in formula.parsed.names() {
            let place = scenario::within(self.sources.slice(span), span, at);
            match name.strip_prefix("vars.") {
                Some(var) => self.check_var(var, place),
                None if metrics.contains(name) => {}
                None => {
                    let mut known: Vec<&str> = metrics.iter().map(String::as_str).collect();
                    known.sort_unstable();
                    self.unknown_metric(name, place, &known);
                }
            }
        }
    }

    fn check_var(&mut self, var: &str, place: Span) {
        let value = self.var_value(var);
        match value {
            Some(Value::Integer(_) | Value::Float(_)) => {}
            Some(other) => {
                let message = format!("`vars.{var}` is {}, and an expression is over numbers", other.kind());
                self.problems.push(Diagnostic::error(Code::InvalidExpression, place, message));
            }
            None if self.names.vars.contains_key(var) => {}
            None => {
                let known: Vec<&str> = self.names.vars.keys().map(String::as_str).collect();
                let unknown = Diagnostic::error(Code::UndefinedName, place, format!("there is no var `{var}`"));
                self.problems.push(unknown.help(crate::diagnostic::suggest(var, &known)));
            }
        }
    }

    fn var_value(&mut self, var: &str) -> Option<Value> {
        let index = self.names.vars.get_index_of(var)?;
        let axes = crate::plan::Axes::new();
        self.reach(&axes, super::Known { all: true, ..super::Known::default() }).var(index)
    }

    /// A share of 1, read from a percentage such as `"2%"`.
    pub(super) fn percentage(
        &mut self,
        text: Option<&scenario::Field<String>>,
        axes: &crate::plan::Axes,
    ) -> Option<f64> {
        let field = text?;
        let text = field.get(&mut self.reach(axes, super::Known::default()))?;
        let share =
            text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok()).map(|number| number / 100.0);
        match share.filter(|share| *share > 0.0 && *share < 1.0) {
            Some(share) => Some(share),
            None => {
                self.invalid(
                    field.span(),
                    format!("`{text}` is no percentage between 0 and 100: write such as \"2%\""),
                );
                None
            }
        }
    }
}
