//! Processes of the bench: the server, tools on a core of their own, and what each used.

use crate::SERVER;
use procfs::{CurrentSI, KernelStats};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The core of the server, and that of the generator where there are two.
pub(crate) const SERVER_CORE: usize = 1;
pub(crate) const GENERATOR_CORE: usize = 0;

/// How long a tool may take beyond what it was asked for.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the figures are of.
pub(crate) fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("\t: unknown");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = if is_divided() { "server and generator on a core each" } else { "one core for server and generator" };
    format!("{}, Linux {}, {cores}\n", model.trim_start_matches(['\t', ' ', ':']), kernel.trim())
}

/// Whether server and generator have a core each.
fn is_divided() -> bool {
    std::thread::available_parallelism().is_ok_and(|all| all.get() > 1)
}

/// A command that is bound to a core.
pub(crate) fn on_core(core: usize, program: &[String]) -> Command {
    let mut command = if is_divided() {
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string()]).arg(&program[0]);
        command
    } else {
        Command::new(&program[0])
    };
    command.args(&program[1..]);
    command
}

/// The minimal server, while it lives.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    pub(crate) fn start() -> Self {
        let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let mut child = on_core(SERVER_CORE, &[own, SERVER.to_owned()]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// How many requests it has answered.
    pub(crate) fn count(&self) -> u64 {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.write_all(b"COUNT").unwrap();
        let mut text = [0; 32];
        let length = stream.read(&mut text).unwrap();
        std::str::from_utf8(&text[..length]).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a tool used, and what it brought about.
#[derive(Debug, Clone)]
pub(crate) struct Used {
    /// User and system time of the whole process, in seconds; its start is in it.
    pub(crate) cpu: f64,
    /// Requests that the server answered.
    pub(crate) requests: u64,
    /// Requests a second from a quarter to three quarters of the window, as the server counted them.
    pub(crate) rate: f64,
    /// The share of that time in which the generator's core was not idle.
    pub(crate) busy: f64,
    /// Peak resident memory, in bytes.
    pub(crate) peak: f64,
    /// What it wrote.
    pub(crate) output: String,
}

/// Runs a tool for a window against a server that counts; an error says how it failed.
pub(crate) fn run(program: &[String], server: &Server, window: Duration) -> Result<Used, String> {
    let before = server.count();
    let mut command = on_core(GENERATOR_CORE, program);
    let began = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(|e| e.to_string())?;
    let mut out = child.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = out.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let look = |at: Duration| {
        std::thread::sleep(at.saturating_sub(began.elapsed()));
        (Instant::now(), server.count(), busy(GENERATOR_CORE))
    };
    let (first, then) = (look(window / 4), look(window * 3 / 4));
    let mut peak = 0.0;
    let (status, cpu) = loop {
        peak = peak_of(child.id()).unwrap_or(peak);
        match ended(child.id())? {
            Some(end) => break end,
            None if began.elapsed() > window + PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("it did not end".to_owned());
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let output = reading.join().unwrap_or_default();
    if status != 0 {
        return Err(format!("it ended with status {status:#x}"));
    }
    let seconds = (then.0 - first.0).as_secs_f64();
    let (rate, busy) = ((then.1 - first.1) as f64 / seconds, (then.2 - first.2) / seconds);
    Ok(Used { cpu, requests: server.count() - before, rate, busy, peak, output })
}

/// Seconds since the start of the machine in which a core was not idle (`/proc/stat`, proc_stat(5)), whatever it did.
fn busy(core: usize) -> f64 {
    let time = &KernelStats::current().unwrap().cpu_time[core];
    // What a hypervisor took is nobody's.
    let interrupts = time.irq.unwrap_or_default() + time.softirq.unwrap_or_default();
    let ticks = time.user + time.nice + time.system + interrupts;
    ticks as f64 / procfs::ticks_per_second() as f64
}

/// `VmHWM` of a process, in bytes. The kernel's own maximum for a child begins at that of the process it was forked from.
pub(crate) fn peak_of(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kib| kib * 1024.0)
}

/// The wait status and CPU seconds of a child that has ended.
#[expect(unsafe_code, reason = "std gives no resource usage of a child")]
fn ended(pid: u32) -> Result<Option<(i32, f64)>, String> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to whole values that live for the call.
    let waited = unsafe { libc::wait4(pid as i32, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    // SAFETY: it was zeroed, which is a value of its type.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    match waited {
        0 => Ok(None),
        pid if pid > 0 => Ok(Some((status, seconds(usage.ru_utime) + seconds(usage.ru_stime)))),
        _ => Err(std::io::Error::last_os_error().to_string()),
    }
}
