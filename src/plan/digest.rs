//! The digest of a plan: what makes two runs runs of the same.

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

/// SHA-256 of the canonical JSON of `value`, in hex.
pub(super) fn of(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or(Json::Null);
    let mut text = Vec::new();
    canonical(&json, &mut text);
    Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes `json` with keys sorted and no white space.
fn canonical(json: &Json, out: &mut Vec<u8>) {
    match json {
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                scalar(key, out);
                out.push(b':');
                canonical(value, out);
            }
            out.push(b'}');
        }
        Json::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                canonical(item, out);
            }
            out.push(b']');
        }
        other => scalar(other, out),
    }
}

fn scalar(value: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
    // Memory can be written to, and a scalar is always JSON.
    let _ = serde_json::to_writer(out, value);
}
