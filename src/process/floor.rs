//! Making the launcher small at the moment it spawns: its resident set is the floor under its child's `rss_peak`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};

/// Gives back all memory that can be read again from the program and its libraries.
pub(super) fn shrink() {
    let Ok(maps) = File::open("/proc/self/smaps") else { return };
    let mut mapping = None;
    for line in BufReader::new(maps).lines().map_while(Result::ok) {
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next()) {
            (Some("Anonymous:"), Some("0")) => {
                if let Some((start, end)) = mapping.take() {
                    #[expect(unsafe_code, reason = "madvise takes addresses")]
                    // SAFETY: the range is mapped from a file, not writable, and no page of it differs from the file: what
                    // is touched of it later is read from there again.
                    unsafe {
                        // What is touched again comes back in small pieces, not in huge pages of a large program.
                        let _ = libc::madvise(start as *mut _, end - start, libc::MADV_NOHUGEPAGE);
                        let _ = libc::madvise(start as *mut _, end - start, libc::MADV_DONTNEED);
                    }
                }
            }
            (Some(range), Some(permissions)) if !range.ends_with(':') => {
                let addresses =
                    range.split_once('-').map(|(start, end)| [start, end].map(|hex| usize::from_str_radix(hex, 16)));
                mapping = match addresses {
                    Some([Ok(start), Ok(end)]) if permissions.starts_with("r-") && words.nth(2) != Some("0") => {
                        Some((start, end))
                    }
                    _ => None,
                };
            }
            _ => {}
        }
    }
}

/// Sets the peak of this process' resident set to what it is now.
pub(super) fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// That peak, in bytes.
pub(super) fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    peak.map_or(0, |peak: u64| peak * 1024)
}
