//! Any bytes through the parser and the decision (`one.rs`).
//!
//! Coverage alone, no address sanitizer: the policy has no `unsafe`.

#![no_main]
// Of the sources it holds, the target calls only a part.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "the policy's sources are included, not linked")]

#[path = "../one.rs"]
mod one;
#[path = "../../../agentd/src/policy/mod.rs"]
mod policy;

use std::time::Duration;

use libfuzzer_sys::fuzz_target;

/// The bar is 50 ms for what we ship. Instrumented and with debug assertions a decision costs several times as much; `replay`
/// holds what the fuzzer kept to the bar itself.
const LONGEST: Duration = Duration::from_millis(500);

fuzz_target!(|data: &[u8]| {
    one::one(data, LONGEST);
});
