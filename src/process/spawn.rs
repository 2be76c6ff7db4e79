//! One child, spawned with as little as can be between the clock and its `exec`.
//!
//! In: an [`Image`], all of it laid out before. Out: the child's id and the time. The child shares the memory of its
//! parent, which sleeps until the `exec` (as with vfork, but on a stack of its own), so nothing is copied.

use std::ffi::{CString, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::time::Duration;

use libc::{c_char, c_int, c_void};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::User;
use super::protocol::{Failure, Request, Stage, Started};

const STACK: usize = 64 << 10;

/// A program and its arguments as the kernel wants them.
pub(super) struct Image {
    program: CString,
    argv: Strings,
    env: Strings,
    user: Option<User>,
    /// What becomes of the child's standard output and error.
    outputs: [RawFd; 2],
    stack: Vec<u8>,
    failure: Option<Failure>,
}

/// A list of strings and the null-terminated array of pointers to them.
struct Strings {
    pointers: Vec<*const c_char>,
    _owned: Vec<CString>,
}

impl Strings {
    fn new(list: &[OsString]) -> Result<Self, Failure> {
        let owned = list.iter().map(|one| terminated(one.as_bytes())).collect::<Result<Vec<_>, _>>()?;
        let pointers = owned.iter().map(|one| one.as_ptr()).chain([ptr::null()]).collect();
        Ok(Strings { pointers, _owned: owned })
    }
}

fn terminated(text: &[u8]) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| Stage::Exec.fails(Errno::INVAL))
}

impl Image {
    pub(super) fn new(request: &Request, outputs: [RawFd; 2]) -> Result<Self, Failure> {
        Ok(Image {
            program: terminated(request.program.as_os_str().as_bytes())?,
            argv: Strings::new(&request.argv)?,
            env: Strings::new(&request.env)?,
            user: request.user.clone(),
            outputs,
            stack: Vec::with_capacity(STACK),
            failure: None,
        })
    }

    /// Goes the whole way with no program, so that every page it takes is there when it counts.
    pub(super) fn rehearse(&mut self) {
        let program = std::mem::take(&mut self.program);
        let _ = self.spawn();
        self.program = program;
    }

    /// Starts the child.
    pub(super) fn spawn(&mut self) -> Result<Started, Failure> {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let top = self.stack.as_mut_ptr().wrapping_add(STACK);
        let stack = top.wrapping_sub(top as usize % 16).cast::<c_void>();
        let image = ptr::from_mut(self).cast::<c_void>();
        let at = now();
        #[expect(unsafe_code, reason = "no safe binding starts a process that shares memory until its exec")]
        // SAFETY: the stack is ours and large enough for `child`, which only makes system calls; this thread, the only
        // one, sleeps until the child has left this memory by exec or exit, and `image` lives on this side meanwhile.
        let pid = unsafe { libc::clone(child, stack, flags, image) };
        if pid < 0 {
            return Err(Stage::Launcher.fails(last_error()));
        }
        #[expect(unsafe_code, reason = "the child wrote to it through another pointer")]
        // SAFETY: `image` points at `self`, which is borrowed for all of this function.
        let failure = unsafe { (*image.cast::<Image>()).failure.take() };
        match failure {
            Some(failure) => {
                let _ = rustix::process::waitpid(
                    rustix::process::Pid::from_raw(pid),
                    rustix::process::WaitOptions::empty(),
                );
                Err(failure)
            }
            None => Ok(Started { pid: pid as u32, at }),
        }
    }
}

/// The time of the monotonic clock.
pub(super) fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// The child's life before its program: system calls only. Raw ones where libc's would look at threads.
extern "C" fn child(image: *mut c_void) -> c_int {
    #[expect(unsafe_code, reason = "runs in the memory of the parent, between clone and exec")]
    // SAFETY: `image` is the `Image` of `spawn`, whose thread sleeps: nobody else touches it. Its pointers are
    // null-terminated, its descriptors open.
    unsafe {
        let image = &mut *image.cast::<Image>();
        let mut stage = Stage::Exec;
        let mut done = libc::setpgid(0, 0) == 0;
        done = done && image.outputs.iter().zip([1, 2]).all(|(from, to)| libc::dup2(*from, to) >= 0);
        if let Some(user) = image.user.as_ref().filter(|_| done) {
            stage = Stage::User;
            done = libc::syscall(libc::SYS_setgroups, user.groups.len(), user.groups.as_ptr()) == 0
                && libc::syscall(libc::SYS_setgid, user.gid) == 0
                && libc::syscall(libc::SYS_setuid, user.uid) == 0;
        }
        if done {
            stage = Stage::Exec;
            let none: libc::sigset_t = std::mem::zeroed();
            libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
            libc::execve(image.program.as_ptr(), image.argv.pointers.as_ptr(), image.env.pointers.as_ptr());
        }
        image.failure = Some(stage.fails(last_error()));
        libc::_exit(127)
    }
}
