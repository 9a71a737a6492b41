//! Servers in network namespaces, between which packets come late, get lost, or do not come at all.
//!
//! Linux can do that by itself (`tc netem`), but not every kernel has it. So the packets go through this process, by a
//! TUN device for each namespace. No one else's network is touched: the namespaces are made here, and have no way out.
//! Where that is not allowed (it needs root and /dev/net/tun) the test says so and does nothing.

#![allow(unsafe_code)]

use crate::common::{Numbers, SECOND, Server, all, next, numbers, sorted, status};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use service::{Cluster, FollowerOptions, Job, LeaderOptions, Mode, NextOfJob, Token};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const NODES: u32 = 3;

/// How long a packet takes.
const DELAY: Duration = Duration::from_millis(20);

/// Of this many packets one gets lost.
const LOST: u64 = 20;

fn address(node: u32) -> String {
    format!("10.77.0.{}", node + 1)
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| format!("ip: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    output.status.success().then_some(()).ok_or_else(|| format!("ip {arguments}: {said}"))
}

#[derive(Default)]
struct Wire {
    cut: AtomicBool,
    packets: AtomicU64,
    lost: AtomicU64,
}

/// The namespaces, as long as it is there.
struct Network {
    names: Vec<String>,
    wires: Arc<Vec<Wire>>,
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

impl Network {
    fn new() -> Result<Network, String> {
        let wires = Arc::new((0..NODES).map(|_| Wire::default()).collect());
        let mut network = Network { names: Vec::new(), wires };
        let mut devices = Vec::new();
        for node in 0..NODES {
            let name = format!("joader-{}-{node}", std::process::id());
            ip(&format!("netns add {name}"))?;
            network.names.push(name.clone());
            let device = format!("jd{}n{node}", std::process::id());
            devices.push(tun(&device).map_err(|error| format!("/dev/net/tun: {error}"))?);
            ip(&format!("link set {device} netns {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} addr add {}/24 dev {device}", address(node)))?;
            ip(&format!("-n {name} link set {device} up"))?;
        }
        network.connect(devices);
        Ok(network)
    }

    /// Gives each packet to whom it is for, later or never.
    fn connect(&self, devices: Vec<File>) {
        let (sender, late) = mpsc::channel::<(Instant, usize, Vec<u8>)>();
        for (node, device) in devices.iter().enumerate() {
            let (wires, sender) = (self.wires.clone(), sender.clone());
            let mut device = device.try_clone().unwrap();
            std::thread::spawn(move || {
                let mut packet = [0; 1 << 16];
                // until the namespace goes, and the device with it
                while let Ok(bytes) = device.read(&mut packet) {
                    // of IPv4: the last byte of the destination
                    let to = match packet[0] >> 4 {
                        4 => usize::from(packet[19]).wrapping_sub(1),
                        _ => continue,
                    };
                    let Some(other) = wires.get(to) else { continue };
                    let number = wires[node].packets.fetch_add(1, Ordering::Relaxed);
                    let is_cut = [&wires[node], other].iter().any(|wire| wire.cut.load(Ordering::Relaxed));
                    if is_cut || number % LOST == LOST - 1 {
                        wires[node].lost.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let _ = sender.send((Instant::now() + DELAY, to, packet[..bytes].to_vec()));
                }
            });
        }
        let mut devices = devices;
        std::thread::spawn(move || {
            for (due, to, packet) in late {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                // a device that has gone takes nothing
                let _ = devices[to].write(&packet);
            }
        });
    }

    /// Does something in a namespace; threads that it starts stay there.
    fn inside<T: Send>(&self, node: u32, work: impl FnOnce() -> T + Send) -> T {
        let namespace = Path::new("/run/netns").join(&self.names[node as usize]);
        std::thread::scope(|scope| {
            let inside = scope.spawn(move || {
                let namespace = File::open(namespace).unwrap();
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            inside.join().unwrap()
        })
    }

    fn cut(&self, node: u32, cut: bool) {
        self.wires[node as usize].cut.store(cut, Ordering::Relaxed);
    }
}

/// The kernel's `ifreq`, as far as it is used.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

/// A device of this name, which goes with the file.
fn tun(name: &str) -> std::io::Result<File> {
    const TUNSETIFF: rustix::ioctl::Opcode = rustix::ioctl::opcode::write::<i32>(b'T', 202);
    const TUN_WITHOUT_HEADER: i16 = 0x0001 | 0x1000;
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
    let mut request = Request { name: [0; 16], flags: TUN_WITHOUT_HEADER, rest: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the kernel reads an `ifreq` by this operation, which has the layout and the 40 bytes of `Request`
    unsafe { rustix::ioctl::ioctl(&file, rustix::ioctl::Setter::<TUNSETIFF, Request>::new(request))? };
    Ok(file)
}

/// Tells the one that counts tests that this one did nothing.
fn skip(why: &str) {
    let line = format!("servers_hear_each_other_late_or_not_at_all: {why}");
    eprintln!("skipped: {line}");
    if let Some(path) = std::env::var_os("CORGIPILE_SKIPPED_FILE") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

struct Nodes {
    servers: Vec<Server>,
    network: Network,
    directory: tempfile::TempDir,
}

impl Nodes {
    fn start(network: Network) -> Nodes {
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed([address(0)]).unwrap();
        std::fs::write(directory.path().join("pem"), made.cert.pem()).unwrap();
        std::fs::write(directory.path().join("key"), made.signing_key.serialize_pem()).unwrap();
        std::fs::set_permissions(directory.path().join("key"), std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut nodes = Nodes { servers: Vec::new(), network, directory };
        nodes.servers = (0..NODES).map(|node| nodes.server(node)).collect();
        nodes
    }

    fn server(&self, node: u32) -> Server {
        let file = |name: &str| self.directory.path().join(name);
        let leader = format!("{}:7000", address(0));
        let token = Token::new("0123456789abcdef").unwrap();
        let cluster = match node {
            0 => Cluster::Leader(LeaderOptions {
                listen: leader.parse().unwrap(),
                node,
                nodes: NODES,
                certificate: file("pem"),
                key: file("key"),
                token,
            }),
            node => Cluster::Follower(FollowerOptions {
                leader,
                node,
                nodes: NODES,
                trusts: file("pem"),
                name: None,
                token,
            }),
        };
        let path = file(&format!("node {node}"));
        self.network.inside(node, || Server::of(path, 1 << 20, Numbers::new(3000), Some(cluster)))
    }

    fn wait(&self, node: u32, what: &str, is: impl Fn(&service::proto::ClusterStatus) -> bool) {
        let until = Instant::now() + 60 * SECOND;
        loop {
            let cluster = status(&self.servers[node as usize]).cluster.unwrap();
            if is(&cluster) {
                return;
            }
            assert!(Instant::now() < until, "{what}: {cluster:?}");
            std::thread::sleep(SECOND / 20);
        }
    }

    fn ranks(&self, name: &str) -> Vec<Job> {
        let rank = |rank: u32| {
            self.servers[rank as usize].job(|options| {
                (options.rank, options.world_size, options.name) = (rank, NODES, name.to_owned());
            })
        };
        (0..NODES).map(rank).collect()
    }
}

/// Reads on in these jobs until each has this many rows.
fn read_until<'a>(jobs: impl Iterator<Item = (&'a mut Job, &'a mut Vec<i64>)>, wanted: usize) {
    std::thread::scope(|scope| {
        for (job, rows) in jobs {
            scope.spawn(move || {
                while rows.len() < wanted {
                    let NextOfJob::Batch(batch) = next(job).unwrap() else { panic!() };
                    rows.extend(numbers(&batch));
                }
            });
        }
    });
}

/// Reads to the end: the rest of the first epoch, and the second one.
fn read_rest(jobs: &mut [Job], mut rows: Vec<Vec<i64>>) {
    let epochs: Vec<Vec<Vec<i64>>> = std::thread::scope(|scope| {
        let rest: Vec<_> = jobs.iter_mut().map(|job| scope.spawn(|| all(job))).collect();
        rest.into_iter().map(|rest| rest.join().unwrap()).collect()
    });
    for (rows, epochs) in rows.iter_mut().zip(&epochs) {
        rows.extend(&epochs[0]);
    }
    assert_eq!(sorted(&rows.concat()), (0..3000).collect::<Vec<_>>());
    let second: Vec<i64> = epochs.iter().flat_map(|epochs| epochs[1].clone()).collect();
    assert_eq!(sorted(&second), (0..3000).collect::<Vec<_>>());
}

#[test]
fn servers_hear_each_other_late_or_not_at_all() {
    let network = match Network::new() {
        Ok(network) => network,
        Err(why) => return skip(&why),
    };
    let mut nodes = Nodes::start(network);
    (1..NODES).for_each(|node| nodes.wait(node, "it is to follow", |cluster| cluster.connected));
    nodes.servers[0].create(3000, "1", "");

    // late, and with losses
    let mut jobs = nodes.ranks("late");
    read_rest(&mut jobs, vec![Vec::new(); 3]);
    assert!(jobs.iter().all(|job| job.counts().direct == 0 && job.counts().registered == 1));
    let lost: u64 = nodes.network.wires.iter().map(|wire| wire.lost.load(Ordering::Relaxed)).sum();
    assert!(lost > 5, "{lost} packets were lost");

    // a follower that says nothing any more, as if its machine had lost its power
    let mut jobs = nodes.ranks("cut");
    let mut rows = vec![Vec::new(); 3];
    read_until(jobs.iter_mut().zip(&mut rows), 200);
    nodes.network.cut(2, true);
    read_until(jobs.iter_mut().zip(&mut rows).take(2), 400);
    nodes.wait(0, "the leader is to notice", |cluster| cluster.followers == [1]);
    nodes.wait(2, "the follower is to notice", |cluster| !cluster.connected && !cluster.lost.is_empty());
    read_until(jobs.iter_mut().zip(&mut rows).skip(2), 400);
    assert!(matches!(jobs[2].mode(), Mode::Direct(_)), "{:?}", jobs[2].mode());
    assert!(jobs[..2].iter().all(|job| job.mode() == Mode::Connected && job.counts().direct == 0));
    nodes.network.cut(2, false);
    nodes.wait(2, "it is to follow again", |cluster| cluster.connected);
    read_until(jobs.iter_mut().zip(&mut rows), 600);
    let until = Instant::now() + 60 * SECOND;
    while jobs[2].mode() != Mode::Connected {
        assert!(Instant::now() < until, "{:?}", jobs[2].mode());
        std::thread::sleep(SECOND / 20);
    }
    read_rest(&mut jobs, rows);
    assert_eq!(jobs.iter().map(|job| job.counts().registered).collect::<Vec<_>>(), [1, 1, 2]);

    // and a leader that does so
    let mut jobs = nodes.ranks("alone");
    let mut rows = vec![Vec::new(); 3];
    read_until(jobs.iter_mut().zip(&mut rows), 200);
    nodes.network.cut(0, true);
    (1..NODES).for_each(|node| nodes.wait(node, "it is to notice", |cluster| !cluster.connected));
    read_until(jobs.iter_mut().zip(&mut rows), 400);
    let modes: Vec<bool> = jobs.iter().map(|job| matches!(job.mode(), Mode::Direct(_))).collect();
    assert_eq!(modes, [false, true, true], "the leader's own rank goes on");
    read_rest(&mut jobs, rows);
    nodes.network.cut(0, false);
    (1..NODES).for_each(|node| nodes.wait(node, "it is to follow again", |cluster| cluster.connected));
    nodes.servers.clear();
}
