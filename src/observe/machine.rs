//! What the machine is: facts that stand in every result. Each is absent where the kernel does not tell it.

mod cgroup;
mod hypervisor;
mod topology;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::{kilobytes, read};
use topology::Topology;

/// The machine as the kernel describes it to this process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    /// The model of the first CPU.
    pub cpu_model: Option<String>,
    /// CPU packages in use.
    pub sockets: Option<u32>,
    /// Physical cores in use.
    pub cores: Option<u32>,
    /// CPUs as the scheduler sees them, in use.
    pub threads: Option<u32>,
    /// The frequency governor; several, in order of the alphabet and joined by `, `, when CPUs differ.
    pub governor: Option<String>,
    /// Whether the CPU may run faster than its nominal frequency.
    pub turbo: Option<bool>,
    /// The release of the kernel, as `uname -r` tells it.
    pub kernel: Option<String>,
    /// Memory that the kernel manages, in bytes.
    pub memory: Option<u64>,
    /// Whether the machine is a virtual one.
    pub virtualized: Option<bool>,
    /// The hypervisor's name.
    pub hypervisor: Option<String>,
    /// The most CPU time per time that the control groups of this process allow, in cores.
    pub cpu_limit: Option<f64>,
    /// The most memory that the control groups of this process allow, in bytes.
    pub memory_limit: Option<u64>,
    /// The name of the distribution (`PRETTY_NAME` of os-release).
    pub distribution: Option<String>,
    /// The type of the file system that holds the directory asked for, such as `ext4`.
    pub file_system: Option<String>,
}

/// Reads all facts; `directory` is where the file system is looked at. Takes some milliseconds.
#[must_use]
pub fn machine(directory: &Path) -> Machine {
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let topology = Topology::read(Path::new("/sys/devices/system/cpu"));
    let mounts = read("/proc/self/mountinfo").unwrap_or_default();
    let limits = cgroup::limits(&read("/proc/self/cgroup").unwrap_or_default(), &mounts);
    let hypervisor = hypervisor::name(&cpuinfo);
    Machine {
        cpu_model: ["model name", "cpu model", "cpu"].iter().find_map(|key| cpu_field(&cpuinfo, key)),
        sockets: topology.sockets,
        cores: topology.cores,
        threads: topology.threads,
        governor: topology.governor,
        turbo: topology.turbo,
        kernel: rustix::system::uname().release().to_str().ok().map(str::to_owned),
        memory: read("/proc/meminfo").ok().and_then(|text| kilobytes(&text, "MemTotal")),
        virtualized: hypervisor::present(&cpuinfo).or(hypervisor.is_some().then_some(true)),
        hypervisor,
        cpu_limit: limits.cpu,
        memory_limit: limits.memory,
        distribution: ["/etc/os-release", "/usr/lib/os-release"].iter().find_map(|path| pretty_name(&read(path).ok()?)),
        file_system: file_system(directory, &mounts),
    }
}

/// The value of the first line `KEY : VALUE` of `/proc/cpuinfo`.
fn cpu_field(cpuinfo: &str, key: &str) -> Option<String> {
    let value = cpuinfo.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == key)?.1.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// `PRETTY_NAME` of an os-release file, which is quoted as in a shell.
fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    let bare = ['"', '\''].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value);
    let mut name = String::new();
    let mut characters = bare.chars();
    while let Some(character) = characters.next() {
        name.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    (!name.is_empty()).then_some(name)
}

/// The type of the mount that holds a directory. The kernel tells an open file's mount by number, which is exact where
/// paths and device numbers are not (binds, overlays, subvolumes).
fn file_system(directory: &Path, mountinfo: &str) -> Option<String> {
    let open = File::open(directory).ok()?;
    let facts = read(format!("/proc/self/fdinfo/{}", open.as_raw_fd())).ok()?;
    let number = facts.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let line = mountinfo.lines().find(|line| line.split(' ').next() == Some(number))?;
    let (_, after) = line.split_once(" - ")?;
    after.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_distribution_is_unquoted() {
        assert_eq!(pretty_name("ID=debian\nPRETTY_NAME=\"A \\\"B\\\" \\$1\"\n").as_deref(), Some("A \"B\" $1"));
        assert_eq!(pretty_name("PRETTY_NAME='Alpine Linux v3'\n").as_deref(), Some("Alpine Linux v3"));
        assert_eq!(pretty_name("PRETTY_NAME=Void\n").as_deref(), Some("Void"));
        assert_eq!(pretty_name("PRETTY_NAME=\"\"\nID=x\n"), None);
        assert_eq!(pretty_name("NAME=x\n"), None);
    }

    #[test]
    fn a_field_of_cpuinfo_is_found_by_its_whole_name() {
        let text = "processor\t: 0\ncpu MHz\t\t: 2100\ncpu\t\t: POWER9, altivec supported\nmodel name\t:\n";
        assert_eq!(cpu_field(text, "cpu").as_deref(), Some("POWER9, altivec supported"));
        assert_eq!(cpu_field(text, "model name"), None);
        assert_eq!(cpu_field(text, "vendor"), None);
    }
}
