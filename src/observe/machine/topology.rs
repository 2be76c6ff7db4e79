//! Sockets, cores, threads and frequency: `/sys/devices/system/cpu`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::observe::read;

/// What sysfs tells of the CPUs in use.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Topology {
    pub(super) sockets: Option<u32>,
    pub(super) cores: Option<u32>,
    pub(super) threads: Option<u32>,
    pub(super) governor: Option<String>,
    pub(super) turbo: Option<bool>,
}

impl Topology {
    /// Reads the folder that holds `online` and a folder for each CPU.
    pub(super) fn read(folder: &Path) -> Topology {
        let line =
            |path: &str| read(folder.join(path)).ok().map(|text| text.trim().to_owned()).filter(|l| !l.is_empty());
        let cpus = line("online").and_then(|list| cpu_list(&list)).unwrap_or_default();
        // The same line for every CPU of a core (or of a socket), and another for every core: counted, they give the
        // number of cores, whatever the numbers that the firmware gave them.
        let distinct = |files: [&str; 2]| -> Option<u32> {
            let of_cpu = |cpu: &u32| files.iter().find_map(|file| line(&format!("cpu{cpu}/topology/{file}")));
            let groups: Option<BTreeSet<String>> = cpus.iter().map(of_cpu).collect();
            count(groups?.len())
        };
        let governors: BTreeSet<String> =
            cpus.iter().filter_map(|cpu| line(&format!("cpu{cpu}/cpufreq/scaling_governor"))).collect();
        Topology {
            sockets: distinct(["package_cpus_list", "core_siblings_list"]),
            cores: distinct(["core_cpus_list", "thread_siblings_list"]),
            threads: count(cpus.len()),
            governor: (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join(", ")),
            turbo: flag(line("intel_pstate/no_turbo")).map(|off| !off).or_else(|| flag(line("cpufreq/boost"))),
        }
    }
}

fn count(number: usize) -> Option<u32> {
    u32::try_from(number).ok().filter(|&number| number > 0)
}

fn flag(text: Option<String>) -> Option<bool> {
    match text?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// The CPUs of a list such as `0-3,6`.
fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn two_sockets_of_two_cores_of_two_threads_with_one_cpu_offline() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("online", "0-6"), ("intel_pstate/no_turbo", "1")]);
        for cpu in 0..7 {
            let (socket, core) = (["0-3", "4-6"][cpu / 4], ["0-1", "2-3", "4-5", "6"][cpu / 2]);
            write(
                folder.path(),
                &[
                    (&format!("cpu{cpu}/topology/package_cpus_list"), socket),
                    (&format!("cpu{cpu}/topology/core_cpus_list"), core),
                    (&format!("cpu{cpu}/cpufreq/scaling_governor"), if cpu == 3 { "powersave" } else { "performance" }),
                ],
            );
        }
        let expected = Topology {
            sockets: Some(2),
            cores: Some(4),
            threads: Some(7),
            governor: Some("performance, powersave".to_owned()),
            turbo: Some(false),
        };
        assert_eq!(Topology::read(folder.path()), expected);
    }

    #[test]
    fn what_is_not_told_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Topology::read(folder.path()), Topology::default());
        write(folder.path(), &[("online", "0"), ("cpufreq/boost", "1"), ("cpu0/topology/core_siblings_list", "0")]);
        let expected = Topology { threads: Some(1), turbo: Some(true), sockets: Some(1), ..Topology::default() };
        assert_eq!(Topology::read(folder.path()), expected);
    }
}
