//! The check that no NaN and no infinity reaches a file: `serde_json` makes `null` of them without a word.
//!
//! A result has `null` in few places, all of them of texts; wherever else one stands, a number was lost. (An option that is
//! `None` is left out of the file.)

use serde_json::Value as Json;
use thiserror::Error;

/// A number that is NaN or infinite, by its place, such as `summaries[3].mean`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0} is no finite number and cannot be written")]
pub struct NotFinite(pub String);

/// The keys whose texts may be `null`: `cells[].driver`, the values of `subjects[].environment` and of `parity[].values`.
const TEXTS: [&str; 3] = ["driver", "environment", "values"];

/// Looks for a number that was lost; `place` is that of `json`.
pub(super) fn check(json: &Json, place: &str) -> Result<(), NotFinite> {
    match json {
        Json::Null => Err(NotFinite(place.to_owned())),
        Json::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| check(item, &format!("{place}[{index}]")))
        }
        Json::Object(entries) => {
            let dot = if place.is_empty() { "" } else { "." };
            let mut numbers = entries.iter().filter(|(key, _)| !TEXTS.contains(&key.as_str()));
            numbers.try_for_each(|(key, value)| check(value, &format!("{place}{dot}{key}")))
        }
        Json::Bool(_) | Json::Number(_) | Json::String(_) => Ok(()),
    }
}
