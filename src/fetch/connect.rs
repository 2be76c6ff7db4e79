//! Connections without a request: is a server ready, is a port taken?

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use super::{Error, Progress};

/// How long [`answers`] waits for each address. On loopback an answer takes microseconds; only a server whose queue is
/// full takes longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Connects and drops the connection.
///
/// # Errors
/// `Refused`, `Timeout`, `Reset` or `Unreachable`.
pub fn connect(address: SocketAddr, timeout: Duration) -> Result<(), Error> {
    // std refuses a limit of zero.
    let stream = TcpStream::connect_timeout(&address, timeout.max(Duration::from_nanos(1))).map_err(|source| {
        let address = address.to_string();
        match source.kind() {
            io::ErrorKind::TimedOut => Error::Timeout { address, limit: timeout, progress: Progress::Connecting },
            _ => failure(address, source),
        }
    })?;
    if is_own_echo(stream.local_addr(), stream.peer_addr()) {
        return Err(Error::Refused { address: address.to_string() });
    }
    Ok(())
}

/// The loopback address (IPv4 first, then IPv6) at which something takes connections on this port, if there is one. A
/// server that is too busy to take one within half a second counts: only a refusal shows that nothing is there.
#[must_use]
pub fn answers(port: u16) -> Option<SocketAddr> {
    let loopback = [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))];
    loopback.into_iter().find(|&address| {
        matches!(connect(address, PATIENCE), Ok(()) | Err(Error::Timeout { .. } | Error::Reset { .. }))
    })
}

/// Sorts a failure to connect.
pub(super) fn failure(address: String, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => Error::Refused { address },
        io::ErrorKind::ConnectionReset => Error::Reset { address, progress: Progress::Connecting },
        _ => Error::Unreachable { address, source },
    }
}

/// Whether a connection is one with itself: where nothing listens on a port of the kernel's ephemeral range, the kernel
/// may give that very port to the connecting end, and TCP lets the two meet.
pub(super) fn is_own_echo(local: io::Result<SocketAddr>, peer: io::Result<SocketAddr>) -> bool {
    matches!((local, peer), (Ok(local), Ok(peer)) if local == peer)
}
