//! How many files the process may open: in comes how many connections there will be, out comes room for them.
//!
//! The limit is taken back when the load is over, so that whatever is started later has the limit that its user set.

use super::Error;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are open beside connections: a generous guess of standard streams, events, logs and sockets to children.
const OTHERS: u64 = 128;

/// Room for connections, for as long as it lives.
#[derive(Debug)]
pub(super) struct OpenFiles {
    before: Option<Rlimit>,
}

impl OpenFiles {
    /// Makes room for so many connections.
    ///
    /// # Errors
    /// [`Error::Descriptors`] if the hard limit is too low.
    pub(super) fn allow(connections: usize) -> Result<Self, Error> {
        let before = getrlimit(Resource::Nofile);
        let wanted = connections as u64 + OTHERS;
        if before.current.is_none_or(|current| current >= wanted) {
            return Ok(Self { before: None });
        }
        if let Some(limit) = before.maximum.filter(|&maximum| maximum < wanted) {
            return Err(Error::Descriptors { limit, wanted });
        }
        let raised = Rlimit { current: Some(wanted), maximum: before.maximum };
        setrlimit(Resource::Nofile, raised).map_err(Error::system("raising the limit of open files"))?;
        Ok(Self { before: Some(before) })
    }
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            // A soft limit can always be lowered to what it was.
            let _ = setrlimit(Resource::Nofile, before);
        }
    }
}
