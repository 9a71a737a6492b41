//! A server of a test's own, for what cannot be done to the one that all tests share.

use crate::{FailingMemory, Network, Session, fixtures, server};
use postgres::{Config, NoTls};
use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take to start or to recover on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster with corgipile and the fixtures' functions in its database `postgres`.
///
/// It lies next to the shared server's, so that `scripts/with-postgres` ends and deletes it even if the tests are
/// killed. Autovacuum is off: what is pinned or locked is the test's own doing.
/// Segments of dynamic shared memory are files of the data directory, so that those that stay can be counted.
pub struct Cluster {
    directory: PathBuf,
    server: Child,
    config: Config,
}

impl Cluster {
    /// Makes and starts a cluster with these settings, as `name = value`.
    pub fn new(settings: &[&str]) -> Self {
        let mut settings = settings.to_vec();
        settings.push("dynamic_shared_memory_type = mmap");
        Self::start(&settings, Surroundings::default())
    }

    /// A cluster whose processes are refused memory when the test says so; or why it is not available here.
    ///
    /// # Errors
    /// There is no compiler, or no GNU C library.
    pub fn with_failing_memory(settings: &[&str]) -> Result<(Self, FailingMemory), String> {
        let memory = FailingMemory::new()?;
        let mut settings = settings.to_vec();
        settings.push("dynamic_shared_memory_type = mmap");
        let environment = memory.environment();
        Ok((Self::start(&settings, Surroundings { environment, ..Surroundings::default() }), memory))
    }

    /// A cluster whose processes have these variables in their environment.
    pub fn with_environment(variables: &[(&'static str, &str)]) -> Self {
        let environment = variables.iter().map(|(name, value)| (*name, PathBuf::from(value))).collect();
        Self::start(&[], Surroundings { environment, ..Surroundings::default() })
    }

    /// A cluster whose `/dev/shm` has this many bytes, in a mount namespace of its own. None if this machine does not
    /// let us make one.
    pub fn with_small_shared_memory(bytes: u64, settings: &[&str]) -> Option<Self> {
        Self::with_small(Small { bytes, place: "/dev/shm" }, "posix", settings)
    }

    /// As [`Cluster::with_small_shared_memory`], but segments are files of the data directory,
    /// on a disk with this many bytes.
    pub fn with_small_disk_for_segments(bytes: u64, settings: &[&str]) -> Option<Self> {
        Self::with_small(Small { bytes, place: "data/pg_dynshmem" }, "mmap", settings)
    }

    /// A cluster in a network namespace of its own, and the way to it for who comes by TCP, to port 5432, without a
    /// password. None if this machine does not let us make one.
    pub fn in_own_network(settings: &[&str]) -> Option<(Self, Network)> {
        if owner().is_none() || !Network::is_possible() {
            return None;
        }
        let mut settings = settings.to_vec();
        settings.extend(["dynamic_shared_memory_type = mmap", "listen_addresses = '0.0.0.0'"]);
        let cluster = Self::start(&settings, Surroundings { own_network: true, ..Surroundings::default() });
        let network = Network::new(cluster.pid());
        cluster.add_rule("host all all 169.254.0.0/16 trust");
        Some((cluster, network))
    }

    /// Puts a rule before all others of who may log in, and how.
    pub(crate) fn add_rule(&self, rule: &str) {
        let path = self.data().join("pg_hba.conf");
        let rules = fs::read_to_string(&path).expect("initdb writes it");
        fs::write(&path, format!("{rule}\n{rules}")).expect("it can be written");
        self.session().run("SELECT pg_reload_conf()");
    }

    /// A cluster of the PostgreSQL that the shared server is a copy of, where there is no corgipile: no library,
    /// no script, and nothing preloaded. None if the shared server is no copy, or of one that has it.
    pub fn without_corgipile(settings: &[&str]) -> Option<Self> {
        let cluster = Self::of_the_original(settings)?;
        let available = "SELECT count(*) FROM pg_available_extensions WHERE name = 'corgipile'";
        (cluster.session().line(available) == "0").then_some(cluster)
    }

    /// A cluster of the PostgreSQL that the shared server is a copy of, which finds the extension in a directory with
    /// `lib` and `share`, as in a volume with an image of it. None if the shared server is no copy. From PostgreSQL 18
    /// on.
    pub fn with_volume(volume: &Path) -> Option<Self> {
        let volume = volume.display();
        Self::of_the_original(&[
            &format!("extension_control_path = '{volume}/share:$system'"),
            &format!("dynamic_library_path = '{volume}/lib:$libdir'"),
        ])
    }

    /// A cluster of the PostgreSQL that the shared server is a copy of, in which no extension is made.
    fn of_the_original(settings: &[&str]) -> Option<Self> {
        let copy = program("postgres");
        let copy = copy.parent().expect("a program is in a directory");
        let programs = Path::new("/").join(copy.strip_prefix(server::directory().join("postgresql")).ok()?);
        let programs = Some(programs);
        Some(Self::start(settings, Surroundings { programs, bare: true, ..Surroundings::default() }))
    }

    /// A cluster of the PostgreSQL whose programs are in this directory, in which no extension is made.
    pub fn of(programs: &Path, settings: &[&str]) -> Self {
        Self::start(settings, Surroundings { programs: Some(programs.to_owned()), ..Surroundings::default() })
    }

    fn with_small(small: Small, segments: &str, settings: &[&str]) -> Option<Self> {
        let possible = owner().is_some()
            && Command::new("unshare")
                .args(["-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"])
                .status()
                .ok()?
                .success();
        let mut settings = settings.to_vec();
        let segments = format!("dynamic_shared_memory_type = {segments}");
        settings.push(&segments);
        let small = Some(small);
        possible.then(|| Self::start(&settings, Surroundings { small, ..Surroundings::default() }))
    }

    fn start(settings: &[&str], surroundings: Surroundings) -> Self {
        let directory = new_directory(&format!("c{}", server::number()));
        match &surroundings {
            Surroundings { programs: None, .. } => copy(&server::once("cluster", make_template), &directory),
            Surroundings { bare: true, .. } => copy(&server::once("bare", make_bare_template), &directory),
            _ => initdb(&surroundings, &directory),
        }
        let makes_functions = surroundings.programs.is_some();
        let cluster = Self::launched(directory, settings, surroundings);
        if makes_functions {
            cluster.session().run(fixtures::FUNCTIONS);
        }
        cluster
    }

    /// Starts the server of a directory in which there is a data directory.
    fn launched(directory: PathBuf, settings: &[&str], surroundings: Surroundings) -> Self {
        let socket = format!("unix_socket_directories = '{}'", directory.display());
        let own = [
            "listen_addresses = ''",
            &socket,
            "fsync = off",
            "full_page_writes = off",
            "autovacuum = off",
            "shared_buffers = '32MB'",
            "max_connections = 120",
            "max_worker_processes = 32",
            "max_parallel_workers = 32",
            "log_line_prefix = '%t [%p] %d '",
        ];
        let lines: String = own.iter().chain(settings).map(|setting| format!("{setting}\n")).collect();
        let file = OpenOptions::new().append(true).open(directory.join("data/postgresql.conf"));
        file.and_then(|mut file| file.write_all(lines.as_bytes())).expect("initdb has made it");
        let mut config = Config::new();
        config.host(directory.to_str().expect("a plain path")).port(5432).user("postgres").dbname("postgres");
        let mut cluster = Self { server: launch(&directory, &surroundings), directory, config };
        cluster.wait_until_up();
        cluster
    }

    /// Kills the postmaster as a crash of the machine's memory would, and starts the server again over what is on disk.
    pub fn crash_and_restart(&mut self) {
        self.signal("KILL", self.pid() as i32);
        self.server.wait().expect("our child");
        self.start_again();
    }

    /// Stops the server in an orderly way and starts it again.
    pub fn restart(&mut self) {
        self.restart_after(|_| ());
    }

    /// As [`Cluster::restart`], with something done to the data directory in between.
    pub fn restart_after(&mut self, change: impl FnOnce(&Path)) {
        self.signal("INT", self.pid() as i32);
        self.server.wait().expect("our child");
        change(&self.data());
        self.start_again();
    }

    fn start_again(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.server = launch(&self.directory, &Surroundings::default());
            // Orphans of the old server go soon; as long as one is there, a new one refuses to start.
            while self.is_running() {
                if self.config.connect(NoTls).is_ok() {
                    return;
                }
                assert!(Instant::now() < deadline, "the server does not start again:\n{}", self.log());
                sleep(Duration::from_millis(20));
            }
            assert!(Instant::now() < deadline, "the server does not start again:\n{}", self.log());
            sleep(Duration::from_millis(100));
        }
    }

    /// A hot standby that streams from this server.
    pub fn standby(&self) -> Cluster {
        let directory = new_directory(&format!("c{}", server::number()));
        let mut backup = as_owner(program("pg_basebackup"), &directory);
        backup.args(["-R", "-c", "fast", "--no-sync", "-U", "postgres", "-h"]).arg(&self.directory);
        let output = backup.arg("-D").arg(directory.join("data")).output().expect("pg_basebackup runs");
        assert!(output.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&output.stderr));
        Self::launched(directory, &[], Surroundings::default())
    }

    /// A session of this role.
    pub fn session_as(&self, role: &str) -> Session {
        Session::open(self.config.clone().user(role))
    }

    /// A superuser's session in this database.
    pub fn session_in(&self, database: &str) -> Session {
        Session::open(self.config.clone().dbname(database))
    }

    /// A superuser's session.
    pub fn session(&self) -> Session {
        Session::open(&self.config)
    }

    /// The postmaster's process.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Where its socket is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Sends a process of the server a signal, such as `KILL`; false if there is no such process.
    pub fn signal(&self, signal: &str, pid: i32) -> bool {
        let mut kill = Command::new("kill");
        kill.args([format!("-{signal}"), pid.to_string()]).stderr(Stdio::null());
        kill.status().is_ok_and(|status| status.success())
    }

    /// Lets a process of the server have this many bytes of address space beyond what it has; None: as many as it
    /// likes. False if this machine does not let us.
    pub fn limit_memory(&self, pid: i32, room: Option<u64>) -> bool {
        let limit = room.map_or("unlimited".to_owned(), |room| (address_space(pid) + room).to_string());
        let mut prlimit = as_owner(PathBuf::from("prlimit"), &self.directory);
        prlimit.args(["--pid", &pid.to_string(), &format!("--as={limit}:")]);
        prlimit.output().is_ok_and(|output| output.status.success())
    }

    /// Does the postmaster run?
    pub fn is_running(&mut self) -> bool {
        self.server.try_wait().expect("our child").is_none()
    }

    /// Waits until the server takes sessions.
    pub fn wait_until_up(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(self.is_running(), "the server has ended:\n{}", self.log());
            match self.config.connect(NoTls) {
                Ok(_) => return,
                Err(e) => assert!(Instant::now() < deadline, "the server takes no session: {e:?}\n{}", self.log()),
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// All that the server has logged.
    pub fn log(&self) -> String {
        self.log_after(0).0
    }

    /// The lines that the server has logged after this many bytes of its log, and where in the log they end.
    pub fn log_after(&self, bytes: u64) -> (String, u64) {
        let mut news = Vec::new();
        if let Ok(mut log) = fs::File::open(self.directory.join("log")) {
            let _ = log.seek(SeekFrom::Start(bytes)).and_then(|_| log.read_to_end(&mut news));
        }
        // a line that is being written comes with the next ones
        news.truncate(news.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        (String::from_utf8_lossy(&news).into_owned(), bytes + news.len() as u64)
    }
}

/// A file system of this many bytes, mounted for the server only, at a path from the cluster's directory.
struct Small {
    bytes: u64,
    place: &'static str,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.is_running() {
            self.signal("QUIT", self.server.id() as i32);
        }
        if let Err(e) = self.server.wait() {
            eprintln!("the server of {} does not end: {e}", self.directory.display());
        }
        if let Err(e) = fs::remove_dir_all(&self.directory) {
            eprintln!("{} stays: {e}", self.directory.display());
        }
    }
}

/// What a server finds around itself.
#[derive(Default)]
struct Surroundings {
    small: Option<Small>,
    environment: Vec<(&'static str, PathBuf)>,
    /// the directory of another server's programs
    programs: Option<PathBuf>,
    /// those are of the shared server's version, and no extension is made
    bare: bool,
    own_network: bool,
}

impl Surroundings {
    fn program(&self, name: &str) -> PathBuf {
        self.programs.as_ref().map_or_else(|| program(name), |programs| programs.join(name))
    }
}

/// Makes a data directory with nothing in it.
fn initdb(surroundings: &Surroundings, directory: &Path) {
    let mut initdb = as_owner(surroundings.program("initdb"), directory);
    initdb.args(["-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]);
    // tests damage pages, of which checksums would tell before this extension sees them; PostgreSQL 18 has them by
    // default, and older ones do not know how to go without
    let help = Command::new(surroundings.program("initdb")).arg("--help").output().expect("initdb runs");
    if String::from_utf8_lossy(&help.stdout).contains("--no-data-checksums") {
        initdb.arg("--no-data-checksums");
    }
    let output = initdb.output().expect("initdb runs");
    assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
}

/// Makes the data directory that takes initdb's place: a copy takes a fraction of the time. Gives its path.
fn make_bare_template() -> Result<String, String> {
    let directory = new_directory("bare");
    initdb(&Surroundings::default(), &directory);
    Ok(directory.join("data").to_str().expect("a plain path").to_owned())
}

/// The same with the extension and the fixtures' functions.
fn make_template() -> Result<String, String> {
    let directory = new_directory("cluster");
    copy(&server::once("bare", make_bare_template), &directory);
    let mut cluster = Cluster::launched(directory, &[], Surroundings::default());
    cluster.session().run("CREATE EXTENSION corgipile");
    cluster.session().run(fixtures::FUNCTIONS);
    cluster.signal("INT", cluster.pid() as i32);
    cluster.server.wait().expect("our child");
    let path = server::directory().join("cluster.data");
    fs::rename(cluster.data(), &path).expect("it stays on its disk");
    Ok(path.to_str().expect("a plain path").to_owned())
}

/// Copies a template to a new cluster's data directory.
fn copy(template: &Result<String, String>, directory: &Path) {
    let template = template.as_ref().expect("it is made, or there is a panic");
    let mut copy = as_owner(PathBuf::from("cp"), directory);
    let copied = copy.args(["-a", "--reflink=auto", template, "data"]).status();
    assert!(copied.is_ok_and(|status| status.success()), "a cluster can be copied");
}

/// A directory next to the shared server's.
fn new_directory(name: &str) -> PathBuf {
    let directory = server::directory().join(name);
    fs::create_dir(&directory).expect("the cluster's directory can be made");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).expect("it is everybody's");
    directory
}

/// Starts the postmaster.
fn launch(directory: &Path, surroundings: &Surroundings) -> Child {
    let postgres = surroundings.program("postgres");
    let log = OpenOptions::new().create(true).append(true).open(directory.join("log")).expect("a log can be written");
    let mut command = match (&surroundings.small, owner()) {
        (Some(Small { bytes, place }), Some((user, group))) => {
            let mut command = Command::new("unshare");
            let script = format!(
                "mount -t tmpfs -o size={bytes},mode=1777 tmpfs {place} &&
                 exec setpriv --reuid={user} --regid={group} --clear-groups -- \"$0\" \"$@\""
            );
            command.args(["-m", "sh", "-c", &script]).arg(postgres).current_dir(directory);
            command
        }
        (None, Some((user, group))) if surroundings.own_network => {
            let mut command = Command::new("unshare");
            let ids = [format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".to_owned()];
            command.args(["-n", "setpriv"]).args(ids).arg("--").arg(postgres).current_dir(directory);
            command
        }
        _ => as_owner(postgres, directory),
    };
    command.arg("-D").arg(directory.join("data"));
    command.env_remove("RUST_BACKTRACE").env_remove("RUST_LOG");
    command.envs(surroundings.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("the server starts")
}

/// Bytes of address space that a process has; 0 if it is gone.
fn address_space(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kb = size.and_then(|size| size.split_whitespace().next()?.parse::<u64>().ok());
    kb.unwrap_or_default() * 1024
}

/// A command of the server's version.
fn program(name: &str) -> PathBuf {
    PathBuf::from(server::program(name).get_program())
}

/// A command as the user that PostgreSQL may run as.
fn as_owner(program: PathBuf, directory: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = owner() {
        command.uid(user).gid(group);
    }
    command.current_dir(directory);
    command
}

/// User and group of `postgres` if we are root, as which PostgreSQL refuses to run.
fn owner() -> Option<(u32, u32)> {
    let id = |arguments: &[&str]| -> Option<u32> {
        let output = Command::new("id").args(arguments).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    if id(&["-u"])? != 0 {
        return None;
    }
    id(&["-u", "postgres"]).zip(id(&["-g", "postgres"]))
}
