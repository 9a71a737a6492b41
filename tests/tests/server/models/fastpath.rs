//! Functions that a client calls by number, without a statement (PQfn): there is no expression that tells the types of
//! their arguments.

use corgipile_tests::Database;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// A connection that speaks the protocol itself: clients hide this part of it.
struct Connection(UnixStream);

impl Connection {
    fn new(db: &mut Database) -> Self {
        let [directory, port, user] = ["unix_socket_directories", "port", "session_authorization"]
            .map(|name| db.value::<String>(&format!("SELECT current_setting('{name}')")));
        let mut stream = UnixStream::connect(format!("{directory}/.s.PGSQL.{port}")).expect("the server's socket");
        let parameters = format!("user\0{user}\0database\0{}\0\0", db.name());
        let mut startup = (parameters.len() as u32 + 8).to_be_bytes().to_vec();
        startup.extend(196_608_u32.to_be_bytes());
        startup.extend(parameters.as_bytes());
        stream.write_all(&startup).expect("the server listens");
        let mut connection = Self(stream);
        connection.answer().expect("it lets us in");
        connection
    }

    /// Calls a function with these arguments, as their types are sent in binary.
    fn call(&mut self, function: u32, arguments: &[Option<&[u8]>]) -> Result<Vec<u8>, String> {
        let mut body = function.to_be_bytes().to_vec();
        body.extend([0, 1, 0, 1]);
        body.extend((arguments.len() as u16).to_be_bytes());
        for argument in arguments {
            body.extend(argument.map_or(-1, |bytes| bytes.len() as i32).to_be_bytes());
            body.extend(argument.unwrap_or_default());
        }
        body.extend([0, 1]);
        let mut message = b"F".to_vec();
        message.extend((body.len() as u32 + 4).to_be_bytes());
        message.extend(body);
        self.0.write_all(&message).expect("the server listens");
        self.answer()
    }

    /// The messages until the server is ready: the result of a call, or the error's fields.
    fn answer(&mut self) -> Result<Vec<u8>, String> {
        let mut answer = Ok(Vec::new());
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).expect("the session goes on");
            let mut body = vec![0; u32::from_be_bytes(head[1..].try_into().expect("four bytes")) as usize - 4];
            self.0.read_exact(&mut body).expect("a whole message");
            match head[0] {
                b'E' => answer = Err(String::from_utf8_lossy(&body).replace('\0', " ")),
                b'V' => answer = Ok(body.get(4..).unwrap_or_default().to_vec()),
                b'Z' => return answer,
                _ => {}
            }
        }
    }
}

#[test]
fn functions_are_called_without_a_statement() {
    let mut db = Database::with_small_table(100);
    db.run("SELECT corgipile_train('t', max_epochs => 1, name => 'm')");
    let document: String = db.value("SELECT corgipile_export('m')::text");
    let mut connection = Connection::new(&mut db);
    let import: u32 = db.value("SELECT 'corgipile_import(jsonb, text)'::regprocedure::oid");
    let model = [b"\x01", document.as_bytes()].concat();
    let id = connection.call(import, &[Some(&model), Some(b"imported")]).expect("a model");
    let id = i64::from_be_bytes(id.try_into().expect("a bigint"));
    assert_eq!(db.line(&format!("SELECT name FROM corgipile.models WHERE model_id = {id}")), "imported");
    // whatever else can be called so gives no internal error for NULLs
    let functions = db.rows(
        "SELECT p.oid, p.pronargs::int, p.oid::regprocedure::text
           FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.objid JOIN pg_extension AS e ON e.oid = d.refobjid
          WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'corgipile'
            AND p.prokind = 'f' AND NOT p.proretset
            AND NOT EXISTS (SELECT FROM unnest(p.proargtypes) AS a JOIN pg_type AS t ON t.oid = a WHERE t.typtype = 'p')
            AND p.prorettype <> 'trigger'::regtype",
        &[],
    );
    assert!(functions.len() > 30, "{}", functions.len());
    for row in functions {
        let (function, arguments, name): (u32, i32, String) = (row.get(0), row.get(1), row.get(2));
        if let Err(error) = connection.call(function, &vec![None; arguments as usize]) {
            assert!(!error.contains("CXX000"), "{name}: {error}");
        }
    }
}
