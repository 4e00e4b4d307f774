#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| softswitch_fuzz::config::run(data));
