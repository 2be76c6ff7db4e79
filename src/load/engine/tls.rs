//! TLS over another engine: what the worker writes and reads is plain, what goes to the inner engine is not.
//!
//! A connection counts as made when the handshake is whole, so that its time is that of connecting, and a certificate that
//! is not trusted is a connection that could not be made. An end without close_notify is a broken connection: a body that
//! only its end delimits would else be cut short unseen (RFC 9112, 9.8).

use super::{Broken, Engine, Ready};
use crate::load::Error;
use crate::trust::phrase;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// How much is taken from the inner engine at once: a record, which the plain text that rustls holds back has room for.
const RAW: usize = 16 * 1024;

/// One TLS session for each connection of an inner engine.
pub(in crate::load) struct Tls<E> {
    inner: E,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    sessions: Vec<Option<Box<Session>>>,
    raw: Vec<u8>,
    events: Vec<Ready>,
    /// Connections of which there is more to read, although the inner engine may not say so again.
    again: Vec<usize>,
}

struct Session {
    tls: ClientConnection,
    /// Whether the worker knows that it is connected.
    told: bool,
    /// Whether the worker waits to write.
    awaited: bool,
    /// How the connection ended, once it has, after all plain text was read.
    ended: Option<Result<(), Broken>>,
}

/// What a session writes to.
struct Out<'a, E> {
    inner: &'a mut E,
    index: usize,
    broken: Option<Broken>,
}

impl<E: Engine> Write for Out<'_, E> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.inner.write(self.index, bytes) {
            Ok(Some(taken)) => Ok(taken),
            Ok(None) => Err(io::ErrorKind::WouldBlock.into()),
            Err(broken) => {
                self.broken = Some(broken);
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<E: Engine> Tls<E> {
    /// Sessions with a server of this name, for so many connections of `inner`.
    pub(in crate::load) fn new(
        inner: E,
        connections: usize,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Self {
        let sessions = (0..connections).map(|_| None).collect();
        Self { inner, config, name, sessions, raw: vec![0; RAW], events: Vec::new(), again: Vec::new() }
    }

    /// Hands what a session has to send to the inner engine: whether all of it went.
    fn flush(&mut self, index: usize) -> Result<bool, Broken> {
        let Some(session) = &mut self.sessions[index] else { return Ok(true) };
        let mut out = Out { inner: &mut self.inner, index, broken: None };
        while session.tls.wants_write() {
            match session.tls.write_tls(&mut out) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(out.broken.unwrap_or_else(|| Broken::Tls(error.to_string()))),
            }
        }
        Ok(true)
    }

    /// Takes what came into a session, and puts its plain text at the end of `plain`: how much of that there is now, and
    /// whether there may be more to take.
    fn pump(&mut self, index: usize, plain: &mut [u8], mut filled: usize) -> (usize, bool) {
        let Some(session) = &mut self.sessions[index] else { return (filled, false) };
        let length = match self.inner.read(index, &mut self.raw) {
            Ok(Some(length)) if length > 0 => length,
            Ok(None) => return (filled, false),
            Ok(Some(_)) => {
                let announced = session.tls.process_new_packets().is_ok_and(|state| state.peer_has_closed());
                let end = if announced { Ok(()) } else { Err(Broken::Tls(UNANNOUNCED.to_owned())) };
                session.ended = Some(end);
                return (filled, false);
            }
            Err(broken) => {
                session.ended = Some(Err(broken));
                return (filled, false);
            }
        };
        let mut rest = &self.raw[..length];
        while !rest.is_empty() {
            let taken = session.tls.read_tls(&mut rest);
            let state = taken.map_err(|error| error.to_string()).and_then(|_| {
                session.tls.process_new_packets().map_err(|error| phrase(&error).unwrap_or_else(|| error.to_string()))
            });
            match state {
                Ok(state) => {
                    let wanted = state.plaintext_bytes_to_read().min(plain.len() - filled);
                    filled += session.tls.reader().read(&mut plain[filled..filled + wanted]).unwrap_or(0);
                }
                Err(why) => {
                    session.ended = Some(Err(Broken::Tls(why)));
                    break;
                }
            }
        }
        (filled, length == RAW)
    }

    /// Goes on with a handshake: what is to be said of it.
    fn shake(&mut self, index: usize) -> Option<Ready> {
        loop {
            let (_, more) = self.pump(index, &mut [], 0);
            // Also an alert that says why this side gives up.
            let flushed = self.flush(index);
            let session = self.sessions[index].as_mut()?;
            if let Err(broken) = flushed {
                session.ended.get_or_insert(Err(broken));
            }
            if let Some(ended) = session.ended.take() {
                let broken =
                    ended.err().unwrap_or_else(|| Broken::Tls("the connection ended in the handshake".to_owned()));
                return Some(Ready::Refused(index, broken));
            }
            if !session.tls.is_handshaking() {
                session.told = true;
                self.again.push(index);
                return Some(Ready::Connected(index));
            }
            if !more {
                return None;
            }
        }
    }
}

const UNANNOUNCED: &str = "the connection ended without a close_notify of TLS";

impl<E: Engine> Engine for Tls<E> {
    const NAME: &'static str = E::NAME;

    fn connect(&mut self, index: usize) -> Result<Option<Broken>, Error> {
        let tls = match ClientConnection::new(Arc::clone(&self.config), self.name.clone()) {
            Ok(tls) => tls,
            Err(error) => return Ok(Some(Broken::Tls(error.to_string()))),
        };
        self.sessions[index] = Some(Box::new(Session { tls, told: false, awaited: false, ended: None }));
        self.inner.connect(index)
    }

    fn write(&mut self, index: usize, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        let flushed = self.flush(index)?;
        let Some(session) = &mut self.sessions[index] else { return Ok(None) };
        if !flushed {
            session.awaited = true;
            return Ok(None);
        }
        // What rustls has no room for is offered again.
        let taken = session.tls.writer().write(bytes).unwrap_or(0);
        self.flush(index)?;
        Ok(Some(taken))
    }

    fn read(&mut self, index: usize, buffer: &mut [u8]) -> Result<Option<usize>, Broken> {
        let Some(session) = &mut self.sessions[index] else { return Ok(None) };
        let mut filled = session.tls.reader().read(buffer).unwrap_or(0);
        let mut more = true;
        // A record more than there is room for stays with rustls, and is taken up by the next read.
        while more && buffer.len() - filled >= 2 * RAW {
            (filled, more) = self.pump(index, buffer, filled);
        }
        let flushed = self.flush(index);
        let Some(session) = &mut self.sessions[index] else { return Ok(None) };
        if filled > 0 {
            if more || session.ended.is_some() {
                self.again.push(index);
            }
            return Ok(Some(filled));
        }
        match session.ended.take() {
            None => flushed.map(|_| None),
            Some(ended) => ended.map(|()| Some(0)),
        }
    }

    fn close(&mut self, index: usize) {
        if let Some(session) = self.sessions[index].as_mut().filter(|session| session.told) {
            session.tls.send_close_notify();
            // A peer that takes no more need not hear it.
            let _ = self.flush(index);
        }
        self.sessions[index] = None;
        self.inner.close(index);
    }

    fn wait(&mut self, longest: Option<u64>, ready: &mut Vec<Ready>) -> Result<(), Error> {
        let again = std::mem::take(&mut self.again);
        let longest = if again.is_empty() { longest } else { Some(0) };
        self.inner.wait(longest, &mut self.events)?;
        ready.extend(again.into_iter().map(Ready::Readable));
        for event in std::mem::take(&mut self.events) {
            match event {
                Ready::Connected(index) => ready.extend(self.shake(index)),
                Ready::Readable(index) => match self.sessions[index].as_ref().map(|session| session.told) {
                    Some(false) => ready.extend(self.shake(index)),
                    Some(true) => ready.push(Ready::Readable(index)),
                    None => {}
                },
                Ready::Writable(index) => {
                    let flushed = self.flush(index) == Ok(true);
                    let session = self.sessions[index].as_mut();
                    if let Some(session) = session.filter(|session| flushed && session.awaited) {
                        session.awaited = false;
                        ready.push(Ready::Writable(index));
                    }
                }
                Ready::Refused(..) | Ready::Stop => ready.push(event),
            }
        }
        Ok(())
    }
}
