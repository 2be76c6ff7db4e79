//! The near side: starting launchers, hearing from them, and what to do when one is lost.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::launcher::{PATIENCE, WORD};
use super::protocol::{Channel, Down, Failure, Received, Request, Stage, Up, wait};
use super::spawn::now;
use super::{Command, Descendant, Ended, Exit, Output, Stdin, tree};

/// How long descendants and output that outlive the main process have to end by themselves.
const SETTLE: Duration = Duration::from_millis(200);

/// How much longer than it allows itself a launcher may take to tell the end, before it counts as lost.
const MARGIN: Duration = Duration::from_secs(10);

/// The launchers of this process, which are no orphans.
static HELD: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<u32>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts processes. It needs the path of a program that enters [`launcher_main`](super::launcher::launcher_main).
#[derive(Clone, Debug)]
pub struct Launcher {
    program: PathBuf,
}

/// A process that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No such file.
    #[error("there is no program {}", .0.display())]
    NotFound(PathBuf),
    /// It, or a directory on the way to it, must not be executed (by that user).
    #[error("{} is not executable", .0.display())]
    NotExecutable(PathBuf),
    /// The program is there; what its `#!` line or its header names to run it is not.
    #[error("the interpreter that {} asks for does not exist", .0.display())]
    NoInterpreter(PathBuf),
    /// Neither a program of this machine nor a script with a `#!` line.
    #[error("{} is not a program of this machine and has no #! line", .0.display())]
    NotAProgram(PathBuf),
    /// Arguments and environment are larger than the kernel takes.
    #[error("the arguments and the environment of {} are too long", .0.display())]
    TooLong(PathBuf),
    /// The working directory.
    #[error("the directory {} cannot be entered: {}", .0.display(), .1)]
    Cwd(PathBuf, io::Error),
    /// What the process should read.
    #[error("the input {} cannot be opened: {}", .0.display(), .1)]
    Stdin(PathBuf, io::Error),
    /// Where its output should go.
    #[error("the log {} cannot be created: {}", .0.display(), .1)]
    Log(PathBuf, io::Error),
    /// Processors that this machine has not, or that bakeoff may not use.
    #[error("these processors are not to be had: {0:?}")]
    Cpus(Vec<usize>),
    /// The user.
    #[error("the process cannot be run as that user: {0}")]
    User(io::Error),
    /// Another failure of the kernel to run the program.
    #[error("{} cannot be run: {}", .0.display(), .1)]
    Exec(PathBuf, io::Error),
    /// bakeoff's own part in it.
    #[error("no process can be started: {0}")]
    Launcher(io::Error),
    /// The launcher was killed before it could tell, or its program is none.
    #[error("{0}")]
    Lost(#[from] Lost),
}

/// The launcher of a process ended before its time, killed by someone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the process that watched over it was killed")]
pub struct Lost;

/// How a wait came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The main process has exited.
    Exited,
    /// The time came first.
    TimedOut,
    /// The descriptor to stop at can be read.
    Stopped,
}

/// A process that was started, with its launcher. Dropped, it is killed with its whole tree.
#[derive(Debug)]
pub struct Process {
    launcher: Child,
    control: Channel,
    id: u32,
    started: Instant,
    exit: Option<Exit>,
    finished: bool,
}

impl Default for Launcher {
    /// This program itself, whose `main` must enter [`launcher_main`](super::launcher::launcher_main).
    fn default() -> Self {
        Launcher::new("/proc/self/exe")
    }
}

impl Launcher {
    /// Another program that enters [`launcher_main`](super::launcher::launcher_main).
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Launcher { program: program.into() }
    }

    /// Starts a process and returns as soon as it runs.
    ///
    /// # Errors
    /// When it cannot be started; nothing of it is left then.
    pub fn launch(&self, command: &Command) -> Result<Process, LaunchError> {
        let stdin = open(&command.stdin)?;
        let request = request(command).map_err(LaunchError::Launcher)?;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).map_err(os_error)?;
        let mut launcher = std::process::Command::new(&self.program);
        launcher.arg0("bakeoff").arg(WORD).env_clear().stdin(stdin).stdout(theirs).stderr(Stdio::null());
        let mut held = held();
        let child = launcher.spawn().map_err(LaunchError::Launcher)?;
        held.insert(child.id());
        drop((held, launcher));
        let control = Channel::new(ours);
        let mut process =
            Process { launcher: child, control, id: 0, started: Instant::now(), exit: None, finished: false };
        process.control.send(&request);
        process.begin().map_err(|failure| error(failure, command))?;
        Ok(process)
    }
}

fn os_error(errno: Errno) -> LaunchError {
    LaunchError::Launcher(errno.into())
}

fn open(stdin: &Stdin) -> Result<Stdio, LaunchError> {
    match stdin {
        Stdin::Null => Ok(Stdio::null()),
        Stdin::File(path) => {
            let wrong = |error| LaunchError::Stdin(path.clone(), error);
            // To open a pipe that nobody writes to would be to wait for ever.
            if !path.metadata().map_err(wrong)?.is_file() {
                return Err(wrong(io::Error::other("it is not a regular file")));
            }
            Ok(File::open(path).map_err(wrong)?.into())
        }
        Stdin::Text(text) => {
            let memory: OwnedFd = rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC).map_err(os_error)?;
            let mut memory = File::from(memory);
            memory.write_all(text).and_then(|()| memory.rewind()).map_err(LaunchError::Launcher)?;
            Ok(memory.into())
        }
    }
}

fn request(command: &Command) -> io::Result<Request> {
    let log = |output: &Output| match output {
        Output::Null => Ok(None),
        Output::Log(path) => std::path::absolute(path).map(Some),
    };
    let variable = |(name, value): &(OsString, OsString)| [name.as_os_str(), "=".as_ref(), value].into_iter().collect();
    Ok(Request {
        program: std::path::absolute(&command.program)?,
        argv: command.argv.clone(),
        env: command.env.iter().map(variable).collect(),
        cwd: std::path::absolute(&command.cwd)?,
        stdout: log(&command.stdout)?,
        stderr: log(&command.stderr)?,
        cpus: command.cpus.clone(),
        user: command.user.clone(),
    })
}

fn error(failure: Failure, command: &Command) -> LaunchError {
    let program = command.program.clone();
    let source = io::Error::from(failure.errno);
    let log = |output: &Output| match output {
        Output::Log(path) => path.clone(),
        Output::Null => PathBuf::new(),
    };
    match (failure.stage, failure.errno) {
        (Stage::Launcher, Errno::PIPE) => LaunchError::Lost(Lost),
        (Stage::Launcher, _) => LaunchError::Launcher(source),
        (Stage::Cwd, _) => LaunchError::Cwd(command.cwd.clone(), source),
        (Stage::Stdout, _) => LaunchError::Log(log(&command.stdout), source),
        (Stage::Stderr, _) => LaunchError::Log(log(&command.stderr), source),
        (Stage::Cpus, _) => LaunchError::Cpus(command.cpus.clone()),
        (Stage::User, _) => LaunchError::User(source),
        (Stage::Exec, Errno::NOENT) if Path::exists(&program) => LaunchError::NoInterpreter(program),
        (Stage::Exec, Errno::NOENT | Errno::NOTDIR) => LaunchError::NotFound(program),
        (Stage::Exec, Errno::ACCESS | Errno::PERM) => LaunchError::NotExecutable(program),
        (Stage::Exec, Errno::NOEXEC) => LaunchError::NotAProgram(program),
        (Stage::Exec, Errno::TOOBIG) => LaunchError::TooLong(program),
        (Stage::Exec, _) => LaunchError::Exec(program, source),
    }
}

impl Process {
    /// Waits for the launcher's first word.
    fn begin(&mut self) -> Result<(), Failure> {
        loop {
            match self.control.receive() {
                Received::Message(Up::Started(started)) => {
                    self.id = started.pid;
                    self.started = Instant::now() - now().saturating_sub(started.at);
                    return Ok(());
                }
                Received::Message(Up::Failed(failure)) => return Err(failure),
                Received::Message(_) => {}
                Received::Nothing => {
                    wait(&[self.control.as_fd()], Some(Duration::from_secs(1)));
                    self.wake();
                }
                Received::Closed => return Err(Stage::Launcher.fails(Errno::PIPE)),
            }
        }
    }

    /// A child may have stopped its launcher.
    fn wake(&self) {
        let _ = Pid::from_raw(self.launcher_id() as i32).map(|launcher| kill_process(launcher, Signal::CONT));
    }

    /// The id of the main process. Once it has exited, the id may belong to another.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The id of its launcher, the ancestor of its whole tree.
    pub fn launcher_id(&self) -> u32 {
        self.launcher.id()
    }

    /// When it was spawned.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Can be read when [`Process::poll_exit`] has something to tell.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// The ids of all its processes that are there now: the main one and all descendants, also those that left its session.
    pub fn tree(&self) -> Vec<u32> {
        tree::descendants(self.launcher_id())
    }

    /// How the main process ended, if it has. Never waits.
    ///
    /// # Errors
    /// When the launcher was lost before it could tell.
    pub fn poll_exit(&mut self) -> Result<Option<&Exit>, Lost> {
        while self.exit.is_none() {
            match self.control.receive() {
                Received::Message(Up::Exited(exit)) => self.exit = Some(exit),
                Received::Message(_) => {}
                Received::Nothing => return Ok(None),
                Received::Closed => return Err(Lost),
            }
        }
        Ok(self.exit.as_ref())
    }

    /// Waits for the main process to exit: at most until a time, and only until `stop` can be read.
    ///
    /// # Errors
    /// When the launcher was lost before it could tell.
    pub fn wait(&mut self, until: Option<Instant>, stop: Option<BorrowedFd<'_>>) -> Result<Waited, Lost> {
        loop {
            if self.poll_exit()?.is_some() {
                return Ok(Waited::Exited);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Waited::TimedOut);
            }
            let fds = [Some(self.control.as_fd()), stop].into_iter().flatten().collect::<Vec<_>>();
            if wait(&fds, left).get(1).is_some_and(|stopped| *stopped) {
                return Ok(if self.poll_exit()?.is_some() { Waited::Exited } else { Waited::Stopped });
            }
        }
    }

    /// Sends a signal to the main process, if it is there.
    pub fn signal(&self, signal: Signal) {
        self.control.send(&Down::Signal(signal.as_raw()));
    }

    /// Asks the main process to end by a signal and gives it so long, at most until `stop` can be read; then ends its tree.
    pub fn stop(mut self, signal: Signal, grace: Duration, stop: Option<BorrowedFd<'_>>) -> Ended {
        self.signal(signal);
        // However it comes out, the end of the tree follows, and says it.
        let _ = self.wait(Instant::now().checked_add(grace), stop);
        self.finish(SETTLE)
    }

    /// Ends the tree now: the main process is killed if it still runs; if it has exited, what is left of its tree and of
    /// its output has 200 ms from then to come to its end.
    pub fn end(mut self) -> Ended {
        self.finish(SETTLE)
    }

    fn finish(&mut self, settle: Duration) -> Ended {
        self.finished = true;
        self.wake();
        self.control.send(&Down::End(settle));
        let until = Instant::now() + settle + PATIENCE + MARGIN;
        let told = loop {
            match self.control.receive() {
                Received::Message(Up::Ended(ended)) => break Some(ended),
                Received::Message(Up::Exited(exit)) => self.exit = Some(exit),
                Received::Nothing if Instant::now() < until => {
                    wait(&[self.control.as_fd()], Some(until.saturating_duration_since(Instant::now())));
                }
                Received::Message(_) => {}
                Received::Nothing | Received::Closed => break None,
            }
        };
        if told.is_none() {
            let _ = self.launcher.kill();
        }
        // One that still kills survivors goes on with it.
        if told.as_ref().is_none_or(|ended| ended.survivors.is_empty()) {
            let _ = self.launcher.wait();
            held().remove(&self.launcher_id());
        }
        told.unwrap_or_else(|| {
            let (left, survivors) = match adopts_orphans() {
                true => end_orphans(),
                false => Default::default(),
            };
            Ended { exit: self.exit.clone(), left, survivors, lost: true, ..Ended::default() }
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.finished {
            self.finish(Duration::ZERO);
        }
    }
}

/// Makes this process the parent of what a lost launcher leaves. From then on [`end_orphans`] takes every child that is
/// not a launcher of this process for an orphan: it must start nothing in another way.
///
/// # Errors
/// When the kernel refuses.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

fn adopts_orphans() -> bool {
    rustix::process::child_subreaper().is_ok_and(|set| set.is_some())
}

/// Kills and reaps all descendants that are not below a launcher of this process: those that were left when a launcher was
/// killed. Gives those that were there, and those that are still there after five seconds.
pub fn end_orphans() -> (Vec<Descendant>, Vec<Descendant>) {
    let me = std::process::id();
    let until = Instant::now() + PATIENCE;
    let mut found = Vec::<Descendant>::new();
    loop {
        let held = held();
        let launchers = held.iter().copied().collect::<Vec<_>>();
        let orphans = tree::children(me).into_iter().filter(|pid| !held.contains(pid)).collect::<Vec<_>>();
        if orphans.is_empty() {
            return (found, Vec::new());
        }
        let named = orphans.iter().flat_map(|orphan| tree::name(&[vec![*orphan], tree::descendants(*orphan)].concat()));
        found.extend(named.filter(|one| !found.iter().any(|known| known.pid == one.pid)).collect::<Vec<_>>());
        tree::kill(me, &launchers);
        for pid in &orphans {
            let _ = waitpid(Pid::from_raw(*pid as i32), WaitOptions::NOHANG);
        }
        drop(held);
        if Instant::now() > until {
            return (found, tree::name(&orphans));
        }
        sleep(Duration::from_millis(1));
    }
}
