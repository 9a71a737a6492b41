//! The file of the library: which build it is, and whether it still is what this process has loaded.
//!
//! A session goes on with the library that it has loaded when an upgrade puts another file there. Processes that it
//! starts would load that one. What processes of different builds share they may read differently, so they share
//! nothing.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Where a file is, and which one of those that were there.
struct File {
    path: PathBuf,
    device: u64,
    inode: u64,
}

thread_local! {
    static BUILD: Cell<&'static CStr> = const { Cell::new(c"") };
    static LOADED: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// The number of this build, of at most 16 digits.
pub fn build() -> &'static CStr {
    BUILD.get()
}

/// Takes note of the number, and of the file, which this process has just loaded. The processes of a server that has
/// `preloaded` it are copies of one that has, and load nothing.
pub fn install(build: &'static CStr, preloaded: bool) {
    BUILD.set(build);
    if preloaded {
        return;
    }
    let file = path().and_then(|path| {
        let found = fs::metadata(&path).ok()?;
        Some(File { path, device: found.dev(), inode: found.ino() })
    });
    LOADED.set(file);
}

/// Would a process that is started now load another file, or none?
pub fn is_replaced() -> bool {
    LOADED.with_borrow(|loaded| {
        loaded.as_ref().is_some_and(|file| {
            let now = fs::metadata(&file.path);
            !now.is_ok_and(|now| (now.dev(), now.ino()) == (file.device, file.inode))
        })
    })
}

/// Where the library was loaded from.
fn path() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked about, here that of a constant of the library; if it is known, all is filled in,
    // and the name is there as long as the library.
    let name = unsafe {
        if libc::dladdr(build().as_ptr().cast(), info.as_mut_ptr()) == 0 {
            return None;
        }
        CStr::from_ptr(info.assume_init().dli_fname)
    };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}
