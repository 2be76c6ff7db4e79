//! Is the machine a virtual one, and whose?

use crate::observe::read;

/// Where the device tree names the hypervisor, on machines that have one.
const DEVICE_TREE: &str = "/proc/device-tree/hypervisor/compatible";

/// Whether a hypervisor shows itself in the flags of the CPU. None where CPUs have no such flag.
pub(super) fn present(cpuinfo: &str) -> Option<bool> {
    let (_, flags) =
        cpuinfo.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == "flags")?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The hypervisor's name, where it tells one.
pub(super) fn name(cpuinfo: &str) -> Option<String> {
    let signature = if present(cpuinfo) == Some(true) { signature() } else { None };
    signature
        .map(|text| known(&text).unwrap_or(&text).to_owned())
        .or_else(|| read("/sys/hypervisor/type").ok())
        .or_else(|| read(DEVICE_TREE).ok())
        .map(|text| text.trim_matches(['\0', ' ', '\n']).to_owned())
        .filter(|text| !text.is_empty())
}

/// The twelve bytes that CPUID leaf 0x4000_0000 holds by convention. To be asked only where a hypervisor is present.
#[cfg(target_arch = "x86_64")]
fn signature() -> Option<String> {
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
    let text = str::from_utf8(&bytes).ok()?.trim_matches(['\0', ' ']);
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    is_plain.then(|| text.to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn signature() -> Option<String> {
    None
}

/// What people call the hypervisor of a signature.
fn known(signature: &str) -> Option<&'static str> {
    Some(match signature {
        "KVMKVMKVM" | "Linux KVM Hv" => "KVM",
        "TCGTCGTCGTCG" => "QEMU",
        "VMwareVMware" => "VMware",
        "Microsoft Hv" => "Hyper-V",
        "XenVMMXenVMM" => "Xen",
        "VBoxVBoxVBox" => "VirtualBox",
        "bhyve bhyve" => "bhyve",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_of_the_cpu_decides_and_its_absence_says_nothing() {
        assert_eq!(present("flags\t\t: fpu vme hypervisor lahf_lm\n"), Some(true));
        assert_eq!(present("flags\t\t: fpu vme hypervisors\nvmx flags\t: hypervisor\n"), Some(false));
        assert_eq!(present("Features\t: fp asimd\n"), None);
    }
}
