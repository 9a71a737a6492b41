//! Function calls by the fastpath protocol: no statement is around them.

use crate::{Cluster, Session};
use std::io::{Read, Result, Write};
use std::os::unix::net::UnixStream;

/// Version 3.0 of the protocol.
const VERSION: u32 = 3 << 16;

impl Cluster {
    /// Calls a function of this signature by the fastpath protocol, in a session of its own, and gives its result as
    /// text; the server's message if there is an error. Arguments are texts; None is NULL.
    ///
    /// # Errors
    /// The server ends the session.
    pub fn call_by_fastpath(&self, signature: &str, arguments: &[Option<&str>]) -> Result<String> {
        let function: u32 = Session::value(&mut self.session(), &format!("SELECT '{signature}'::regprocedure::oid"));
        let mut stream = UnixStream::connect(self.directory().join(".s.PGSQL.5432"))?;
        let mut start = VERSION.to_be_bytes().to_vec();
        start.extend(b"user\0postgres\0database\0postgres\0\0");
        stream.write_all(&with_length(&start))?;
        answer(&mut stream)?;
        let mut call = function.to_be_bytes().to_vec();
        call.extend(0_u16.to_be_bytes()); // all arguments are texts
        call.extend((arguments.len() as u16).to_be_bytes());
        for argument in arguments {
            let length = argument.map_or(-1, |text| text.len() as i32);
            call.extend(length.to_be_bytes());
            call.extend(argument.unwrap_or_default().as_bytes());
        }
        call.extend(0_u16.to_be_bytes()); // and so is the result
        stream.write_all(b"F")?;
        stream.write_all(&with_length(&call))?;
        answer(&mut stream)
    }
}

/// A message with its length, which counts itself, in front.
fn with_length(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32 + 4).to_be_bytes(), message].concat()
}

/// Reads messages until the server is ready for more: the value that was returned, or the error.
fn answer(stream: &mut UnixStream) -> Result<String> {
    let mut value = Vec::new();
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let mut message = vec![0; u32::from_be_bytes(length) as usize - 4];
        stream.read_exact(&mut message)?;
        match kind {
            b'V' => value = message.split_off(4),
            b'E' => value = message,
            b'Z' => return Ok(String::from_utf8_lossy(&value).into_owned()),
            _ => {}
        }
    }
}
