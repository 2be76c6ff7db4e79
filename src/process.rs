//! Starts processes through a small launcher, measures exactly that child, and ends its whole tree.
