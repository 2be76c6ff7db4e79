//! How connections move bytes: in come a worker's wishes, by the number of a connection, out comes what became ready.
//!
//! An engine knows sockets; of HTTP it knows nothing. It keeps no queue that the worker cannot see: what [`Engine::write`]
//! took is on its way, what [`Engine::wait`] named is there to be taken up. To add an engine, implement [`Engine`] in a
//! module beside `epoll` and name it in [`super::options::Engine`].

pub(super) mod epoll;
pub(super) mod tls;
pub(super) mod uring;

use super::Error;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::fmt;
use std::os::fd::OwnedFd;

use super::target::Address;

/// Why a connection cannot be used any longer, or could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Broken {
    /// A system call said so.
    System(Errno),
    /// The connection was made to itself: nothing listens, and the kernel chose the server's port for the client.
    Itself,
    /// TLS failed, for this reason.
    Tls(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(errno) => std::io::Error::from(*errno).fmt(formatter),
            Self::Tls(why) => formatter.write_str(why),
            Self::Itself => formatter.write_str("nothing listens there"),
        }
    }
}

/// What became ready, with the number of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ready {
    /// The load is to stop.
    Stop,
    /// The connection is made.
    Connected(usize),
    /// It could not be made.
    Refused(usize, Broken),
    /// It takes bytes again, after it took none or fewer than were offered.
    Writable(usize),
    /// There is something to read: bytes, its end, or why it broke.
    Readable(usize),
}

/// What drives the connections of one worker.
pub(super) trait Engine {
    /// Which it is, as users call it.
    const NAME: &'static str;

    /// Begins to make a connection, in place of one that was closed. What becomes of it, [`Self::wait`] tells, unless it
    /// is refused at once.
    fn connect(&mut self, index: usize) -> Result<Option<Broken>, Error>;

    /// Takes as many bytes to send as it can: none until [`Ready::Writable`] is told.
    fn write(&mut self, index: usize, bytes: &[u8]) -> Result<Option<usize>, Broken>;

    /// Takes up what came: how many bytes, 0 at the end of the connection, `None` where nothing is there. Where fewer
    /// bytes came than there is room for, there are no more, or [`Ready::Readable`] will be told again.
    fn read(&mut self, index: usize, buffer: &mut [u8]) -> Result<Option<usize>, Broken>;

    /// Ends a connection; nothing more is told of it.
    fn close(&mut self, index: usize);

    /// Waits until something is ready, for at most so many ns, and names it. A signal may end the wait early.
    fn wait(&mut self, longest: Option<u64>, ready: &mut Vec<Ready>) -> Result<(), Error>;
}

/// A socket for a connection to `address`.
pub(super) fn socket(address: &Address, nonblocking: bool) -> Result<OwnedFd, Error> {
    let family = match address {
        Address::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
        Address::Tcp(_) => AddressFamily::INET6,
        Address::Unix(_) => AddressFamily::UNIX,
    };
    let waiting = if nonblocking { SocketFlags::NONBLOCK } else { SocketFlags::empty() };
    let flags = waiting | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None).map_err(|errno| match errno {
        Errno::MFILE | Errno::NFILE => Error::Files,
        _ => Error::system("opening a socket")(errno),
    })?;
    if matches!(address, Address::Tcp(_)) {
        sockopt::set_tcp_nodelay(&socket, true).map_err(Error::system("setting up a socket"))?;
    }
    Ok(socket)
}

/// What a refusal of the system at connecting means: that this server cannot be reached, or that the generator cannot
/// go on.
pub(super) fn refused(errno: Errno, address: &Address) -> Result<Broken, Error> {
    match address {
        Address::Tcp(tcp) if errno == Errno::ADDRNOTAVAIL && super::target::is_routed(*tcp) => {
            Err(Error::Ports { address: *tcp })
        }
        _ => Ok(Broken::System(errno)),
    }
}

/// Whether a socket is connected to itself.
pub(super) fn is_own(socket: &OwnedFd) -> bool {
    let own = rustix::net::getsockname(socket).ok();
    own.is_some() && own == rustix::net::getpeername(socket).ok().flatten()
}
