//! Which vars, axes and instances a scenario has.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::catalog::{Instances, MAX_CELLS, combinations};
use super::scope::{AxisValues, Known, Names, RESERVED, Reach};
use crate::diagnostic::{Code, Diagnostic, Problems, Span, Spanned, suggest};
use crate::plan::Axes;
use crate::scenario::{Axis, AxisValue, EntryName, Expand, Keyed, Loaded};
use crate::units::show;

/// The most axis values that all combinations of an entry hold together.
const MAX_VALUES: u128 = 1_000_000;
/// The most exclusions of an entry: each is compared with every combination.
const MAX_EXCLUSIONS: usize = 1_000;

/// The vars and axes of a scenario.
pub(super) fn collect(loaded: &Loaded, problems: &mut Problems) -> Names {
    let scenario = &loaded.scenario;
    let mut names = Names { replaced: loaded.replaced_axes.iter().cloned().collect(), ..Names::default() };
    for var in scenario.vars.iter().flatten() {
        check_reserved(&var.name, problems);
        names.vars.insert(var.name.value.clone(), var.body.raw().clone());
    }
    let mut axes = IndexMap::new();
    for axis in scenario.axes.iter().flatten() {
        check_reserved(&axis.name, problems);
        if let Some(var) = scenario.vars.iter().flatten().find(|var| var.name.value == axis.name.value) {
            let message = format!("`{}` is both a var and an axis", axis.name.value);
            problems.push(Diagnostic::error(Code::Duplicate, axis.name.span, message).also(var.name.span, "the var"));
        }
        let values = axis_values(&axis.body, axis.name.span, &names, problems);
        axes.insert(axis.name.value.clone(), values);
    }
    names.axes = axes;
    names.broken.extend(scenario.vars.iter().flat_map(Keyed::broken).cloned());
    names.broken.extend(scenario.axes.iter().flat_map(Keyed::broken).cloned());
    let named = |name: &Spanned<String>| (name.value.clone(), name.span);
    let servers: HashMap<String, Span> = scenario.servers.iter().flatten().map(|entry| named(&entry.name)).collect();
    for command in scenario.commands.iter().flatten() {
        if let Some(server) = servers.get(&command.name.value) {
            let message = format!("`{}` is both a server and a command", command.name.value);
            problems.push(Diagnostic::error(Code::Duplicate, command.name.span, message).also(*server, "the server"));
        }
    }
    names
}

fn check_reserved(name: &Spanned<String>, problems: &mut Problems) {
    if RESERVED.contains(&name.value.as_str()) {
        let message = format!("`{}` has a meaning of its own in templates", name.value);
        let help = format!("no var or axis can be called {}", RESERVED.join(", "));
        problems.push(Diagnostic::error(Code::InvalidName, name.span, message).help(help));
    }
}

fn axis_values(axis: &Axis, origin: Span, names: &Names, problems: &mut Problems) -> AxisValues {
    let none = Axes::new();
    let (values, fields) = match axis {
        Axis::Values(field) => {
            let values = Reach::new(names, &none, Known::default(), problems).list(Some(field));
            if values.is_empty() && !problems.has_errors() {
                problems.push(Diagnostic::error(Code::EmptyExpansion, field.span(), "an axis has at least one value"));
            }
            (values, HashMap::new())
        }
        Axis::Table(table, span) => {
            if table.iter().next().is_none() && !problems.has_errors() {
                problems.push(Diagnostic::error(Code::EmptyExpansion, *span, "an axis has at least one value"));
            }
            let value = |name: &Spanned<String>| {
                let number = name.value.parse().ok().filter(|number: &i64| number.to_string() == name.value);
                Spanned::new(number.map_or_else(|| AxisValue::Word(name.value.clone()), AxisValue::Number), name.span)
            };
            let values = table.iter().map(|entry| value(&entry.name)).collect();
            let fields = table.iter().map(|entry| {
                let fields = entry.body.iter().map(|field| (field.name.value.clone(), field.body.raw().clone()));
                (entry.name.value.clone(), fields.collect())
            });
            check_fields(table, problems);
            (values, fields.collect())
        }
    };
    let mut distinct: IndexMap<String, Spanned<AxisValue>> = IndexMap::new();
    for value in values {
        match distinct.entry(value.value.to_string()) {
            indexmap::map::Entry::Occupied(first) => {
                let message = format!("`{}` is twice in the axis", value.value);
                let twice = Diagnostic::error(Code::Duplicate, value.span, message);
                problems.push(twice.also(first.get().span, "the first one"));
            }
            indexmap::map::Entry::Vacant(place) => {
                place.insert(value);
            }
        }
    }
    AxisValues { values: distinct.into_values().map(|value| value.value).collect(), fields, origin }
}

type Fields = Keyed<crate::scenario::Word, crate::scenario::Field<crate::plan::Value>>;

/// All entries of an axis have the same fields, and none is called `name`.
fn check_fields(table: &Keyed<crate::scenario::AxisWord, Fields>, problems: &mut Problems) {
    let Some(first) = table.iter().next() else { return };
    for entry in table {
        for field in &entry.body {
            if field.name.value == "name" {
                let message = "`name` is no field: the value's name is the axis itself";
                problems.push(Diagnostic::error(Code::InvalidName, field.name.span, message));
            }
            if matches!(field.body.raw().value, crate::scenario::Raw::Table(_)) {
                problems.push(Diagnostic::error(
                    Code::WrongType,
                    field.body.span(),
                    "a field of an axis cannot be a table",
                ));
            }
            if let crate::scenario::Raw::List(items) = &field.body.raw().value {
                for item in items.iter().filter(|item| !matches!(item.value, crate::scenario::Raw::Text(_))) {
                    let message = "a list in a field of an axis holds strings";
                    problems.push(Diagnostic::error(Code::WrongType, item.span, message));
                }
            }
        }
        let same = |field: &&str| first.body.get(field).is_some();
        let lacking = first.body.names().into_iter().find(|field| entry.body.get(field).is_none());
        let surplus = entry.body.names().into_iter().find(|field| !same(field));
        let difference = lacking.map(|field| format!("lacks the field `{field}`"));
        let difference = difference.or_else(|| surplus.map(|field| format!("has a field `{field}` that others lack")));
        if let Some(difference) = difference {
            let message = format!("`{}` {difference}", entry.name.value);
            let wrong = Diagnostic::error(Code::MissingKey, entry.name.span, message);
            problems.push(
                wrong.also(first.name.span, "compared with this").help("all entries of an axis have the same fields"),
            );
        }
    }
}

/// The instances of every entry of a kind.
pub(super) fn entry_instances<T>(
    kind: &'static str,
    entries: Option<&Keyed<EntryName, T>>,
    expand: impl Fn(&T) -> &Expand,
    names: &Names,
    problems: &mut Problems,
) -> Instances {
    let mut instances = Instances::new(kind);
    for entry in entries.into_iter().flatten() {
        let expansion = expand(&entry.body);
        let axes = each(expansion, names, problems);
        let place = expansion.each.as_ref().map_or(entry.name.span, |each| each.span());
        let combined = match fits(&axes, instances.list().len()) {
            Ok(()) => combinations(&axes, &excluded(expansion, &axes, names, problems)),
            Err(what) => {
                let message = format!("`{}` expands to {what}", entry.name.value);
                problems.push(Diagnostic::error(Code::TooLarge, place, message));
                Vec::new()
            }
        };
        if combined.is_empty() && !problems.has_errors() {
            let message = format!("`{}` expands to nothing: every combination is excluded", entry.name.value);
            problems.push(Diagnostic::error(Code::EmptyExpansion, place, message));
        }
        let axes: Vec<String> = axes.into_iter().map(|(axis, _)| axis).collect();
        instances.add(&entry.name, &axes, combined);
    }
    instances
}

/// Whether all combinations of `axes` can be made, beside the `others` of entries before; else what there are too many of.
fn fits(axes: &[(String, Vec<AxisValue>)], others: usize) -> Result<(), String> {
    let count = axes.iter().map(|(_, values)| values.len() as u128).fold(1, u128::saturating_mul);
    if count > MAX_CELLS as u128 {
        let count = u64::try_from(count).map_or("far".to_owned(), show::count);
        return Err(format!("{count} combinations, more than 100,000"));
    }
    if count + others as u128 > MAX_CELLS as u128 {
        return Err("more than 100,000 combinations with the entries before it".to_owned());
    }
    if count * axes.len() as u128 > MAX_VALUES {
        return Err(format!("{} combinations of {} axes, which is too much", count, axes.len()));
    }
    Ok(())
}

/// The axes that an entry expands over.
fn each(expand: &Expand, names: &Names, problems: &mut Problems) -> Vec<(String, Vec<AxisValue>)> {
    let none = Axes::new();
    let mut axes: Vec<(String, Vec<AxisValue>)> = Vec::new();
    let each: Vec<Spanned<String>> = Reach::new(names, &none, Known::default(), problems).list(expand.each.as_ref());
    for axis in each {
        match names.axes.get(&axis.value) {
            Some(_) if axes.iter().any(|(other, _)| *other == axis.value) => {
                problems.push(Diagnostic::error(
                    Code::Duplicate,
                    axis.span,
                    format!("`{}` is twice in `each`", axis.value),
                ));
            }
            Some(values) => axes.push((axis.value, values.values.clone())),
            None => {
                let known: Vec<&str> = names.axes.keys().map(String::as_str).collect();
                let unknown =
                    Diagnostic::error(Code::UnknownEntry, axis.span, format!("there is no axis `{}`", axis.value));
                problems.push(unknown.help(suggest(&axis.value, &known)));
            }
        }
    }
    axes
}

/// The combinations that an entry leaves out.
fn excluded(expand: &Expand, axes: &[(String, Vec<AxisValue>)], names: &Names, problems: &mut Problems) -> Vec<Axes> {
    let none = Axes::new();
    let mut all = Vec::new();
    if let (Some(exclusions), Some(place)) = (&expand.exclude, expand.given.at("exclude"))
        && exclusions.len() > MAX_EXCLUSIONS
    {
        let message = format!("there are {} exclusions, more than 1,000", show::count(exclusions.len() as u64));
        problems.push(Diagnostic::error(Code::TooLarge, place, message));
        return all;
    }
    for exclusion in expand.exclude.iter().flatten() {
        let mut combination = Axes::new();
        for entry in exclusion {
            let value = entry.body.get(&mut Reach::new(names, &none, Known::default(), problems));
            let Some(value) = value else { continue };
            match axes.iter().find(|(axis, _)| *axis == entry.name.value) {
                None => {
                    let known: Vec<&str> = axes.iter().map(|(axis, _)| axis.as_str()).collect();
                    let message = format!("`{}` is no axis that the entry expands over", entry.name.value);
                    let unknown = Diagnostic::error(Code::UnknownEntry, entry.name.span, message);
                    problems.push(unknown.help(suggest(&entry.name.value, &known)));
                }
                // It excludes nothing of the values that the profile chose.
                Some((axis, values)) if names.replaced.contains(axis) && !values.contains(&value) => {
                    combination.clear();
                    break;
                }
                Some((axis, values)) if !values.contains(&value) => {
                    let known: Vec<String> = values.iter().map(ToString::to_string).collect();
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    let message = format!("`{value}` is no value of the axis `{axis}`");
                    let wrong = Diagnostic::error(Code::InvalidValue, entry.body.span(), message);
                    problems.push(wrong.help(suggest(&value.to_string(), &known)));
                }
                Some(_) => {
                    combination.insert(entry.name.value.clone(), value);
                }
            }
        }
        if !combination.is_empty() {
            all.push(combination);
        }
    }
    all
}
