//! Claims about the machine.
