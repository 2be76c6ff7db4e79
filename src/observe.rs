//! What the kernel tells of processes and of the machine (procfs).
