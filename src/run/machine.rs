//! What the machine is, and what it did meanwhile.

use std::path::Path;
use std::time::Duration;

use crate::event::{MachineFacts, Metrics};
use crate::observe::machine::machine;
use crate::observe::meter::{Meter, Reading};

/// The shortest time over which the kernel's ticks of 1/100 s say anything.
const SHORTEST: Duration = Duration::from_millis(200);

/// What the machine is.
pub(super) fn facts(run_dir: &Path) -> MachineFacts {
    let machine = machine(run_dir);
    let unnamed = (machine.virtualized == Some(true)).then(|| "unknown".to_owned());
    MachineFacts {
        cpu: machine.cpu_model,
        sockets: machine.sockets.map(u64::from),
        cores: machine.cores.map(u64::from),
        threads: machine.threads.map(u64::from),
        governor: machine.governor,
        turbo: machine.turbo,
        kernel: machine.kernel,
        memory: machine.memory,
        hypervisor: machine.hypervisor.or(unnamed),
        cgroup_cpus: machine.cpu_limit,
        cgroup_memory: machine.memory_limit,
        distribution: machine.distribution,
        run_dir_fs: machine.file_system,
    }
}

/// How busy the machine was at one moment.
pub(super) struct Busy {
    meter: Option<(Meter, Reading)>,
}

impl Busy {
    /// Reads it.
    pub(super) fn now() -> Self {
        let reading = Meter::open().and_then(|meter| meter.read().map(|reading| (meter, reading)));
        Self { meter: reading.ok() }
    }

    /// What it did since, when `own` cores were kept busy by what belongs to the run.
    pub(super) fn since(&self, own: f64) -> Metrics {
        let mut metrics = Metrics::new();
        let window = self.meter.as_ref().and_then(|(meter, then)| meter.read().ok()?.since(then));
        if let Some(window) = window.filter(|window| window.elapsed >= SHORTEST) {
            metrics.extend(window.steal.map(|steal| ("machine.steal".to_owned(), steal)));
            metrics.insert("machine.other".to_owned(), window.other(own));
            // The two clocks behind the share are not the same: it may come out a hair above the whole.
            let pressure = window.pressure.map(|pressure| pressure.min(1.0));
            metrics.extend(pressure.map(|pressure| ("machine.pressure.cpu".to_owned(), pressure)));
        }
        metrics
    }
}
