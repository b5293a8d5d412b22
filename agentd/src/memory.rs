//! The allocator of a process that mostly waits: few arenas, and what the start took is given back.
//!
//! glibc gives each thread an arena of its own, and each keeps what it once had. Measured with 20 sessions in the store and
//! these limits: 1.7 of the idle daemon's 9.7 MB (PSS) are memory of its own, the rest is the program's text.

/// Threads that allocate share this many arenas: two run at once on a small machine, and the store's thread is the third.
#[cfg(target_env = "gnu")]
const ARENAS: libc::c_int = 2;

/// Blocks from this size on are mapped one by one, and go back as soon as they are free. glibc's own first value; set, it
/// does not grow with the blocks that it sees.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES: libc::c_int = 128 * 1024;

/// Sets the limits; before the first thread.
pub fn limit() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt with integers only, and nobody else allocates meanwhile.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
    }
}

/// Gives free memory back to the system.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes the allocator's own locks and touches free memory only.
    unsafe {
        libc::malloc_trim(0);
    }
}
