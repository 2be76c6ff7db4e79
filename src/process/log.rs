//! The end of a log, for people.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The most that is read for it.
const READ: u64 = 64 << 10;

/// The last lines of a log: control characters and those that turn the direction of writing are escaped, tabs kept, bytes
/// that are no UTF-8 replaced. At most the last 64 KiB are looked at.
///
/// # Errors
/// When the file cannot be read.
pub fn ending(log: &Path, lines: usize) -> io::Result<Vec<String>> {
    let mut file = File::open(log)?;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(READ)))?;
    let mut end = Vec::new();
    file.take(READ).read_to_end(&mut end)?;
    let end = String::from_utf8_lossy(&end);
    let all = end.lines().collect::<Vec<_>>();
    Ok(all[all.len().saturating_sub(lines)..].iter().map(|line| shown(line)).collect())
}

fn shown(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\t' => shown.push('\t'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => shown.extend(character.escape_unicode()),
            _ if character.is_control() && character.is_ascii() => {
                let _ = write!(shown, "\\x{:02x}", u32::from(character));
            }
            _ if character.is_control() => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}
