//! A network of a server's own, whose cable can be pulled.

use std::process::Command;

/// Two ends of a cable: one here, and one in the network namespace of a server. Both go with the server.
pub struct Network {
    near: String,
    address: String,
}

impl Network {
    /// May this process make network namespaces, and cables into them?
    pub(crate) fn is_possible() -> bool {
        let near = format!("corgi{}", std::process::id());
        let works = |program: &str, arguments: &str| {
            let output = Command::new(program).args(arguments.split_whitespace()).output();
            output.is_ok_and(|output| output.status.success())
        };
        works("unshare", "-n true")
            && works("nsenter", "--version")
            && works("ip", &format!("link add {near} type veth peer name {near}b"))
            && works("ip", &format!("link delete {near}"))
    }

    /// Lays a cable into the namespace of a process. Addresses are link-local: a net of four for each process.
    pub(crate) fn new(pid: u32) -> Self {
        let near = format!("corgi{pid}x");
        let net = pid % (254 * 64);
        let [here, there] = [1, 2].map(|end| format!("169.254.{}.{}", net / 64 + 1, net % 64 * 4 + end));
        let run = |command: &str| {
            let mut words = command.split_whitespace();
            let status = Command::new(words.next().expect("a program")).args(words).status();
            assert!(status.is_ok_and(|status| status.success()), "{command}");
        };
        run(&format!("ip link add {near} type veth peer name far netns {pid}"));
        run(&format!("ip address add {here}/30 dev {near}"));
        run(&format!("ip link set {near} up"));
        run(&format!("nsenter -t {pid} -n ip address add {there}/30 dev far"));
        run(&format!("nsenter -t {pid} -n ip link set far up"));
        Self { near, address: there }
    }

    /// The server's address in it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Pulls the cable: what is sent is lost, and no one hears of it.
    pub fn cut(&self) {
        self.set("down");
    }

    /// Puts it back.
    pub fn mend(&self) {
        self.set("up");
    }

    fn set(&self, state: &str) {
        let status = Command::new("ip").args(["link", "set", &self.near, state]).status();
        assert!(status.is_ok_and(|status| status.success()), "{} {state}", self.near);
    }
}
