//! The digest of a plan: what makes two runs runs of the same.

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

/// SHA-256 of the canonical JSON of `value`, in hex.
pub(super) fn of(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or(Json::Null);
    let mut text = String::new();
    canonical(&json, &mut text);
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes `json` with keys sorted and no white space.
fn canonical(json: &Json, out: &mut String) {
    match json {
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Json::from(key.as_str()).to_string());
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}
