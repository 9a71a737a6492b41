//! The password file: `host:port:database:user:password`, one a line, the first that fits.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use ::postgres::Config;
use ::postgres::config::Host;
use source::SourceError;

use super::settings::{Values, at_home};

/// Where a server's socket is if nothing else is said, which the file calls `localhost`, too.
const SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Adds the password that the file has, if none is given. What is returned is why the file was not read.
pub(super) fn add(config: &mut Config, values: &Values) -> Result<Option<String>, SourceError> {
    if config.get_password().is_some() {
        return Ok(None);
    }
    let Some(path) = values.get("passfile").map(PathBuf::from).or_else(|| at_home(".pgpass")) else { return Ok(None) };
    // As with libpq, a file that is not there, or that others can read, has no password.
    let Ok(metadata) = std::fs::metadata(&path) else {
        let named = values.get("passfile").is_some();
        return Ok(named.then(|| format!("there is no password file {}", path.display())));
    };
    if !metadata.is_file() {
        return Ok(Some(format!("the password file {} is not a plain file", path.display())));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        let path = path.display();
        return Ok(Some(format!(
            "the password file {path} was not read, because others may read it, too: chmod 600 {path}"
        )));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| SourceError::Io { path, error })?;
    let user = config.get_user().unwrap_or_default().to_owned();
    let database = config.get_dbname().unwrap_or(&user).to_owned();
    let mut passwords = Vec::new();
    for (at, host) in hosts(config).into_iter().enumerate() {
        let port = config.get_ports().get(at).or(config.get_ports().first()).copied().unwrap_or(5432).to_string();
        passwords.push(find(&text, [&host, &port, &database, &user]));
    }
    if passwords.windows(2).any(|two| two[0] != two[1]) {
        let what = "the password file has other passwords for other hosts, which is not supported: name one host";
        return Err(SourceError::Invalid(what.into()));
    }
    if let Some(Some(password)) = passwords.first() {
        config.password(password);
    }
    Ok(None)
}

/// The hosts as the file calls them.
fn hosts(config: &Config) -> Vec<String> {
    if config.get_hosts().is_empty() {
        return config.get_hostaddrs().iter().map(ToString::to_string).collect();
    }
    let name = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) if SOCKETS.iter().any(|usual| path.as_os_str() == *usual) => "localhost".into(),
        Host::Unix(path) => path.to_string_lossy().into_owned(),
    };
    config.get_hosts().iter().map(name).collect()
}

/// The password of the first line that fits.
fn find(text: &str, wanted: [&str; 4]) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).map(fields);
    lines.into_iter().find_map(|mut fields| {
        let fits = fields.len() >= 5 && fields.iter().zip(wanted).all(|(has, wanted)| has == "*" || has == wanted);
        fits.then(|| fields.swap_remove(4))
    })
}

/// The fields of a line, in which a backslash stands before a colon or a backslash that belongs to one.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = fields.len() - 1;
        match character {
            '\\' => fields[last].extend(characters.next()),
            // a password may have colons
            ':' if fields.len() < 5 => fields.push(String::new()),
            other => fields[last].push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# h:1:d:u:no\nh:1:d:other:no\nh:1:d:u:it\\:s\\\\me\n*:*:*:u:second\nshort:line\n";
        assert_eq!(find(text, ["h", "1", "d", "u"]).as_deref(), Some("it:s\\me"));
        assert_eq!(find(text, ["h", "2", "d", "u"]).as_deref(), Some("second"));
        assert_eq!(find(text, ["h", "1", "d", "no one"]), None);
        assert_eq!(find("a\\:b:*:*:*:p", ["a:b", "1", "d", "u"]).as_deref(), Some("p"));
    }
}
