//! What the kernel tells, held against what others say of the same thing.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bakeoff::observe::cpu::{self, CpuSample, ThreadSample};
use bakeoff::observe::machine::machine;
use bakeoff::observe::memory::{self, Memory};
use bakeoff::observe::meter::Meter;
use bakeoff::observe::port::free_port;
use bakeoff::observe::socket::{Ownership, holders, listeners, owner};

/// A Python program that prints lines and waits for one between its steps.
struct Script {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Script {
    fn start(text: &str) -> Script {
        let mut command = Command::new("python3");
        let text = format!("import os, resource, socket, subprocess, sys, threading, time\n{text}");
        command.args(["-c", &text]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Script { child, output }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The value of a field of `lscpu`; none when it prints none.
fn lscpu(field: &str) -> Option<String> {
    let text = output("lscpu", &[]);
    let value = text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == field)?.1;
    Some(value.trim().to_owned())
}

const MIB: u64 = 1 << 20;

#[test]
fn the_peak_outlives_what_was_resident() {
    let mut script = Script::start(
        "block = b'x' * (100 << 20)\n\
         print('held', flush=True); sys.stdin.readline()\n\
         del block\n\
         print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True); sys.stdin.readline()",
    );
    assert_eq!(script.line(), "held");
    let held = Memory::of(script.pid()).unwrap();
    assert!(held.resident > 100 * MIB && held.resident < 150 * MIB, "{held:?}");
    script.go_on();
    let rusage = script.line().parse::<u64>().unwrap() * 1024;
    let freed = Memory::of(script.pid()).unwrap();
    assert!(freed.resident + 90 * MIB < held.resident, "{held:?} {freed:?}");
    // Linux starts the rusage of a child at the peak of the process that spawned it, so it may be the larger one.
    assert!(freed.peak.abs_diff(rusage) < 2 * MIB || rusage > freed.peak, "{freed:?} {rusage}");
    assert!(freed.peak > 100 * MIB && freed.peak < 150 * MIB, "{freed:?}");
}

#[test]
fn memory_of_a_tree_counts_shared_pages_once_in_pss() {
    // A fork shares 64 MiB with its parent until one of them writes.
    let mut script = Script::start(
        "block = bytearray(b'x' * (64 << 20))\n\
         child = os.fork()\n\
         if child == 0:\n    time.sleep(60); os._exit(0)\n\
         print(child, flush=True); sys.stdin.readline(); os.kill(child, 9)",
    );
    let fork: u32 = script.line().parse().unwrap();
    let pids = [script.pid(), fork, u32::MAX];
    let rss = memory::rss_of(&pids).unwrap();
    let pss = memory::pss_of(&pids).unwrap().unwrap();
    assert!(rss > 128 * MIB, "{rss}");
    assert!(pss > 64 * MIB && pss < 100 * MIB, "{pss}");
    script.go_on();
}

#[test]
fn a_process_that_is_gone_or_a_zombie_has_no_memory() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    let deadline = Instant::now() + Duration::from_secs(10);
    while Memory::of(pid).is_some() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    // A zombie is there, with its time.
    assert_eq!((Memory::of(pid), memory::rss_of(&[pid]), memory::pss_of(&[pid]).unwrap()), (None, None, None));
    assert!(CpuSample::of(&[pid]).is_some());
    child.wait().unwrap();
    assert!(CpuSample::of(&[pid]).is_none());
    assert_eq!(memory::rss_of(&[pid]), None);
    assert_eq!(owner(1, &[pid]), None);
}

#[test]
fn cpu_time_is_that_of_rusage_with_ended_threads_and_children() {
    // A thread that has ended, a child that was waited for, and one whose parent was waited for.
    let mut script = Script::start(
        "def burn(seconds):\n    end = time.thread_time() + seconds\n    while time.thread_time() < end: pass\n\
         thread = threading.Thread(target=burn, args=(0.15,)); thread.start(); thread.join()\n\
         burn(0.1)\n\
         inner = \"import time\\nwhile time.process_time() < 0.15: pass\"\n\
         outer = f'import subprocess, sys\\nsubprocess.run([sys.executable, \"-c\", {inner!r}])\\n' + inner\n\
         subprocess.run([sys.executable, '-c', outer])\n\
         print('burnt', flush=True); sys.stdin.readline()\n\
         r = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]\n\
         print(sum(u.ru_utime for u in r), sum(u.ru_stime for u in r), flush=True); sys.stdin.readline()",
    );
    assert_eq!(script.line(), "burnt");
    let sample = CpuSample::of(&[script.pid()]).unwrap();
    script.go_on();
    let line = script.line();
    let (user, system) = line.split_once(' ').unwrap();
    let (user, system): (f64, f64) = (user.parse().unwrap(), system.parse().unwrap());
    assert!(user + system > 0.5, "{line}");
    assert_eq!(sample.processes, 1);
    // Each number of /proc is rounded down to a tick; rusage was asked a moment later.
    let tick = cpu::tick().as_secs_f64();
    assert!((sample.total.as_secs_f64() - user - system).abs() < 3.0 * tick, "{sample:?} {line}");
    assert!((sample.user.as_secs_f64() - user).abs() < 3.0 * tick, "{sample:?} {line}");
    assert!((sample.system.as_secs_f64() - system).abs() < 3.0 * tick, "{sample:?} {line}");
}

#[test]
fn the_total_is_finer_than_a_tick() {
    let mut script = Script::start(
        "print('', flush=True); sys.stdin.readline()\n\
         end = time.process_time() + 0.003\n\
         while time.process_time() < end: pass\n\
         print('', flush=True); sys.stdin.readline()",
    );
    script.line();
    let before = CpuSample::of(&[script.pid()]).unwrap();
    script.go_on();
    script.line();
    let spent = CpuSample::of(&[script.pid()]).unwrap().since(&before).unwrap().total;
    assert!(spent >= Duration::from_millis(3) && spent < Duration::from_millis(8), "{spent:?}");
}

#[test]
fn a_tick_is_what_getconf_says() {
    let per_second: u32 = output("getconf", &["CLK_TCK"]).parse().unwrap();
    assert_eq!(cpu::tick(), Duration::from_secs(1) / per_second);
}

#[test]
fn the_meter_sees_a_busy_process_and_no_more_than_the_machine() {
    let meter = Meter::open().unwrap();
    let script = Script::start("while True: pass");
    let pids = [script.pid()];
    let (before, own_before) = (meter.read().unwrap(), CpuSample::of(&pids).unwrap());
    std::thread::sleep(Duration::from_millis(1000));
    let (after, own_after) = (meter.read().unwrap(), CpuSample::of(&pids).unwrap());
    drop(script);
    let window = after.since(&before).unwrap();
    let own = own_after.since(&own_before).unwrap().total.as_secs_f64() / window.elapsed.as_secs_f64();
    let cores: f64 = output("nproc", &["--all"]).parse().unwrap();
    assert!(window.busy > own * 0.8, "{window:?} {own}");
    assert!(window.busy + window.steal.unwrap_or(0.0) < cores * 1.1, "{window:?}");
    assert!((window.other(own) - (window.busy - own).max(0.0)).abs() < 1e-9);
    assert_eq!(window.pressure.is_some(), std::fs::read("/proc/pressure/cpu").is_ok());
    assert!(window.pressure.is_none_or(|share| (0.0..=1.05).contains(&share)), "{window:?}");
}

#[test]
fn machine_facts_are_those_of_lscpu_and_its_kin() {
    let directory = std::env::temp_dir();
    let facts = machine(&directory);
    assert_eq!(facts.kernel.unwrap(), output("uname", &["-r"]));
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let kilobytes: u64 = meminfo.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_eq!(facts.memory, Some(kilobytes * 1024));
    // Lines of lscpu -p: CPU,CORE,SOCKET of every CPU in use.
    let rows = output("lscpu", &["-p=CPU,CORE,SOCKET"]);
    let rows: Vec<Vec<&str>> = rows.lines().filter(|l| !l.starts_with('#')).map(|l| l.split(',').collect()).collect();
    let distinct = |columns: std::ops::Range<usize>| {
        Some(rows.iter().map(|row| &row[columns.clone()]).collect::<std::collections::HashSet<_>>().len() as u32)
    };
    assert_eq!(facts.threads, distinct(0..1));
    assert_eq!(facts.cores, distinct(1..3));
    assert_eq!(facts.sockets, distinct(2..3));
    if cfg!(target_arch = "x86_64") {
        assert_eq!(facts.cpu_model, lscpu("Model name"));
        assert_eq!(facts.virtualized, Some(lscpu("Hypervisor vendor").is_some()));
        if let (Some(vendor), Some(name)) = (lscpu("Hypervisor vendor"), &facts.hypervisor) {
            let known = [("KVM", "KVM"), ("Microsoft", "Hyper-V"), ("VMware", "VMware"), ("Xen", "Xen")];
            assert!(known.iter().all(|&(theirs, ours)| vendor != theirs || name == ours), "{vendor} {name}");
        }
    }
    let shell = output("sh", &["-c", ". /etc/os-release && echo \"$PRETTY_NAME\""]);
    assert_eq!(facts.distribution.unwrap(), shell);
    for place in [&directory, Path::new("/proc"), Path::new("/dev/shm")] {
        let theirs = output("findmnt", &["-n", "-o", "FSTYPE", "-T", place.to_str().unwrap()]);
        assert_eq!(machine(place).file_system.as_deref(), theirs.lines().last(), "{}", place.display());
    }
    assert_eq!(machine(Path::new("/nowhere/at/all")).file_system, None);
}

#[test]
fn a_listener_is_seen_with_its_address_and_its_holder() {
    let own = std::process::id();
    let mut sockets = vec![TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()];
    sockets.push(TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap());
    // Not every machine has IPv6.
    sockets.extend(TcpListener::bind((Ipv6Addr::LOCALHOST, 0)));
    for socket in &sockets {
        let address = socket.local_addr().unwrap();
        let found = listeners(address.port()).unwrap();
        assert_eq!(found.iter().map(|l| l.address).collect::<Vec<_>>(), [address]);
        assert_eq!(owner(found[0].inode, &[u32::MAX, own]), Some(own));
        assert!(holders(found[0].inode).iter().any(|holder| holder.pid == own));

        let ours = Ownership::of(address.port(), &[own]).unwrap();
        assert!(ours.is_ours());
        assert_eq!(ours.is_loopback_only(), address.ip().is_loopback());
    }
    let port = sockets[0].local_addr().unwrap().port();
    drop(sockets);
    let nobody = Ownership::of(port, &[own]).unwrap();
    assert!(nobody.ours.is_empty() && !nobody.is_ours());
}

#[test]
fn a_socket_of_another_process_is_foreign_and_its_holder_has_a_name() {
    let mut script = Script::start(
        "s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); sys.stdin.readline()",
    );
    let port: u16 = script.line().parse().unwrap();
    let seen = Ownership::of(port, &[std::process::id()]).unwrap();
    assert!(!seen.is_ours() && seen.ours.is_empty());
    let (listener, holders) = &seen.foreign[0];
    assert_eq!(listener.address.port(), port);
    assert_eq!(holders.iter().map(|h| h.pid).collect::<Vec<_>>(), [script.pid()]);
    assert_eq!(holders[0].name, std::fs::read_to_string(format!("/proc/{}/comm", script.pid())).unwrap().trim_end());

    // Two processes on one port: what is ours is not ours alone.
    let mut other = Script::start(&format!(
        "s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n\
         s.bind(('127.0.0.2', {port})); s.listen(); print('', flush=True); sys.stdin.readline()"
    ));
    other.line();
    let seen = Ownership::of(port, &[script.pid()]).unwrap();
    assert_eq!((seen.ours.len(), seen.foreign.len(), seen.is_ours()), (1, 1, false));
    assert!(Ownership::of(port, &[script.pid(), other.pid()]).unwrap().is_ours());
}

#[test]
fn free_ports_are_distinct_and_outside_the_kernels_range() {
    let range = output("sysctl", &["-n", "net.ipv4.ip_local_port_range"]);
    let (first, last) = range.split_once('\t').unwrap();
    let (first, last): (u16, u16) = (first.parse().unwrap(), last.parse().unwrap());
    let ports: Vec<u16> = (0..200).map(|_| free_port().unwrap()).collect();
    assert_eq!(ports.iter().collect::<std::collections::HashSet<_>>().len(), ports.len());
    // Where the kernel took everything for clients there is no other place.
    let anything_left = first > 1024 || last < u16::MAX;
    for &port in &ports {
        assert!(port >= 1024);
        assert!(!anything_left || !(first..=last).contains(&port), "{port} in {range}");
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, ports[0])).unwrap();
}

#[test]
fn another_user_than_the_owner_gets_an_error_for_pss_and_no_wrong_sum() {
    // Only root can start a process as another user; without that there is nothing to see.
    if output("id", &["-u"]) != "0" {
        return;
    }
    let exe = std::env::current_exe().unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    // Run as nobody, this very test binary may be in a folder that nobody cannot enter: then nothing is shown.
    let result = Command::new(exe)
        .args(["--ignored", "--exact", "pss_of_the_process_named_in_the_environment_is_denied"])
        .env("DENIED_PID", child.id().to_string())
        .current_dir("/")
        .uid(65534)
        .output();
    let _ = child.kill();
    let _ = child.wait();
    if let Ok(output) = result {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
#[ignore = "run by another test, as another user"]
fn pss_of_the_process_named_in_the_environment_is_denied() {
    let Ok(pid) = std::env::var("DENIED_PID") else { return };
    let pid: u32 = pid.parse().unwrap();
    let error = memory::pss_of(&[pid]).unwrap_err().to_string();
    assert!(error.starts_with(&format!("/proc/{pid}/smaps_rollup cannot be read: ")), "{error}");
    assert!(memory::rss_of(&[pid]).is_some());
}

#[test]
fn time_of_a_child_is_not_lost_when_it_is_waited_for() {
    let mut script = Script::start(
        "child = subprocess.Popen([sys.executable, '-c', 'import sys, time\\nwhile time.process_time() < 0.3: pass\\n\
         print(flush=True); sys.stdin.readline()'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n\
         child.stdout.readline(); print(child.pid, flush=True); sys.stdin.readline()\n\
         child.stdin.close(); os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT); print(flush=True)\n\
         sys.stdin.readline(); child.wait(); print(flush=True); sys.stdin.readline()",
    );
    let pids = [script.pid(), script.line().parse().unwrap()];
    let running = CpuSample::of(&pids).unwrap();
    script.go_on();
    script.line();
    let zombie = CpuSample::of(&pids).unwrap();
    script.go_on();
    script.line();
    let gone = CpuSample::of(&pids).unwrap();
    assert_eq!((running.processes, zombie.processes, gone.processes), (2, 2, 1));
    assert!(running.total >= Duration::from_millis(300), "{running:?}");
    // The end of a process takes some time too; what was used before it is still there, up to the rounding.
    for later in [zombie, gone] {
        assert!(later.total + cpu::tick() * 2 >= running.total, "{running:?} {later:?}");
        assert!(later.total < running.total + Duration::from_millis(150), "{running:?} {later:?}");
    }
}

#[test]
fn the_busiest_thread_of_a_tree_is_found_among_those_that_are_there() {
    // A thread and a child's main thread burn unlike amounts of CPU; a third thread burns most, and ends.
    let mut script = Script::start(
        "def burn(seconds):\n    end = time.thread_time() + seconds\n    while time.thread_time() < end: pass\n\
         child = subprocess.Popen([sys.executable, '-c', 'import sys, time\\nsys.stdin.readline()\\n\
         while time.thread_time() < 0.25: pass\\nprint(flush=True); sys.stdin.readline()'],\
         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n\
         used = []\n\
         def work():\n    go.wait(); burn(0.5); used.append(time.thread_time()); done.set(); stop.wait()\n\
         go, done, stop = threading.Event(), threading.Event(), threading.Event()\n\
         thread = threading.Thread(target=work, daemon=True); thread.start()\n\
         print(child.pid, flush=True); sys.stdin.readline()\n\
         ended = threading.Thread(target=burn, args=(0.9,)); ended.start(); ended.join()\n\
         child.stdin.write('\\n'); child.stdin.flush(); child.stdout.readline()\n\
         go.set(); done.wait(); print(used[0], flush=True); sys.stdin.readline(); child.kill()",
    );
    let child: u32 = script.line().parse().unwrap();
    let tree = [script.pid(), child, u32::MAX];
    let before = [&tree[..], &tree[1..]].map(|pids| ThreadSample::of_tree(pids).unwrap());
    script.go_on();
    let thread: f64 = script.line().parse().unwrap();
    let [whole, of_child] = [&tree[..], &tree[1..]].map(|pids| ThreadSample::of_tree(pids).unwrap());
    // What the threads say of themselves; the kernel's number lags by a scheduler tick.
    let busiest = whole.since(&before[0]).ran.as_secs_f64();
    assert!((busiest / thread - 1.0).abs() < 0.1, "{busiest} {thread}");
    let busiest = of_child.since(&before[1]).ran.as_secs_f64();
    assert!(busiest < 0.5 * thread && busiest > 0.3 * thread, "{busiest} {thread}");
    // A thread that was not there before counts from nothing.
    let new = whole.since(&before[1]).ran.as_secs_f64();
    assert!(new >= 0.9 * thread, "{new} {thread}");
    script.go_on();
    assert_eq!(ThreadSample::of_tree(&[u32::MAX]), None);
}

#[test]
fn the_processors_are_those_that_a_process_is_bound_to() {
    let mut script = Script::start(
        "all = os.sched_getaffinity(0); print(*sorted(all), flush=True); sys.stdin.readline()\n\
         os.sched_setaffinity(0, {max(all)}); print(max(all), flush=True); sys.stdin.readline()",
    );
    for _ in 0..2 {
        let theirs: Vec<usize> = script.line().split(' ').map(|cpu| cpu.parse().unwrap()).collect();
        assert_eq!(cpu::processors(script.pid()), Some(theirs));
        script.go_on();
    }
    assert_eq!(cpu::processors(u32::MAX), None);
}
