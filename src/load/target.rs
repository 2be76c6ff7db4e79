//! Which server: in comes a URL, out come its name, its port, and once per load its address.
//!
//! To add a scheme, add it to [`Target::parse`] and to what the target then says of itself.

use super::Error;
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest that one of several addresses of a name is tried.
const TRIAL: Duration = Duration::from_secs(1);

/// A server: `http` or `https`, a host and a port, or a socket of the file system in their place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    tls: bool,
    host: String,
    port: u16,
    socket: Option<PathBuf>,
}

/// Where a server is: what its name led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A socket of the file system.
    Unix(PathBuf),
}

impl Address {
    /// Begins to connect a socket.
    pub(super) fn connect(&self, socket: &OwnedFd) -> Result<(), Errno> {
        match self {
            Self::Tcp(address) => rustix::net::connect(socket, address),
            Self::Unix(path) => rustix::net::connect(socket, &SocketAddrUnix::new(path.as_path())?),
        }
    }

    /// Whether the kernel could choose this very address for a client: a port of this machine, in the range that it
    /// chooses from.
    pub(super) fn is_ephemeral(&self) -> bool {
        let Self::Tcp(address) = self else { return false };
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        let ends: Vec<u16> = range.split_whitespace().filter_map(|end| end.parse().ok()).collect();
        let chosen = if let [first, last] = ends[..] { (first..=last).contains(&address.port()) } else { true };
        address.ip().is_loopback() && chosen
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => path.display().fmt(formatter),
        }
    }
}

impl Target {
    /// Takes a URL apart into its server and the path (with its query) that is asked for, `/` where there is none.
    ///
    /// # Errors
    /// [`Error::Url`] for another scheme, a user name, a fragment, a host or port that
    /// cannot be.
    pub fn parse(url: &str) -> Result<(Self, String), Error> {
        let refuse = |why| Error::Url { url: url.to_owned(), why };
        let other = || refuse("it begins neither with `http://` nor with `https://`");
        let (scheme, rest) = url.split_once("://").ok_or_else(other)?;
        let tls = scheme.eq_ignore_ascii_case("https");
        if !tls && !scheme.eq_ignore_ascii_case("http") {
            return Err(other());
        }
        if rest.contains('#') {
            return Err(refuse("a fragment (`#`) is never sent"));
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(refuse("a user name does not belong in it"));
        }
        let (host, port) = split_authority(authority).map_err(refuse)?;
        let port = port.unwrap_or(usual_port(tls));
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok((Self { tls, host: host.to_owned(), port, socket: None }, path))
    }

    /// The same server, reached through a socket of the file system: the URL then only tells the `Host` header.
    #[must_use]
    pub fn at_socket(self, path: &Path) -> Self {
        Self { socket: Some(path.to_owned()), ..self }
    }

    /// The host: a name, or an address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it speaks TLS.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// The server as a `Host` header has it: without the port where that is the usual one.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == usual_port(self.tls) { host } else { format!("{host}:{}", self.port) }
    }

    /// The one address that this load talks to: of several the first that accepts a connection, else the first.
    pub(super) fn resolve(&self, timeout: Duration) -> Result<Address, Error> {
        if let Some(path) = &self.socket {
            return Ok(Address::Unix(path.clone()));
        }
        let resolved = (self.host.as_str(), self.port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "none is known");
        let addresses = match resolved {
            Ok(addresses) if !addresses.is_empty() => addresses,
            Ok(_) => return Err(Error::Resolve { host: self.host.clone(), source: none() }),
            Err(source) => return Err(Error::Resolve { host: self.host.clone(), source }),
        };
        let accepts = |address: &&SocketAddr| TcpStream::connect_timeout(address, timeout.min(TRIAL)).is_ok();
        let chosen = if addresses.len() > 1 { addresses.iter().find(accepts) } else { None };
        Ok(Address::Tcp(*chosen.unwrap_or(&addresses[0])))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

/// Whether this machine has an address from which `address` can be reached. It tells "no port is left" from "no address".
pub(super) fn is_routed(address: SocketAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(address)).is_ok()
}

/// The port of a URL that names none.
fn usual_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

/// Host and port, if there is one, of `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split_authority(authority: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or("a bracket is open")?;
        host.parse::<Ipv6Addr>().map_err(|_| "what stands in brackets is no IPv6 address")?;
        (host, port)
    } else {
        let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
        if port.matches(':').count() > 1 {
            return Err("an IPv6 address stands in brackets");
        }
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if host.is_empty() || !host.bytes().all(sound) {
            return Err("it names no host");
        }
        (host, port)
    };
    let Some(digits) = port.strip_prefix(':') else {
        return if port.is_empty() { Ok((host, None)) } else { Err("a colon must stand between host and port") };
    };
    let number = if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None };
    number.filter(|&port: &u16| port > 0).map(|port| (host, Some(port))).ok_or("the port must be 1 to 65535")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> (String, u16, String, String) {
        let (target, path) = Target::parse(url).unwrap();
        (target.host().to_owned(), target.port(), target.authority(), path)
    }

    #[test]
    fn urls_come_apart() {
        let own = |host: &str, port, authority: &str, path: &str| {
            (host.to_owned(), port, authority.to_owned(), path.to_owned())
        };
        assert_eq!(parsed("http://localhost"), own("localhost", 80, "localhost", "/"));
        assert_eq!(parsed("HTTP://a.b-c_d:8080/x?y=1"), own("a.b-c_d", 8080, "a.b-c_d:8080", "/x?y=1"));
        assert_eq!(parsed("HTTPS://localhost/x"), own("localhost", 443, "localhost", "/x"));
        assert_eq!(parsed("https://localhost:80"), own("localhost", 80, "localhost:80", "/"));
        assert_eq!(parsed("http://127.0.0.1:80?q"), own("127.0.0.1", 80, "127.0.0.1", "/?q"));
        assert_eq!(parsed("http://[::1]:3000/"), own("::1", 3000, "[::1]:3000", "/"));
        assert_eq!(parsed("http://[2001:db8::7]"), own("2001:db8::7", 80, "[2001:db8::7]", "/"));
    }

    #[test]
    fn what_is_no_server_is_refused() {
        for url in [
            "",
            "localhost:80",
            "ftp://localhost",
            "http://",
            "http://:80",
            "http://a:",
            "http://a:0",
            "http://a:65536",
            "http://a:+80",
            "http://u@a",
            "http://a/#f",
            "http://::1",
            "http://[::1",
            "http://[::1]80",
            "http://[a]:1",
            "http://a b",
            "http://a\r\nx: y",
            "http://a\\b",
        ] {
            assert!(matches!(Target::parse(url), Err(Error::Url { .. })), "{url:?}");
        }
    }

    #[test]
    fn literals_resolve_to_themselves() {
        for (url, address) in [("http://127.0.0.1:9", "127.0.0.1:9"), ("http://[::1]:9", "[::1]:9")] {
            let resolved = Target::parse(url).unwrap().0.resolve(TRIAL).unwrap();
            assert_eq!(resolved, Address::Tcp(address.parse().unwrap()));
        }
    }
}
