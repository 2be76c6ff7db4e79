//! Reads answers (RFC 9112): in come pieces of a stream cut anywhere, out goes where an answer ends, "not yet" or a fault.
//!
//! The head of the final answer and the first bytes of its body are kept, so that a faulty answer can be shown.
//! To add another framing of bodies, add it to [`Framing`] and to `head`, which chooses it.

mod head;

use super::chunked::Chunked;
use super::engine::Broken;
use super::fault::Fault;
use memchr::memchr_iter;

/// The longest head, 1xx answers counted each for itself.
const LONGEST_HEAD: usize = 64 * 1024;

/// How much of a body is kept.
pub(super) const EXCERPT: usize = 1024;

/// How every answer begins.
const BEGIN: &[u8] = b"HTTP/1.";

/// How the end of a body is known.
#[derive(Debug)]
enum Framing {
    /// There is no body.
    Nothing,
    /// By its length; so many bytes.
    Length(u64),
    /// By the chunked coding.
    Chunked(Chunked),
    /// By the end of the connection.
    Close,
}

/// What the head of a final answer says.
#[derive(Debug)]
struct Head {
    status: u16,
    framing: Framing,
    /// Whether the connection may carry another request.
    persistent: bool,
}

/// What was read of an answer, to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// The status, where the head was whole.
    pub(super) status: Option<u16>,
    /// The headers, where the head was whole.
    pub(super) headers: Vec<(String, String)>,
    /// The first bytes of the body; where the head was not whole, of what came.
    pub(super) body: Vec<u8>,
}

/// Reads the answer to one request.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The head of the answer, as far as it was read.
    bytes: Vec<u8>,
    /// Whether the line being read is empty so far.
    blank: bool,
    /// What the head says, once it is whole.
    head: Option<Head>,
    /// Content of the body read so far, in bytes.
    length: u64,
    /// The first of it.
    excerpt: Vec<u8>,
}

impl Reader {
    /// Makes it fresh for the next answer.
    pub(super) fn reset(&mut self) {
        self.bytes.clear();
        self.blank = false;
        self.head = None;
        self.length = 0;
        self.excerpt.clear();
    }

    /// Takes what came, up to the end of the answer: how many bytes those were, once it is whole. `bodiless` says that
    /// the request was a `HEAD`.
    pub(super) fn feed(&mut self, input: &[u8], bodiless: bool) -> Result<Option<usize>, Fault> {
        let mut rest = input;
        while self.head.is_none() {
            let Some(after) = self.take_head(rest, bodiless)? else { return Ok(None) };
            rest = after;
        }
        let taken = self.take_body(rest).map_err(Fault::Protocol)?;
        Ok(taken.map(|taken| input.len() - rest.len() + taken))
    }

    /// The status of the answer, and how many bytes of content its body had so far, once its head is whole.
    pub(super) fn answer(&self) -> Option<(u16, u64)> {
        self.head.as_ref().map(|head| (head.status, self.length))
    }

    /// Whether the connection may carry another request after this answer.
    pub(super) fn is_persistent(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.persistent)
    }

    /// What the end of the connection makes of the answer: whole, if nothing else delimits it.
    pub(super) fn end(&self) -> Result<(), Fault> {
        let got = self.length;
        match self.head.as_ref().map(|head| &head.framing) {
            Some(Framing::Close | Framing::Nothing) => Ok(()),
            Some(Framing::Length(promised)) => Err(Fault::Short { got, promised: *promised }),
            Some(Framing::Chunked(_)) => Err(Fault::Unfinished { got }),
            None => Err(Fault::Closed),
        }
    }

    /// What a broken connection makes of the answer: as its end, but never whole.
    pub(super) fn broken(&self, broken: Broken) -> Fault {
        match self.end() {
            Ok(()) | Err(Fault::Closed) => Fault::Broken(broken),
            Err(fault) => fault,
        }
    }

    /// What was read, to be shown.
    pub(super) fn excerpt(&self) -> Excerpt {
        match &self.head {
            Some(head) => {
                Excerpt { status: Some(head.status), headers: head::headers(&self.bytes), body: self.excerpt.clone() }
            }
            None => Excerpt {
                status: None,
                headers: Vec::new(),
                body: self.bytes[..self.bytes.len().min(EXCERPT)].to_vec(),
            },
        }
    }

    /// Takes the bytes up to the end of a head, and the head with them; `None` if it does not end in them. A 1xx is
    /// passed over.
    fn take_head<'a>(&mut self, input: &'a [u8], bodiless: bool) -> Result<Option<&'a [u8]>, Fault> {
        let end = self.head_end(input);
        let (taken, rest) = input.split_at(end.unwrap_or(input.len()));
        let room = LONGEST_HEAD - self.bytes.len();
        self.bytes.extend_from_slice(&taken[..taken.len().min(room)]);
        let begun = self.bytes.len().min(BEGIN.len());
        if self.bytes[..begun] != BEGIN[..begun] {
            return Err(Fault::Protocol("what came does not begin as an answer of HTTP/1"));
        }
        if taken.len() > room {
            return Err(Fault::Protocol("the head is longer than 64 KiB"));
        }
        if end.is_none() {
            return Ok(None);
        }
        let head = head::read(&self.bytes, bodiless).map_err(Fault::Protocol)?;
        match head.status {
            101 => return Err(Fault::Protocol("the server switched to another protocol, unasked")),
            100..200 => self.reset(),
            _ => self.head = Some(head),
        }
        Ok(Some(rest))
    }

    /// Where in `input` the empty line ends that ends the head.
    fn head_end(&mut self, input: &[u8]) -> Option<usize> {
        let is_empty = |line: &[u8]| line.iter().all(|&byte| byte == b'\r');
        let mut at = 0;
        for end in memchr_iter(b'\n', input) {
            if self.blank && is_empty(&input[at..end]) {
                return Some(end + 1);
            }
            self.blank = true;
            at = end + 1;
        }
        self.blank &= is_empty(&input[at..]);
        None
    }

    /// Takes content, up to the end of the body: how many bytes, once that is whole.
    fn take_body(&mut self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        let Self { head: Some(head), length, excerpt, .. } = self else { return Ok(None) };
        let before = *length;
        let mut sink = |content: &[u8]| {
            *length += content.len() as u64;
            let wanted = EXCERPT - excerpt.len();
            excerpt.extend_from_slice(&content[..content.len().min(wanted)]);
        };
        let (taken, whole) = match &mut head.framing {
            Framing::Nothing => (0, true),
            Framing::Close => {
                sink(input);
                (input.len(), false)
            }
            Framing::Length(promised) => {
                let left = *promised - before;
                let taken = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
                sink(&input[..taken]);
                (taken, taken as u64 == left)
            }
            Framing::Chunked(chunked) => (chunked.feed(input, sink)?, chunked.is_whole()),
        };
        Ok(whole.then_some(taken))
    }
}

#[cfg(test)]
mod tests;
