//! Which instances each entry expands to, and how names, ids, globs and joins choose among them. Nothing is rendered here.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::diagnostic::{Code, Diagnostic, Problems, Span, Spanned, suggest};
use crate::plan::Axes;
use crate::scenario::AxisValue;

/// The most cells, and the most instances of one kind of entry.
pub(super) const MAX_CELLS: usize = 100_000;
/// How many instances references may look at in all, per kind of entry. It bounds time, not what a scenario needs: 100,000
/// cells with 50 references each are within it.
const MAX_WORK: usize = 5_000_000;

/// One of the combinations that an entry expands to.
#[derive(Debug, Clone)]
pub(super) struct Instance {
    pub(super) id: String,
    /// The index of its entry in the file.
    pub(super) entry: usize,
    pub(super) axes: Axes,
}

/// The instances of one kind of entry.
#[derive(Debug, Default)]
pub(super) struct Instances {
    /// What it is, for messages: `server`.
    kind: &'static str,
    list: Vec<Instance>,
    /// Name, axes and range in `list` of each entry.
    entries: Vec<EntryRange>,
    by_id: HashMap<String, usize>,
    by_name: HashMap<String, usize>,
    indexes: RefCell<HashMap<IndexKey, Rc<Index>>>,
    work: Cell<usize>,
    reported: Cell<bool>,
}

#[derive(Debug)]
struct EntryRange {
    name: String,
    axes: Vec<String>,
    first: usize,
    end: usize,
}

/// An entry, and the axes that it shares with what it is joined to.
type IndexKey = (usize, Vec<String>);
/// The values of these axes to the instances that have them.
type Index = HashMap<Vec<AxisValue>, Vec<usize>>;

impl Instances {
    pub(super) fn new(kind: &'static str) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Adds what an entry expands to; `axes` are the names in its `each`.
    pub(super) fn add(&mut self, name: &str, axes: &[String], combinations: Vec<Axes>) {
        let entry = self.entries.len();
        let first = self.list.len();
        for axes in combinations {
            let mut id = name.to_owned();
            for value in axes.values() {
                id.push('/');
                id.push_str(&value.to_string());
            }
            self.by_id.insert(id.clone(), self.list.len());
            self.list.push(Instance { id, entry, axes });
        }
        self.by_name.insert(name.to_owned(), entry);
        self.entries.push(EntryRange { name: name.to_owned(), axes: axes.to_vec(), first, end: self.list.len() });
    }

    pub(super) fn list(&self) -> &[Instance] {
        &self.list
    }

    pub(super) fn get(&self, index: usize) -> &Instance {
        &self.list[index]
    }

    pub(super) fn find(&self, id: &str) -> Option<&Instance> {
        self.index(id).map(|index| &self.list[index])
    }

    /// The index in `list` of the instance with this id.
    pub(super) fn index(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    pub(super) fn name_of(&self, instance: &Instance) -> &str {
        &self.entries[instance.entry].name
    }

    /// The instances that `reference` names and whose values agree with `axes` where they share any, in file order.
    /// A reference that names nothing at all is a problem, and gives `None`; one that the join leaves nothing of is not.
    pub(super) fn select(
        &self,
        reference: &Spanned<String>,
        axes: &Axes,
        problems: &mut Problems,
    ) -> Option<Vec<usize>> {
        let text = reference.value.as_str();
        if self.exhausted() {
            if !self.reported.replace(true) {
                let message = format!("the references to {}s are too many, or choose too much", self.kind);
                problems.push(Diagnostic::error(Code::TooLarge, reference.span, message));
            }
            return None;
        }
        let selected = if let Some(entry) = self.by_name.get(text) {
            self.joined(*entry, axes)
        } else if let Some(index) = self.by_id.get(text) {
            Some(*index).filter(|index| agrees(&self.list[*index].axes, axes)).into_iter().collect()
        } else {
            let all = if text.contains('*') { 0..self.list.len() } else { 0..0 };
            self.work.set(self.work.get() + all.len() / 8);
            let named: Vec<usize> = all.filter(|index| glob(text, &self.list[*index].id)).collect();
            if named.is_empty() {
                problems.push(self.unknown(text, reference.span));
                return None;
            }
            named.into_iter().filter(|index| agrees(&self.list[*index].axes, axes)).collect()
        };
        self.work.set(self.work.get() + 1 + selected.len());
        Some(selected)
    }

    /// The indexes of the entries of which `text` names an instance.
    pub(super) fn named(&self, text: &str) -> Vec<usize> {
        if let Some(entry) = self.by_name.get(text) {
            return vec![*entry];
        }
        if !text.contains('*') || self.exhausted() {
            return self.find(text).map(|instance| instance.entry).into_iter().collect();
        }
        self.work.set(self.work.get() + self.list.len() / 8);
        let mut entries: Vec<usize> =
            self.list.iter().filter(|instance| glob(text, &instance.id)).map(|instance| instance.entry).collect();
        entries.dedup();
        entries
    }

    /// Whether references have looked at too much: nothing more is selected, and the next one is reported.
    pub(super) fn exhausted(&self) -> bool {
        self.work.get() > MAX_WORK
    }

    fn unknown(&self, text: &str, span: Span) -> Diagnostic {
        let names: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        let ids = self.list.iter().map(|instance| instance.id.as_str());
        let known = if text.contains('/') && !self.list.is_empty() { ids.take(1000).collect() } else { names.clone() };
        let message = match text.contains('*') {
            true => format!("`{text}` matches no {}", self.kind),
            false => format!("there is no {} `{text}`", self.kind),
        };
        let help = match names.is_empty() {
            true => format!("the scenario defines no {}", self.kind),
            false => suggest(text, &known),
        };
        Diagnostic::error(Code::UnknownEntry, span, message).help(help)
    }

    /// The instances of an entry that agree with `axes`, by an index over the axes that both have.
    fn joined(&self, entry: usize, axes: &Axes) -> Vec<usize> {
        let range = &self.entries[entry];
        let shared: Vec<String> = range.axes.iter().filter(|axis| axes.contains_key(*axis)).cloned().collect();
        if shared.is_empty() {
            return (range.first..range.end).collect();
        }
        let values: Vec<AxisValue> = shared.iter().map(|axis| axes[axis].clone()).collect();
        let index = Rc::clone(self.indexes.borrow_mut().entry((entry, shared.clone())).or_insert_with(|| {
            let mut index = Index::new();
            for at in range.first..range.end {
                let key = shared.iter().map(|axis| self.list[at].axes[axis].clone()).collect();
                index.entry(key).or_default().push(at);
            }
            Rc::new(index)
        }));
        index.get(&values).cloned().unwrap_or_default()
    }
}

/// Whether the values agree on the axes that both have.
fn agrees(a: &Axes, b: &Axes) -> bool {
    a.iter().all(|(axis, value)| b.get(axis).is_none_or(|other| other == value))
}

/// Whether `text` matches a pattern in which `*` stands for any characters.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

/// Every combination of the values of `axes`, the last axis fastest, without those that `excluded` names.
pub(super) fn combinations(axes: &[(String, Vec<AxisValue>)], excluded: &[Axes]) -> Vec<Axes> {
    let mut all = vec![Axes::new()];
    for (axis, values) in axes {
        let longer = all.iter().flat_map(|combination| {
            values.iter().map(move |value| {
                let mut combination = combination.clone();
                combination.insert(axis.clone(), value.clone());
                combination
            })
        });
        all = longer.collect();
    }
    let out = |axes: &Axes| {
        excluded.iter().any(|excluded| excluded.iter().all(|(axis, value)| axes.get(axis) == Some(value)))
    };
    all.retain(|axes| !out(axes));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        assert!(glob("express/*", "express/bun"));
        assert!(glob("*", "a/b"));
        assert!(glob("a*c*e", "abcde"));
        assert!(!glob("a*c", "abcd"));
        assert!(!glob("ab*ba", "aba"));
    }

    #[test]
    fn combinations_come_with_the_last_axis_fastest() {
        let axis =
            |name: &str, values: &[i64]| (name.to_owned(), values.iter().map(|v| AxisValue::Number(*v)).collect());
        let excluded = Axes::from([("a".to_owned(), AxisValue::Number(2)), ("b".to_owned(), AxisValue::Number(3))]);
        let all = combinations(&[axis("a", &[1, 2]), axis("b", &[3, 4])], &[excluded]);
        let shown: Vec<String> = all.iter().map(|axes| axes.values().map(ToString::to_string).collect()).collect();
        assert_eq!(shown, ["13", "14", "24"]);
    }
}
