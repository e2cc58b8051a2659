#![no_main]
#![allow(unsafe_code, missing_docs, reason = "what the macro makes")]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lb_fuzz::calls::check(data));
