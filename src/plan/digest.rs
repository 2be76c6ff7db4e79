//! The digest of a plan: what makes two runs runs of the same.

use std::io;

use sha2::{Digest as _, Sha256};

/// SHA-256 of the canonical JSON of `value`, in hex: no white space, keys in the order of the schema, entries in that of
/// the file.
pub(super) fn of(value: &impl serde::Serialize) -> String {
    let mut hash = Hash(Sha256::new());
    // A hash takes everything, and a plan has only string keys.
    let _ = serde_json::to_writer(io::BufWriter::with_capacity(1 << 16, &mut hash), value);
    hash.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Hash(Sha256);

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
