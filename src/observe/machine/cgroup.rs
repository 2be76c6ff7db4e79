//! What control groups allow this process, in version 2 and in version 1, and where both are mounted. A group cannot
//! have more than those above it, so the smallest limit on the way up counts.

use std::path::{Path, PathBuf};

use procfs::FromBufRead;
use procfs::process::{MountInfo, MountInfos};

use crate::observe::read;

/// A limit of this many bytes or more is the way in which version 1 says that there is none.
const NO_LIMIT: u64 = 1 << 62;

/// The limits in force; absent where there are none.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// In cores.
    pub(super) cpu: Option<f64>,
    /// In bytes.
    pub(super) memory: Option<u64>,
}

/// Reads the limits of the process whose `/proc/PID/cgroup` and `/proc/PID/mountinfo` these are.
pub(super) fn limits(cgroup: &str, mountinfo: &str) -> Limits {
    let mut limits = Limits::default();
    let Ok(mounts) = MountInfos::from_buf_read(mountinfo.as_bytes()) else { return limits };
    for line in cgroup.lines() {
        // NUMBER:CONTROLLERS:PATH; without controllers it is the line of version 2.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        for mount in &mounts.0 {
            let belongs = match mount.fs_type.as_str() {
                "cgroup2" => controllers.is_empty(),
                "cgroup" => controllers.split(',').any(|name| mount.super_options.contains_key(name)),
                _ => false,
            };
            if belongs {
                for folder in way_up(mount, path) {
                    limits.cpu = smallest(limits.cpu, cpu(&folder), f64::min);
                    limits.memory = smallest(limits.memory, memory(&folder), u64::min);
                }
            }
        }
    }
    limits
}

fn smallest<T>(a: Option<T>, b: Option<T>, min: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(min(a, b)),
        (a, b) => a.or(b),
    }
}

/// The folders of a group and of all above it, as far up as the mount shows them. Where the mount shows another part of
/// the hierarchy (a container's), its top is the group's own.
fn way_up(mount: &MountInfo, group: &str) -> Vec<PathBuf> {
    let inner = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    inner.ancestors().map(|path| mount.mount_point.join(path)).collect()
}

fn cpu(folder: &Path) -> Option<f64> {
    let number = |name: &str| read(folder.join(name)).ok()?.trim().parse::<f64>().ok();
    let (quota, period) = match read(folder.join("cpu.max")) {
        Ok(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse().ok()?, period.parse().ok()?)
        }
        Err(_) => (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?),
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn memory(folder: &Path) -> Option<u64> {
    let text = ["memory.max", "memory.limit_in_bytes"].iter().find_map(|name| read(folder.join(name)).ok())?;
    text.trim().parse().ok().filter(|&bytes| bytes < NO_LIMIT)
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
    fn version_2_takes_the_smallest_on_the_way_up() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                ("a/cpu.max", "150000 100000"),
                ("a/memory.max", "max"),
                ("a/b/cpu.max", "max 100000"),
                ("a/b/memory.max", "1073741824"),
                ("other/cpu.max", "1000 100000"),
            ],
        );
        let mounts = format!("31 23 0:28 / {} rw,relatime - cgroup2 cgroup2 rw\n", folder.path().display());
        assert_eq!(limits("0::/a/b\n", &mounts), Limits { cpu: Some(1.5), memory: Some(1 << 30) });
        assert_eq!(limits("0::/a\n", &mounts), Limits { cpu: Some(1.5), memory: None });
        assert_eq!(limits("0::/\n", &mounts), Limits::default());
        assert_eq!(limits("", ""), Limits::default());
    }

    #[test]
    fn version_1_is_read_where_its_controllers_are_mounted() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                ("cpu/cpu.cfs_quota_us", "50000"),
                ("cpu/cpu.cfs_period_us", "100000"),
                ("memory/memory.limit_in_bytes", "9223372036854771712"),
                ("memory/c/memory.limit_in_bytes", "536870912"),
            ],
        );
        let at = folder.path().display();
        // The cpu controller is mounted as a container sees it: its own group is the top.
        let mounts = format!(
            "31 23 0:28 /box/1 {at}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             32 23 0:29 / {at}/memory rw - cgroup cgroup rw,memory\n\
             33 23 0:30 / {at}/none rw - cgroup2 cgroup2 rw\n"
        );
        let groups = "4:memory:/c\n2:cpu,cpuacct:/box/1\n0::/\n";
        assert_eq!(limits(groups, &mounts), Limits { cpu: Some(0.5), memory: Some(1 << 29) });
        write(folder.path(), &[("cpu/cpu.cfs_quota_us", "-1")]);
        assert_eq!(limits(groups, &mounts).cpu, None);
    }
}
