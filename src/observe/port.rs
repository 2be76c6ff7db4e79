//! A port that a server can be told to listen on.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use super::{Error, read};

/// Below it stand the well-known services.
const LOWEST: u16 = 10000;
/// Below it a port needs a privilege.
const LOWEST_UNPRIVILEGED: u16 = 1024;

/// Where the next search begins: at random, so that two programs do not try the same ports, and on from there.
static NEXT: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(rand::random()));

/// A TCP port that is free on every address of this machine, IPv4 and IPv6, also of connections that are still closing:
/// it was bound for a moment to see that. It lies outside the range from which the kernel takes ports for clients, so
/// that none of them comes in between; only where that range leaves nothing from 1024 on, inside. Calls go through the
/// ports one after another, so a port comes again only after all others.
///
/// # Errors
/// [`Error::NoPort`] when all are taken.
pub fn free_port() -> Result<u16, Error> {
    let candidates = candidates(ephemeral());
    let count: u32 = candidates.iter().map(|range| range.len() as u32).sum();
    for _ in 0..count {
        let nth = NEXT.fetch_add(1, Ordering::Relaxed) % count;
        if let Some(port) = candidates.iter().cloned().flatten().nth(nth as usize)
            && is_free(port)
        {
            return Ok(port);
        }
    }
    Err(Error::NoPort)
}

/// The kernel's range for clients, which IPv6 shares.
fn ephemeral() -> Option<RangeInclusive<u16>> {
    let text = read("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let (first, last) = text.trim().split_once(char::is_whitespace)?;
    Some(first.parse().ok()?..=last.trim().parse().ok()?)
}

fn candidates(ephemeral: Option<RangeInclusive<u16>>) -> Vec<RangeInclusive<u16>> {
    // Without a word of the kernel, its default.
    let taken = ephemeral.unwrap_or(32768..=60999);
    for lowest in [LOWEST, LOWEST_UNPRIVILEGED] {
        let below = lowest..=taken.start().saturating_sub(1);
        let above = taken.end().saturating_add(1).max(lowest)..=u16::MAX;
        let mut outside = Vec::from([below]);
        if *taken.end() < u16::MAX {
            outside.push(above);
        }
        outside.retain(|range| !range.is_empty());
        if !outside.is_empty() {
            return outside;
        }
    }
    Vec::from([LOWEST..=u16::MAX])
}

fn is_free(port: u16) -> bool {
    // Bound to the IPv6 wildcard, a socket that takes IPv4 too meets everyone who has this port.
    match try_bind(AddressFamily::INET6, SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => false,
        // There is no IPv6 here.
        Err(_) => try_bind(AddressFamily::INET, SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).is_ok(),
    }
}

/// Binds, without the reuse of addresses that std's listeners ask for, and lets go.
fn try_bind(family: AddressFamily, address: SocketAddr) -> io::Result<()> {
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if family == AddressFamily::INET6 {
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    Ok(bind(&socket, &address)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_outside_the_kernels_range() {
        assert_eq!(candidates(Some(32768..=60999)), [10000..=32767, 61000..=65535]);
        assert_eq!(candidates(None), [10000..=32767, 61000..=65535]);
        assert_eq!(candidates(Some(9000..=65000)), [65001..=65535]);
        assert_eq!(candidates(Some(20000..=65535)), [10000..=19999]);
        assert_eq!(candidates(Some(9000..=65535)), [1024..=8999]);
        assert_eq!(candidates(Some(1024..=65535)), [10000..=65535]);
        assert_eq!(candidates(Some(1024..=5000)), [10000..=65535]);
        assert_eq!(candidates(Some(0..=65535)), [10000..=65535]);
    }
}
