//! The far side: `bakeoff` in its hidden mode, the parent of one measured child and the reaper of all its descendants.
//!
//! In: a `Request` on the socket that is its standard output. Out: what becomes of the child, on the same socket. It ends
//! the whole tree when it is told to or when the socket closes, however bakeoff came to its end, and then itself. What it
//! holds in memory when it spawns is the floor under the child's `rss_peak`, so it runs before anything else is set up.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::drain::Drain;
use super::protocol::{Channel, Down, Failure, Received, Request, Stage, Started, Up, wait};
use super::spawn::{Image, now};
use super::{Ended, Exit, LogError, Status, Stream, floor, tree};

/// The argument that asks for this mode.
pub(super) const WORD: &str = "__launch";

/// How long it goes on killing a tree before it says what is still there.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How long it goes on looking for the names of processes that are gone before they are named.
const LOOKS: Duration = Duration::from_secs(1);

/// Between two attempts at killing a tree, unless the death of a child comes first.
const RETRY: Duration = Duration::from_millis(10);

/// Enters the hidden mode if the program was started in it: the very first thing of `main`, which then returns this code.
pub fn launcher_main() -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == WORD).then(|| serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

fn serve() -> Option<()> {
    let deaths = isolate().ok()?;
    // A duplicate, which no exec passes on: in the child its own output takes the place of the first.
    let mut control = Channel::new(io::stdout().as_fd().try_clone_to_owned().ok()?);
    let request: Request = loop {
        match control.receive() {
            Received::Message(request) => break request,
            Received::Nothing => drop(wait(&[control.as_fd()], None)),
            Received::Closed => return None,
        }
    };
    match begin(&request) {
        Ok((main, floor, outputs)) => {
            control.send(&Up::Started(Started { pid: main.pid, at: main.at }));
            Watch { control, deaths, main, floor, exit: None, outputs }.run();
        }
        Err(failure) => control.send(&Up::Failed(failure)),
    }
    Some(())
}

/// Makes this process deaf to all but its socket and its children, whom it gives what a program expects: default signal
/// actions, no descriptor beside the three. Gives the descriptor on which the deaths of children are read.
fn isolate() -> Result<OwnedFd, Errno> {
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    #[expect(unsafe_code, reason = "close_range, sigaction, sigprocmask and signalfd have no safe binding")]
    // SAFETY: nothing has been opened here yet, so the descriptors from 3 on are strangers'; no handler is installed, only
    // default actions; the sets are written before they are read.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        // Straight to the kernel, since libc keeps two signals to itself; an action of zeros is the default one.
        for signal in 1..=64 {
            libc::syscall(libc::SYS_rt_sigaction, signal, &[0_u64; 4], 0, 8);
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(Errno::MFILE),
            deaths => Ok(OwnedFd::from_raw_fd(deaths)),
        }
    }
}

/// Sets up what the child inherits and spawns it. Gives also the floor in bytes, and the drains of its output.
fn begin(request: &Request) -> Result<(Started, u64, [Option<Drain>; 2]), Failure> {
    rustix::process::chdir(&request.cwd).map_err(|errno| Stage::Cwd.fails(errno))?;
    let null = io::stderr().as_fd().try_clone_to_owned().map_err(|_| Stage::Launcher.fails(Errno::MFILE))?;
    let open = |path: &Option<PathBuf>, stage: Stage| match path.as_deref().map(Drain::open).transpose() {
        Ok(opened) => Ok(opened.unzip()),
        Err(errno) => Err(stage.fails(errno)),
    };
    let (stdout_drain, stdout) = open(&request.stdout, Stage::Stdout)?;
    let (stderr_drain, stderr) = open(&request.stderr, Stage::Stderr)?;
    let fd = |pipe: &Option<OwnedFd>| pipe.as_ref().unwrap_or(&null).as_raw_fd();
    let mut image = Image::new(request, [fd(&stdout), fd(&stderr)])?;
    let everywhere = sched_getaffinity(None).map_err(|errno| Stage::Cpus.fails(errno))?;
    restrict(&request.cpus).map_err(|errno| Stage::Cpus.fails(errno))?;
    floor::shrink();
    floor::forget_peak();
    image.rehearse();
    let floor = floor::peak();
    let started = image.spawn();
    if !request.cpus.is_empty() {
        let _ = sched_setaffinity(None, &everywhere);
    }
    Ok((started?, floor, [stdout_drain, stderr_drain]))
}

/// Stays on these processors, so that a child starts there and need not move.
fn restrict(cpus: &[usize]) -> Result<(), Errno> {
    if cpus.is_empty() {
        return Ok(());
    }
    if cpus.iter().any(|cpu| *cpu >= CpuSet::MAX_CPU) {
        return Err(Errno::INVAL);
    }
    let mut wanted = CpuSet::new();
    cpus.iter().for_each(|cpu| wanted.set(*cpu));
    sched_setaffinity(None, &wanted)?;
    if sched_getaffinity(None)? == wanted { Ok(()) } else { Err(Errno::INVAL) }
}

/// The running child and all that is watched of it.
struct Watch {
    control: Channel,
    deaths: OwnedFd,
    main: Started,
    floor: u64,
    exit: Option<Exit>,
    outputs: [Option<Drain>; 2],
}

impl Watch {
    fn run(mut self) {
        loop {
            self.step(None, true);
            match self.control.receive() {
                Received::Message(Down::Signal(signal)) => self.signal(signal),
                Received::Message(Down::End(settle)) => return self.end(settle),
                Received::Nothing => {}
                Received::Closed => return self.end(Duration::ZERO),
            }
        }
    }

    /// Waits for something to happen, takes the dead first and then output. Says whether children are left.
    fn step(&mut self, timeout: Option<Duration>, listen: bool) -> bool {
        let control = listen.then(|| self.control.as_fd());
        let pipes = self.outputs.iter().flatten().filter_map(Drain::pipe);
        wait(&[self.deaths.as_fd()].into_iter().chain(control).chain(pipes).collect::<Vec<_>>(), timeout);
        self.forget_deaths();
        let alive = self.reap();
        for output in self.outputs.iter_mut().flatten() {
            output.take();
        }
        alive
    }

    /// Takes all that have died: the main process with its figures, others to be rid of them.
    fn reap(&mut self) -> bool {
        loop {
            let mut status = 0;
            #[expect(unsafe_code, reason = "wait4, which alone tells the usage of one child, has no safe binding")]
            // SAFETY: both are written by the kernel, and a rusage of zeros is one.
            let (pid, usage) = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                (libc::wait4(-1, &mut status, libc::WNOHANG, &mut usage), usage)
            };
            let wall = now().saturating_sub(self.main.at);
            match pid {
                0 => return true,
                -1 => return false,
                pid if pid as u32 == self.main.pid && self.exit.is_none() => {
                    let exit = exit(status, wall, &usage, self.floor);
                    self.control.send(&Up::Exited(exit.clone()));
                    self.exit = Some(exit);
                }
                _ => {}
            }
        }
    }

    fn signal(&self, signal: i32) {
        if let (None, Some(pid), Some(signal)) =
            (&self.exit, Pid::from_raw(self.main.pid as i32), Signal::from_named_raw(signal))
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Ends the tree, reports and returns, which ends this process.
    fn end(mut self, settle: Duration) {
        // Against a tree that forks faster than it is looked through or killed; only root may.
        let _ = rustix::process::setpriority_process(None, -20);
        self.reap();
        let mut ended = Ended { killed: self.exit.is_none(), ..Ended::default() };
        let me = std::process::id();
        if let Some(exit) = &self.exit {
            let settled = self.main.at + exit.wall + settle;
            while self.busy() && now() < settled {
                self.step(Some(settled.saturating_sub(now())), false);
            }
            // One that lives only to start the next may be gone before it is named: some more looks find another.
            let looked = now() + LOOKS;
            ended.left = (0..100)
                .take_while(|_| now() < looked)
                .map_while(|_| self.reap().then(|| tree::name(&tree::descendants(me))))
                .find(|names| !names.is_empty())
                .unwrap_or_default();
            ended.held_output = ended.left.clone();
            ended.held_output.retain(|one| self.outputs.iter().flatten().any(|output| output.held_by(one.pid)));
        }
        self.kill(now() + PATIENCE);
        ended.survivors = tree::name(&tree::descendants(me));
        for (output, stream) in std::mem::take(&mut self.outputs).into_iter().zip([Stream::Stdout, Stream::Stderr]) {
            ended.log_errors.extend(output.and_then(Drain::finish).map(|errno| LogError { stream, errno }));
        }
        ended.exit = self.exit.clone();
        self.control.send(&Up::Ended(ended));
        // All has been said, but the survivors are not let go.
        self.kill(Duration::MAX);
    }

    /// Kills all descendants until none is left, or until this time.
    fn kill(&mut self, until: Duration) {
        while self.reap() && now() < until {
            tree::kill(std::process::id(), &[]);
            wait(&[self.deaths.as_fd()], Some(RETRY));
            self.forget_deaths();
        }
    }

    /// The deaths that were announced are about to be looked for.
    fn forget_deaths(&self) {
        let _ = rustix::io::read(&self.deaths, &mut [0; 128][..]);
    }

    fn busy(&mut self) -> bool {
        self.reap() || self.outputs.iter().flatten().any(|output| output.pipe().is_some())
    }
}

fn exit(status: i32, wall: Duration, usage: &libc::rusage, floor: u64) -> Exit {
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Exit {
        status: match libc::WIFSIGNALED(status) {
            true => Status::Signal(libc::WTERMSIG(status)),
            false => Status::Code(libc::WEXITSTATUS(status)),
        },
        wall,
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        rss_peak: usage.ru_maxrss as u64 * 1024,
        rss_floor: floor,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        major_faults: usage.ru_majflt as u64,
    }
}
