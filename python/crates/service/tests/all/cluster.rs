//! Servers of several nodes in one process, which talk over 127.0.0.1.

use crate::common::{Numbers, SECOND, Server, all, job_options, next, numbers, sorted, status, until};
use service::{
    Cluster, FollowerOptions, Job, JobOptions, LeaderOptions, Mode, NextOfJob, ServiceError, Token, admin, proto,
};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub const TOKEN: &str = "0123456789abcdef";

/// A certificate that has signed itself, and its key.
fn certificate(directory: &Path, name: &str) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "leader.test".to_owned()]).unwrap();
    let (certificate, key) = (directory.join(format!("{name}.pem")), directory.join(format!("{name}.key")));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    (certificate, key)
}

/// The servers of a cluster. The first one leads.
pub struct Nodes {
    servers: Vec<Server>,
    directory: tempfile::TempDir,
    pub address: SocketAddr,
    nodes: u32,
    memory: u64,
    /// the leader keeps data sets in a file
    remembers: bool,
}

impl Nodes {
    pub fn start(nodes: u32, numbers: &Numbers) -> Nodes {
        let directory = tempfile::tempdir().unwrap();
        certificate(directory.path(), "leader");
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut of = Nodes { servers: Vec::new(), directory, address, nodes, memory: 1 << 20, remembers: false };
        of.servers = (0..nodes).map(|node| of.server(node, own(numbers))).collect();
        (1..nodes).for_each(|node| of.wait_until_connected(node, true));
        of
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn leader(&self) -> LeaderOptions {
        LeaderOptions {
            listen: self.address,
            node: 0,
            nodes: self.nodes,
            certificate: self.path("leader.pem"),
            key: self.path("leader.key"),
            token: Token::new(TOKEN).unwrap(),
        }
    }

    pub fn follower(&self, node: u32) -> FollowerOptions {
        FollowerOptions {
            leader: self.address.to_string(),
            node,
            nodes: self.nodes,
            trusts: self.path("leader.pem"),
            name: None,
            token: Token::new(TOKEN).unwrap(),
        }
    }

    fn server(&self, node: u32, numbers: Numbers) -> Server {
        let cluster = match node {
            0 => Cluster::Leader(self.leader()),
            node => Cluster::Follower(self.follower(node)),
        };
        let options = service::ServerOptions {
            path: self.path(&format!("node {node}")),
            memory: self.memory,
            threads: 2,
            seed: 1,
            cluster: Some(cluster),
            data_sets: (self.remembers && node == 0).then(|| self.path("data sets")),
        };
        Server::with(options, numbers)
    }

    fn restart(&mut self, node: u32) {
        let numbers = self.servers[node as usize].numbers.clone();
        self.servers[node as usize] = self.server(node, numbers);
    }

    fn wait_until_connected(&self, node: u32, wanted: bool) {
        let until = Instant::now() + 30 * SECOND;
        loop {
            let cluster = status(&self.servers[node as usize]).cluster.unwrap();
            if cluster.connected == wanted {
                assert_eq!(cluster.lost.is_empty(), wanted, "{cluster:?}");
                return;
            }
            assert!(Instant::now() < until, "{cluster:?}");
            std::thread::sleep(SECOND / 50);
        }
    }

    fn rank(&self, ranks: &[u32], rank: usize, options: impl FnOnce(&mut JobOptions)) -> Job {
        self.servers[ranks[rank] as usize].job(|of| {
            (of.rank, of.world_size) = (rank as u32, ranks.len() as u32);
            options(of);
        })
    }

    /// Runs a job with ranks on these nodes, and gives the epochs of each rank.
    fn run(&self, name: &str, ranks: &[u32]) -> Vec<Vec<Vec<i64>>> {
        std::thread::scope(|scope| {
            let jobs: Vec<_> = (0..ranks.len())
                .map(|rank| {
                    let mut job = self.rank(ranks, rank, |options| options.name = name.to_owned());
                    scope.spawn(move || {
                        let epochs = all(&mut job);
                        assert_eq!(job.counts().direct, 0);
                        epochs
                    })
                })
                .collect();
            jobs.into_iter().map(|job| job.join().unwrap()).collect()
        })
    }

    fn loads(&self) -> Vec<u64> {
        self.servers.iter().map(|server| status(server).server.unwrap().loads).collect()
    }
}

/// The same rows, whose reads are counted by themselves.
fn own(numbers: &Numbers) -> Numbers {
    Numbers { read: Default::default(), ..numbers.clone() }
}

/// Each row was given once in each epoch, over all ranks.
fn assert_complete(ranks: &[Vec<Vec<i64>>], rows: i64, epochs: usize) {
    for epoch in 0..epochs {
        let given: Vec<i64> = ranks.iter().flat_map(|rank| rank[epoch].clone()).collect();
        assert_eq!(sorted(&given), (0..rows).collect::<Vec<_>>(), "epoch {epoch}");
    }
}

#[test]
fn ranks_on_nodes_that_have_different_numbers_of_them_get_each_row_once_and_equally_many() {
    let nodes = Nodes::start(3, &Numbers::new(1000));
    nodes.servers[0].create(1000, "10", "");
    for ranks in [[1, 1, 2].as_slice(), &[0, 1, 1, 2, 0, 1, 1], &[2, 0]] {
        let given = nodes.run("job", ranks);
        assert_complete(&given, 1000, 2);
        let rows: Vec<usize> = given.iter().map(|rank| rank[0].len()).collect();
        assert!(rows.iter().max().unwrap() - rows.iter().min().unwrap() <= 10, "{rows:?}");
        for rank in given {
            assert_eq!(sorted(&rank[0]), sorted(&rank[1]), "a rank has the same elements in each epoch");
            assert_ne!(rank[0], rank[1]);
        }
    }
    until("ranks do not leave", || status(&nodes.servers[0]).groups.is_empty());
}

/// Elements have ten rows, and a condition leaves different numbers of them.
#[test]
fn ranks_give_the_same_number_of_batches() {
    let nodes = Nodes::start(2, &Numbers::new(1000));
    nodes.servers[0].create(1000, "10", "");
    for (name, drop_last) in [("all", false), ("full", true)] {
        let ranks = [0, 1, 1];
        let sizes: Vec<Vec<usize>> = std::thread::scope(|scope| {
            let sizes: Vec<_> = (0..3)
                .map(|rank| {
                    let mut job = nodes.rank(&ranks, rank, |options| {
                        options.name = name.to_owned();
                        options.filter = "x < 333".to_owned();
                        (options.drop_last, options.epochs) = (drop_last, 1);
                    });
                    scope.spawn(move || {
                        let mut sizes = Vec::new();
                        while let NextOfJob::Batch(batch) = next(&mut job).unwrap() {
                            sizes.push(batch.rows);
                        }
                        sizes
                    })
                })
                .collect();
            sizes.into_iter().map(|sizes| sizes.join().unwrap()).collect()
        });
        // 34 elements: 12, 11 and 11, one of which has three rows
        let rows: Vec<usize> = sizes.iter().map(|sizes| sizes.iter().sum()).collect();
        let lengths: Vec<usize> = sizes.iter().map(Vec::len).collect();
        if drop_last {
            assert_eq!(lengths, [6; 3], "{sizes:?}");
            assert_eq!(rows, [96; 3]);
        } else {
            assert_eq!(lengths, [8; 3], "{sizes:?}");
            assert_eq!(rows.iter().sum::<usize>(), 333);
            assert!(sizes.iter().flatten().all(|size| (12..=16).contains(size)), "{sizes:?}");
        }
    }
}

#[test]
fn jobs_share_what_is_read_on_common_nodes() {
    let nodes = Nodes::start(4, &Numbers::new(2000));
    nodes.servers[0].create(2000, "10", "");
    let loads = || nodes.loads().iter().sum::<u64>();
    nodes.run("a", &[1, 2, 3]);
    assert_eq!((loads(), nodes.loads()[0]), (200, 0), "each node reads its own part, once for both epochs");
    nodes.run("b", &[1, 2, 3]);
    assert_eq!(loads(), 200);
    // of the elements, those at home on nodes 1 and 2 stay there
    nodes.run("c", &[0, 1, 2]);
    let more = loads() - 200;
    assert!((60..140).contains(&more), "{more}");
    // as both run at a time, they draw the same at the same time
    std::thread::scope(|scope| {
        for name in ["d", "e"] {
            let nodes = &nodes;
            scope.spawn(move || assert_complete(&nodes.run(name, &[1, 2, 3]), 2000, 2));
        }
    });
    assert_eq!(loads(), 200 + more);
}

#[test]
fn a_job_of_one_process_shares_with_ranks_of_its_node_and_its_node_draws_nothing() {
    let slow = Numbers { slow: SECOND / 1000, ..Numbers::new(1000) };
    let nodes = Nodes::start(2, &slow);
    nodes.servers[1].create(1000, "10", "dependent");
    std::thread::scope(|scope| {
        let mut plain = nodes.servers[1].job(|options| options.name = "plain".to_owned());
        let plain = scope.spawn(move || all(&mut plain));
        assert_complete(&nodes.run("job", &[0, 1]), 1000, 2);
        assert_complete(&[plain.join().unwrap()], 1000, 2);
    });
    assert_eq!(nodes.loads(), [50, 100]);
}

#[test]
fn data_sets_are_the_leaders_whomever_one_asks() {
    let mut nodes = Nodes::start(3, &Numbers::new(200));
    nodes.servers[1].create(200, "10", "");
    for server in &nodes.servers {
        let list = admin::data_sets(&server.path).unwrap();
        assert_eq!((list.len(), list[0].rows, list[0].jobs), (1, 200, 0));
    }
    let mut job = nodes.servers[2].job(|_| ());
    next(&mut job).unwrap();
    let path = nodes.servers[1].path.clone();
    assert_eq!(admin::data_sets(&path).unwrap()[0].jobs, 1);
    let source = |rows: u64| proto::DataSet {
        name: "numbers".to_owned(),
        source: rows.to_string(),
        element_size: "10".to_owned(),
        ..proto::DataSet::default()
    };
    assert!(matches!(admin::put_data_set(&path, source(300), true), Err(ServiceError::Conflict(_))));
    assert!(matches!(admin::drop_data_set(&path, "numbers"), Err(ServiceError::Conflict(_))));
    job.close();
    until("the job does not leave", || admin::put_data_set(&path, source(300), true).is_ok());
    // also those who have opened the old one
    assert_complete(&nodes.run("job", &[2, 1]), 300, 2);
    // rows that differ from machine to machine are no data set
    nodes.servers[1].stop();
    nodes.servers[1] = nodes.server(1, Numbers { version: 9, ..Numbers::new(300) });
    nodes.wait_until_connected(1, true);
    let refused = next(&mut nodes.servers[1].job(|_| ())).unwrap_err().to_string();
    assert!(refused.starts_with("dataset: \"numbers\" has other rows on this machine than at the leader"), "{refused}");
    until("ranks do not leave", || admin::drop_data_set(&path, "numbers").is_ok());
    assert!(admin::data_sets(&nodes.servers[2].path).unwrap().is_empty());
    let refused = next(&mut nodes.servers[2].job(|_| ())).unwrap_err().to_string();
    assert_eq!(refused, "dataset: there is no \"numbers\"; there is none yet");
}

#[test]
fn servers_without_the_token_or_the_certificate_do_not_follow_and_say_why() {
    let nodes = Nodes::start(3, &Numbers::new(200));
    nodes.servers[0].create(200, "10", "");
    let (other, other_key) = certificate(nodes.directory.path(), "other");
    let lost = |options: FollowerOptions| {
        let server = Server::of(nodes.path("another"), 1 << 20, Numbers::new(200), Some(Cluster::Follower(options)));
        let until = Instant::now() + 20 * SECOND;
        loop {
            let cluster = status(&server).cluster.unwrap();
            assert!(!cluster.connected && Instant::now() < until, "{cluster:?}");
            if cluster.lost != "it has not answered yet" {
                let refused = next(&mut server.job(|_| ())).unwrap_err().to_string();
                assert!(refused.contains(&cluster.lost), "{refused}");
                return cluster.lost;
            }
            std::thread::sleep(SECOND / 50);
        }
    };
    let token = Token::new("another-token-of-the-same-kind").unwrap();
    assert!(lost(FollowerOptions { token, ..nodes.follower(2) }).starts_with("token: it is not the leader's"));
    let why = lost(FollowerOptions { trusts: other.clone(), ..nodes.follower(2) });
    assert!(why.contains("invalid peer certificate"), "{why}");
    let why = lost(FollowerOptions { name: Some("elsewhere.test".to_owned()), ..nodes.follower(2) });
    assert!(why.contains("not valid for name \"elsewhere.test\""), "{why}");
    for node in [0, 2] {
        let why = lost(nodes.follower(node));
        assert!(why.starts_with(&format!("node: there is a node {node} already")), "{why}");
    }
    let why = lost(FollowerOptions { nodes: 4, ..nodes.follower(3) });
    assert!(why.starts_with("nodes: the leader has 3"), "{why}");
    // no one leads or follows without the files
    let (path, missing) = (nodes.path("another"), nodes.path("missing"));
    let refused = |cluster: Cluster| {
        let options = service::ServerOptions {
            path: path.clone(),
            memory: 1 << 20,
            threads: 1,
            seed: 1,
            cluster: Some(cluster),
            data_sets: None,
        };
        let (_stop, stopped) = tokio::sync::watch::channel(());
        let opener = std::sync::Arc::new(crate::common::Opens(Numbers::new(10)));
        service::serve(options, opener, None, stopped, || ()).unwrap_err().to_string()
    };
    let leader = LeaderOptions { listen: "127.0.0.1:0".parse().unwrap(), ..nodes.leader() };
    let why = refused(Cluster::Leader(LeaderOptions { certificate: missing.clone(), ..leader.clone() }));
    assert!(why.starts_with("certificate: ") && why.contains("missing cannot be read"), "{why}");
    let why = refused(Cluster::Leader(LeaderOptions { key: other_key, ..leader.clone() }));
    assert!(why.starts_with("certificate: ") && why.contains("cannot be used"), "{why}");
    std::fs::set_permissions(nodes.path("leader.key"), std::fs::Permissions::from_mode(0o640)).unwrap();
    // root's may be read by a group
    assert!(!rustix::process::geteuid().is_root() || refused(Cluster::Leader(nodes.leader())).starts_with("listen: "));
    std::fs::set_permissions(nodes.path("leader.key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let key = nodes.path("leader.key").display().to_string();
    let why = refused(Cluster::Leader(leader.clone()));
    assert_eq!(why, format!("key: others than its owner may read {key}: chmod 600 {key}"));
    std::fs::set_permissions(nodes.path("leader.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(refused(Cluster::Leader(nodes.leader())).starts_with("listen: 127.0.0.1:"));
    assert!(refused(Cluster::Leader(LeaderOptions { node: 3, ..leader })).starts_with("node: there is no node 3 of 3"));
    let follower = nodes.follower(2);
    let why = refused(Cluster::Follower(FollowerOptions { trusts: missing, ..follower.clone() }));
    assert!(why.starts_with("trusts: ") && why.contains("missing cannot be read"), "{why}");
    let why = refused(Cluster::Follower(FollowerOptions { trusts: nodes.path("leader.key"), ..follower.clone() }));
    assert!(why.contains("has no certificate"), "{why}");
    let why = refused(Cluster::Follower(FollowerOptions { leader: "no address".to_owned(), ..follower }));
    assert!(why.starts_with("leader: \"no address\""), "{why}");
}

/// What somebody who speaks gRPC without TLS, or without the token, can do: nothing.
#[test]
fn a_leader_answers_nobody_without_tls() {
    let nodes = Nodes::start(1, &Numbers::new(200));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", nodes.address)).unwrap();
        let mut client = proto::leader_client::LeaderClient::new(endpoint.connect_lazy());
        tokio::time::timeout(10 * SECOND, client.list(proto::Nothing {})).await.expect("it hangs")
    });
    assert!(answer.is_err());
}

/// Reads on until this many rows came in all.
fn read_until(job: &mut Job, rows: &mut Vec<i64>, wanted: usize) {
    while rows.len() < wanted {
        let NextOfJob::Batch(batch) = next(job).unwrap() else { panic!() };
        rows.extend(numbers(&batch));
    }
}

/// Reads on in all jobs at a time.
fn read_all_until(jobs: &mut [Job], rows: &mut [Vec<i64>], wanted: usize) {
    std::thread::scope(|scope| {
        for (job, rows) in jobs.iter_mut().zip(rows) {
            scope.spawn(move || read_until(job, rows, wanted));
        }
    });
}

/// Reads to the end in all jobs at a time: the rest of the first epoch, and the second one.
fn read_rest(jobs: &mut [Job], rows: &mut [Vec<i64>]) -> Vec<Vec<Vec<i64>>> {
    std::thread::scope(|scope| {
        let rest: Vec<_> = jobs.iter_mut().map(|job| scope.spawn(|| all(job))).collect();
        let rest = rest.into_iter().map(|rest| rest.join().unwrap());
        rest.zip(rows)
            .map(|(mut rest, rows)| {
                rows.append(&mut rest[0]);
                rest[0] = std::mem::take(rows);
                rest
            })
            .collect()
    })
}

#[test]
fn without_their_leader_ranks_read_what_was_dealt_to_them_and_rejoin_when_it_is_back() {
    let slow = Numbers { slow: SECOND / 50, ..Numbers::new(4000) };
    let mut nodes = Nodes::start(3, &slow);
    nodes.servers[0].create(4000, "10", "");
    let ranks = [1, 1, 2];
    let mut jobs: Vec<Job> = (0..3).map(|rank| nodes.rank(&ranks, rank, |_| ())).collect();
    let mut rows = vec![Vec::new(); 3];
    read_all_until(&mut jobs, &mut rows, 200);
    nodes.servers[0].stop();
    nodes.wait_until_connected(1, false);
    nodes.wait_until_connected(2, false);
    read_all_until(&mut jobs, &mut rows, 500);
    for job in &jobs {
        let Mode::Direct(why) = job.mode() else { panic!("{:?}", job.mode()) };
        assert!(why.contains(&format!("its leader {} is not there", nodes.address)), "{why}");
        assert!(job.counts().direct > 0);
    }
    let refused = next(&mut nodes.servers[1].job(|_| ())).unwrap_err().to_string();
    assert!(refused.contains("is not there"), "{refused}");
    // one of them comes to its end meanwhile
    let mut given = read_rest(&mut jobs[..1], &mut rows[..1]);
    // the leader knows nothing of the job any more, and the ranks do not wait for each other
    nodes.restart(0);
    nodes.servers[0].create(4000, "10", "");
    nodes.wait_until_connected(1, true);
    nodes.wait_until_connected(2, true);
    let direct: Vec<u64> = jobs.iter().map(|job| job.counts().direct).collect();
    given.extend(read_rest(&mut jobs[1..], &mut rows[1..]));
    assert_complete(&given, 4000, 2);
    assert_eq!(jobs.iter().map(|job| job.counts().registered).collect::<Vec<_>>(), [1, 2, 2]);
    for (job, direct) in jobs.iter().zip(direct).skip(1) {
        assert!(job.counts().direct < direct + 133, "it reads by itself to the end: {:?}", job.counts());
    }
}

#[test]
fn a_leader_that_is_started_again_with_its_file_has_its_data_sets_and_jobs_come_back() {
    let slow = Numbers { slow: SECOND / 100, ..Numbers::new(2000) };
    let mut nodes = Nodes::start(2, &slow);
    nodes.remembers = true;
    nodes.servers[0].stop();
    nodes.restart(0);
    nodes.wait_until_connected(1, true);
    nodes.servers[0].create(2000, "10", "");
    let mut job = nodes.servers[1].job(|options| options.epochs = 1);
    let mut rows = Vec::new();
    read_until(&mut job, &mut rows, 100);
    nodes.servers[0].stop();
    nodes.restart(0);
    nodes.wait_until_connected(1, true);
    until("it does not rejoin", || {
        let more = rows.len() + 16;
        read_until(&mut job, &mut rows, more);
        job.counts().registered == 2
    });
    rows.extend(&all(&mut job)[0]);
    assert_eq!(sorted(&rows), (0..2000).collect::<Vec<_>>());
}

#[test]
fn a_rank_that_waits_for_another_machine_too_long_says_which_rank_is_missing() {
    let nodes = Nodes::start(2, &Numbers::new(1000));
    nodes.servers[0].create(1000, "10", "");
    let mut waiting: Vec<Job> = (0..2)
        .map(|node| {
            nodes.servers[node].job(|of| {
                (of.rank, of.world_size, of.timeout) = (node as u32, 3, 1);
            })
        })
        .collect();
    for job in &mut waiting {
        let refused = next(job).unwrap_err().to_string();
        assert!(refused.starts_with("timeout: after 1 seconds "), "{refused}");
    }
}

#[test]
fn what_a_job_holds_stays_also_when_its_leader_went_and_others_come() {
    let mut nodes = Nodes::start(2, &Numbers::new(1000));
    nodes.servers[1].stop();
    nodes.memory = 32 << 10;
    nodes.restart(1);
    nodes.wait_until_connected(1, true);
    nodes.servers[0].create(1000, "10", "");
    let mut job = nodes.servers[1].job(|options| options.epochs = 1);
    let mut rows = Vec::new();
    read_until(&mut job, &mut rows, 16);
    until("it does not hold all it may", || status(&nodes.servers[1]).jobs[0].held == 8);
    nodes.servers[0].stop();
    nodes.wait_until_connected(1, false);
    nodes.restart(0);
    nodes.servers[0].create(1000, "10", "");
    nodes.wait_until_connected(1, true);
    until("it does not rejoin", || job.counts().registered == 2);
    let mut other = nodes.servers[1].job(|options| options.columns = vec!["x".to_owned()]);
    assert_complete(&[all(&mut other)], 1000, 2);
    assert!(status(&nodes.servers[1]).server.unwrap().evictions > 0);
    rows.extend(&all(&mut job)[0]);
    assert_eq!(sorted(&rows), (0..1000).collect::<Vec<_>>());
}

#[test]
fn ranks_of_a_follower_that_dies_read_by_themselves_and_the_others_go_on() {
    let slow = Numbers { slow: SECOND / 50, ..Numbers::new(4000) };
    let mut nodes = Nodes::start(3, &slow);
    nodes.servers[0].create(4000, "10", "");
    let ranks = [0, 1, 2];
    let mut jobs: Vec<Job> = (0..3).map(|rank| nodes.rank(&ranks, rank, |_| ())).collect();
    let mut rows = vec![Vec::new(); 3];
    read_all_until(&mut jobs, &mut rows, 200);
    nodes.servers[2].stop();
    read_all_until(&mut jobs, &mut rows, 500);
    assert!(jobs[2].counts().direct > 0, "{:?}", jobs[2].counts());
    until("the leader does not notice", || {
        let leader = status(&nodes.servers[0]);
        leader.cluster.unwrap().followers == [1] && leader.groups[0].ranks == [0, 1]
    });
    nodes.restart(2);
    nodes.wait_until_connected(2, true);
    assert_complete(&read_rest(&mut jobs, &mut rows), 4000, 2);
    let counts: Vec<_> = jobs.iter().map(Job::counts).collect();
    assert_eq!(counts.iter().map(|counts| counts.registered).collect::<Vec<_>>(), [1, 1, 2]);
    assert_eq!((counts[0].direct, counts[1].direct), (0, 0));
}

#[test]
fn a_rank_that_is_started_anew_goes_on_with_its_elements() {
    let slow = Numbers { slow: SECOND / 200, ..Numbers::new(2000) };
    let nodes = Nodes::start(2, &slow);
    nodes.servers[0].create(2000, "10", "");
    let ranks = [1, 0, 1];
    let mut jobs: Vec<Job> = (0..3).map(|rank| nodes.rank(&ranks, rank, |_| ())).collect();
    let mut rows = vec![Vec::new(); 3];
    read_all_until(&mut jobs, &mut rows, 150);
    let (position, fingerprint) = jobs[2].position().unwrap();
    jobs[2].close();
    jobs[2] = nodes.rank(&ranks, 2, |options| {
        (options.position, options.fingerprint) = (Some(position), Some(fingerprint));
    });
    assert_complete(&read_rest(&mut jobs, &mut rows), 2000, 2);
}

#[test]
fn a_rank_waits_for_the_others_and_can_be_closed_meanwhile() {
    let nodes = Nodes::start(2, &Numbers::new(200));
    nodes.servers[0].create(200, "10", "");
    for node in [0, 1] {
        let mut alone = nodes.rank(&[node, 0, 1], 0, |_| ());
        assert!(matches!(alone.next(SECOND).unwrap(), NextOfJob::Pending));
        assert_eq!(alone.mode(), Mode::Connecting);
        let groups = status(&nodes.servers[0]).groups;
        assert_eq!((groups[0].world_size, groups[0].ranks.clone(), groups[0].dealt), (3, vec![0], false));
        let began = Instant::now();
        alone.close();
        assert!(began.elapsed() < 5 * SECOND);
        until("it is still waited for", || status(&nodes.servers[0]).groups.is_empty());
    }
    // and what is invalid is refused by whichever server
    for node in [0, 1] {
        let refused = |options: &dyn Fn(&mut JobOptions)| {
            next(&mut nodes.rank(&[node, 0], 0, |of| options(of))).unwrap_err().to_string()
        };
        assert!(refused(&|options| options.rank = 2).starts_with("rank: there is no rank 2 of 2"));
        let many = refused(&|options| options.world_size = 21);
        assert!(many.starts_with("world_size: \"job\" has 21 ranks, and 20 elements"), "{many}");
    }
}

#[test]
fn ranks_on_one_machine_need_no_cluster() {
    let server = Server::start(1 << 20, Numbers::new(1000));
    server.create(1000, "10", "");
    let given: Vec<Vec<Vec<i64>>> = std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..3)
            .map(|rank| {
                let mut job = server.job(|options| (options.rank, options.world_size) = (rank, 3));
                scope.spawn(move || all(&mut job))
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    assert_complete(&given, 1000, 2);
    assert_eq!(status(&server).server.unwrap().loads, 100);
    assert_eq!(job_options(&server.path).world_size, 1);
}
