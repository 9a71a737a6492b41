//! Puts functions of ours before those by which errors pass through pgrx and Rust: src/pg/memory/errors.rs.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The functions of ours are for this library alone, whatever else the server has loaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    for function in ["CopyErrorData", "errstart", "__cxa_thread_atexit_impl"] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={function}");
    }
}
