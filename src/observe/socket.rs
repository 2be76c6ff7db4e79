//! Who listens on a TCP port: `/proc/net/tcp` and `tcp6` for the sockets, `/proc/PID/fd` for who holds them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use super::{Error, read, read_of};

/// The state LISTEN in the kernel's tables.
const LISTEN: &str = "0A";

/// A listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// The address to which it is bound.
    pub address: SocketAddr,
    /// The socket's number: what `/proc/PID/fd` calls `socket:[N]`.
    pub inode: u64,
}

impl Listener {
    /// Whether it takes connections from this machine alone.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.address.ip().to_canonical().is_loopback()
    }

    /// Whether it may take connections that are made to a loopback address.
    fn takes_loopback(&self) -> bool {
        let ip = self.address.ip().to_canonical();
        ip.is_loopback() || ip.is_unspecified()
    }
}

/// A process that holds a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its name, at most 15 bytes as the kernel keeps it.
    pub name: String,
}

/// The listening sockets of a port, sorted by whose they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ownership {
    /// Held by one of the processes in question.
    pub ours: Vec<Listener>,
    /// Held by none of them, though connections to loopback may reach it. Each with who holds it: nobody that may be
    /// looked at, when that is empty.
    pub foreign: Vec<(Listener, Vec<Holder>)>,
}

impl Ownership {
    /// Looks who listens on this port, seen from these processes. Sockets of other addresses of the machine, which no
    /// connection to loopback reaches, are left out unless they are ours.
    ///
    /// # Errors
    /// When the kernel's tables cannot be read.
    pub fn of(port: u16, pids: &[u32]) -> Result<Ownership, Error> {
        let mut ownership = Ownership::default();
        for listener in listeners(port)? {
            if owner(listener.inode, pids).is_some() {
                ownership.ours.push(listener);
            } else if listener.takes_loopback() {
                ownership.foreign.push((listener, holders(listener.inode)));
            }
        }
        Ok(ownership)
    }

    /// Whether a connection to this port can only reach the processes in question.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        !self.ours.is_empty() && self.foreign.is_empty()
    }

    /// Whether all sockets that are ours take connections from this machine alone.
    #[must_use]
    pub fn is_loopback_only(&self) -> bool {
        self.ours.iter().all(Listener::is_loopback)
    }
}

/// The sockets that listen on this port, in the network namespace of the calling process.
///
/// # Errors
/// When `/proc/net/tcp` cannot be read. Without IPv6 there is no `tcp6`, which is no error.
pub fn listeners(port: u16) -> Result<Vec<Listener>, Error> {
    let path = PathBuf::from("/proc/net/tcp");
    let mut found = match read(&path) {
        Ok(text) => parse(&text, port),
        Err(source) => return Err(Error::Unreadable { path, source }),
    };
    if let Ok(text) = read("/proc/net/tcp6") {
        found.extend(parse(&text, port));
    }
    Ok(found)
}

/// Which of these processes holds the socket: the first that does. A process that is gone, or that may not be looked at,
/// holds nothing.
#[must_use]
pub fn owner(inode: u64, pids: &[u32]) -> Option<u32> {
    let wanted = PathBuf::from(format!("socket:[{inode}]"));
    pids.iter().copied().find(|pid| {
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == wanted))
    })
}

/// Every process of the machine that holds the socket, as far as they may be looked at.
#[must_use]
pub fn holders(inode: u64) -> Vec<Holder> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let held = pids.filter(|&pid| owner(inode, &[pid]).is_some());
    held.filter_map(|pid| Some(Holder { pid, name: read_of(pid, "comm").ok()??.trim_end().to_owned() })).collect()
}

/// The listening sockets of a port in the text of `/proc/net/tcp` or `tcp6`. A line that does not read as expected is
/// passed over; a socket that comes twice (the table changed while it was read) is taken once.
fn parse(text: &str, port: u16) -> Vec<Listener> {
    let mut found: Vec<Listener> = Vec::new();
    let suffix = format!(":{port:04X}");
    for line in text.lines().skip(1) {
        let mut fields = line.split_whitespace();
        let (Some(local), Some(state)) = (fields.nth(1), fields.nth(1)) else { continue };
        let Some(host) = local.strip_suffix(suffix.as_str()).filter(|_| state == LISTEN) else { continue };
        let (Some(ip), Some(inode)) = (ip(host), fields.nth(5).and_then(|inode| inode.parse().ok())) else { continue };
        if found.iter().all(|known| known.inode != inode) {
            found.push(Listener { address: SocketAddr::new(ip, port), inode });
        }
    }
    found
}

/// An address as the kernel prints it: words of 32 bits in the machine's byte order, in hexadecimal.
fn ip(hexadecimal: &str) -> Option<IpAddr> {
    let mut bytes = [0; 16];
    let words = hexadecimal.len() / 8;
    if !hexadecimal.is_ascii() || !hexadecimal.len().is_multiple_of(8) || words > 4 {
        return None;
    }
    for (word, place) in (0..words).zip(bytes.chunks_exact_mut(4)) {
        let value = u32::from_str_radix(&hexadecimal[word * 8..word * 8 + 8], 16).ok()?;
        place.copy_from_slice(&value.to_ne_bytes());
    }
    match words {
        1 => Some(IpAddr::from(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))),
        4 => Some(IpAddr::from(Ipv6Addr::from(bytes))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000 100 0 0 10 0
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0000 20 4 30 10 -1
   2: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0000 100 0 0 10 0
   3: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4714 1 0000 100 0 0 10 0
   4: 0100007F:1F90 00000000:0000 0A
   5: garbage
   6: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 4715 1 0
   7: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 4716 1 0
";

    #[cfg(target_endian = "little")]
    #[test]
    fn listening_sockets_are_read_from_the_table() {
        let found = parse(TABLE, 8080);
        let read: Vec<_> = found.iter().map(|l| (l.address.to_string(), l.inode, l.is_loopback())).collect();
        let expected = [
            ("127.0.0.1:8080".to_owned(), 4711, true),
            ("0.0.0.0:8080".to_owned(), 4713, false),
            ("[::1]:8080".to_owned(), 4715, true),
            ("[::ffff:127.0.0.1]:8080".to_owned(), 4716, true),
        ];
        assert_eq!(read, expected);
    }

    proptest::proptest! {
        #[test]
        fn no_table_is_a_reason_to_panic(text in "\\PC*\n[ 0-9A-F:]{0,80}0A[ 0-9A-F:]{0,80}", port: u16) {
            let _ = parse(&text, port);
        }
    }
}
