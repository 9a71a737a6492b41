//! What a connection is made with: the connection string, a service, the environment and the password file, as libpq,
//! PostgreSQL's own library, reads them.
//!
//! It guarantees that nothing is ignored that libpq knows: what is not supported here is refused by its name, lest a
//! connection be less safe than it was asked to be, or another one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::postgres::Config;
use ::postgres::config::{Host, SslMode};
use source::SourceError;

use super::passwords;
use super::tls::{self, Tls};

/// What becomes of a parameter of libpq.
enum Use {
    /// It is given on, under the same name.
    Passed,
    /// It is looked at here.
    Ours,
    /// Only these values are accepted, which ask for what is done anyway.
    Only(&'static [&'static str]),
}

use Use::{Only, Ours, Passed};

/// The parameters of libpq, and the variables of the environment that stand for them.
const PARAMETERS: &[(&str, &str, Use)] = &[
    ("application_name", "PGAPPNAME", Passed),
    ("channel_binding", "PGCHANNELBINDING", Passed),
    ("client_encoding", "PGCLIENTENCODING", Only(&["UTF8", "utf8", "UTF-8", "utf-8", "auto"])),
    ("connect_timeout", "PGCONNECT_TIMEOUT", Passed),
    ("dbname", "PGDATABASE", Passed),
    ("fallback_application_name", "", Ours),
    ("gssdelegation", "PGGSSDELEGATION", Only(&["0"])),
    ("gssencmode", "PGGSSENCMODE", Only(&["disable", "prefer"])),
    ("gsslib", "PGGSSLIB", Only(&[])),
    ("host", "PGHOST", Passed),
    ("hostaddr", "PGHOSTADDR", Passed),
    ("keepalives", "", Passed),
    ("keepalives_count", "", Passed),
    ("keepalives_idle", "", Passed),
    ("keepalives_interval", "", Passed),
    ("krbsrvname", "PGKRBSRVNAME", Only(&[])),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS", Passed),
    ("options", "PGOPTIONS", Passed),
    ("passfile", "PGPASSFILE", Ours),
    ("password", "PGPASSWORD", Passed),
    ("port", "PGPORT", Passed),
    ("replication", "", Only(&["false", "off", "no", "0"])),
    ("require_auth", "PGREQUIREAUTH", Only(&[])),
    ("requirepeer", "PGREQUIREPEER", Only(&[])),
    ("service", "PGSERVICE", Ours),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Only(&["TLSv1.3"])),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Ours),
    ("sslcert", "PGSSLCERT", Ours),
    ("sslcertmode", "PGSSLCERTMODE", Only(&["allow"])),
    ("sslcompression", "PGSSLCOMPRESSION", Only(&["0"])),
    ("sslcrl", "PGSSLCRL", Only(&[])),
    ("sslcrldir", "PGSSLCRLDIR", Only(&[])),
    ("sslkey", "PGSSLKEY", Ours),
    ("sslmode", "PGSSLMODE", Ours),
    ("sslnegotiation", "PGSSLNEGOTIATION", Passed),
    ("sslpassword", "", Only(&[])),
    ("sslrootcert", "PGSSLROOTCERT", Ours),
    ("sslsni", "PGSSLSNI", Only(&["1"])),
    ("target_session_attrs", "PGTARGETSESSIONATTRS", Passed),
    ("tcp_user_timeout", "", Passed),
    ("user", "PGUSER", Passed),
];

/// Settings of the session that libpq takes from the environment.
const OF_SESSION: [(&str, &str); 3] = [("PGDATESTYLE", "datestyle"), ("PGGEQO", "geqo"), ("PGTZ", "timezone")];

/// How to connect.
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// Why a password file was not read: to be told if a password was wanted.
    pub(super) note: Option<String>,
}

/// Values of parameters, with where each comes from if that is not the connection string.
#[derive(Default)]
pub(super) struct Values(BTreeMap<&'static str, (String, String)>);

impl Values {
    /// The value of a parameter that is set, and not to nothing.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|(value, _)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The parameter's name for messages.
    pub(super) fn told(&self, name: &str) -> String {
        let place = self.0.get(name).map_or("", |(_, place)| place);
        if place.is_empty() { name.to_owned() } else { format!("{name} ({place})") }
    }

    /// Sets a parameter unless it is set.
    fn add(&mut self, name: &str, value: &str, place: &str) -> Result<(), SourceError> {
        let Some((name, _, _)) = PARAMETERS.iter().find(|(known, ..)| *known == name) else {
            return Err(wrong(&format!("there is no parameter {}", shown(name))));
        };
        self.0.entry(name).or_insert_with(|| (value.to_owned(), place.to_owned()));
        Ok(())
    }
}

/// What should be a parameter's name, in a message. Where it does not look like one it may be a part of a password.
fn shown(name: &str) -> String {
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_name { format!("{name:?}") } else { "\"...\" (not shown: it may be part of a password)".to_owned() }
}

/// Parameters whose values are secrets.
const SECRETS: [&str; 2] = ["password", "sslpassword"];

/// Whether a connection string has a password, which anyone who keeps or shows the string would keep or show.
///
/// # Errors
/// If it is not a connection string.
pub fn has_password(connection: &str) -> Result<bool, SourceError> {
    Ok(pairs(connection)?.iter().any(|(name, value)| SECRETS.contains(&name.as_str()) && !value.is_empty()))
}

pub(super) fn wrong(what: &str) -> SourceError {
    SourceError::Invalid(format!("the connection string is wrong: {what}"))
}

pub(super) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A file in the user's directory.
pub(super) fn at_home(name: &str) -> Option<PathBuf> {
    env("HOME").map(|home| Path::new(&home).join(name))
}

/// What a connection string asks for, with what it leaves to a service, the environment and defaults.
pub(super) fn settings(connection: &str) -> Result<Settings, SourceError> {
    let mut values = Values::default();
    for (name, value) in pairs(connection)? {
        values.add(&name, &value, "")?;
    }
    if let Some(name) = values.get("service").map(str::to_owned).or_else(|| env("PGSERVICE")) {
        service(&name, &mut values)?;
    }
    for (name, variable, _) in PARAMETERS {
        if let Some(value) = env(variable) {
            values.add(name, &value, variable)?;
        }
    }
    refuse(&values)?;
    if values.get("host").is_none() && values.get("hostaddr").is_none() {
        let socket = Path::new("/var/run/postgresql").is_dir();
        values.0.insert("host", (if socket { "/var/run/postgresql" } else { "localhost" }.to_owned(), String::new()));
    }
    if let Some(user) = env("USER").or_else(|| env("LOGNAME")) {
        values.add("user", &user, "USER")?;
    }
    let mut config = config(&values)?;
    let note = passwords::add(&mut config, &values)?;
    let tls = tls::tls(&mut config, &values)?;
    Ok(Settings { config, tls, note })
}

/// Refuses what would be ignored.
fn refuse(values: &Values) -> Result<(), SourceError> {
    for (name, _, accepted) in PARAMETERS {
        let (Only(accepted), Some(value)) = (accepted, values.get(name)) else { continue };
        if !accepted.contains(&value) {
            let value = if SECRETS.contains(name) { "..." } else { value };
            let name = values.told(name);
            let instead = match accepted {
                [] => "leave it out".to_owned(),
                [one, ..] => format!("leave it out, or set it to {one}"),
            };
            return Err(SourceError::Invalid(format!(
                "{name}={value} is not supported by corgipile.postgres: {instead}"
            )));
        }
    }
    Ok(())
}

/// The configuration of what is given on.
fn config(values: &Values) -> Result<Config, SourceError> {
    let mut passed = String::new();
    for (name, ..) in PARAMETERS.iter().filter(|(.., how)| matches!(how, Passed)) {
        if let Some(value) = values.get(name) {
            let name = if *name == "keepalives_count" { "keepalives_retries" } else { name };
            passed += &format!("{name}='{}' ", value.replace('\\', "\\\\").replace('\'', "\\'"));
        }
    }
    let mut config: Config = passed.parse().map_err(|error: ::postgres::Error| {
        wrong(&std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
    })?;
    if config.get_application_name().is_none() {
        config.application_name(values.get("fallback_application_name").unwrap_or("corgipile"));
    }
    if config.get_connect_timeout().is_none() && config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_))) {
        config.connect_timeout(Duration::from_secs(30));
    }
    let mut options = config.get_options().unwrap_or_default().to_owned();
    for (variable, setting) in OF_SESSION {
        if let Some(value) = env(variable) {
            options += &format!(" -c {setting}={}", value.replace('\\', "\\\\").replace(' ', "\\ "));
        }
    }
    if !options.is_empty() {
        config.options(&options);
    }
    config.ssl_mode(SslMode::Disable); // until it is known what is wanted
    Ok(config)
}

/// The parameters of a connection string, or of a URI.
fn pairs(connection: &str) -> Result<Vec<(String, String)>, SourceError> {
    let uri = ["postgresql://", "postgres://"].iter().find_map(|scheme| connection.strip_prefix(scheme));
    uri.map_or_else(|| keywords(connection), of_uri)
}

/// `name=value name='value'`, with backslashes before what is meant as it is.
fn keywords(text: &str) -> Result<Vec<(String, String)>, SourceError> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        // what is behind a value may be the rest of it, such as of a password with spaces
        let without = |word: &str| match pairs.last() {
            None => wrong(&format!("there is no = behind {}", shown(word))),
            Some((last, _)) => {
                wrong(&format!("there is no = in what follows the value of {last}: put one with spaces in quotes"))
            }
        };
        let (name, behind) = rest.split_once('=').ok_or_else(|| without(rest))?;
        let name = name.trim_end();
        if name.contains(char::is_whitespace) {
            return Err(without(name.split_whitespace().next().unwrap_or_default()));
        }
        let behind = behind.trim_start();
        let quoted = behind.strip_prefix('\'');
        let (mut value, mut end, mut chars) = (String::new(), None, quoted.unwrap_or(behind).char_indices());
        while let Some((at, character)) = chars.next() {
            match character {
                '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
                '\'' if quoted.is_some() => {
                    end = Some(at + 1);
                    break;
                }
                space if quoted.is_none() && space.is_whitespace() => {
                    end = Some(at);
                    break;
                }
                other => value.push(other),
            }
        }
        if quoted.is_some() && end.is_none() {
            return Err(wrong(&format!("the quote of {name} has no end")));
        }
        pairs.push((name.to_owned(), value));
        rest = end.map_or("", |end| quoted.unwrap_or(behind)[end..].trim_start());
    }
    Ok(pairs)
}

/// `user:password@host:port,host:port/dbname?name=value&name=value`, what is behind the scheme.
fn of_uri(uri: &str) -> Result<Vec<(String, String)>, SourceError> {
    let mut pairs = Vec::new();
    let mut add = |name: &str, value: &str| -> Result<(), SourceError> {
        if !value.is_empty() {
            pairs.push((name.to_owned(), decoded(value, name)?));
        }
        Ok(())
    };
    let (before, parameters) = uri.split_once('?').unwrap_or((uri, ""));
    let (authority, database) = before.split_once('/').unwrap_or((before, ""));
    let (who, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    add("user", user)?;
    add("password", password)?;
    add("dbname", database)?;
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for host in hosts.split(',') {
        let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            Some((address, port)) => (address, port.strip_prefix(':').unwrap_or(port)),
            None => host.split_once(':').unwrap_or((host, "")),
        };
        names.push(name);
        ports.push(port);
    }
    add("host", &names.join(","))?;
    if ports.iter().any(|port| !port.is_empty()) {
        add("port", &ports.join(","))?;
    }
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) =
            parameter.split_once('=').ok_or_else(|| wrong(&format!("there is no = behind {}", shown(parameter))))?;
        match (name, value) {
            ("ssl", "true") => add("sslmode", "require")?,
            _ => add(&decoded(name, "a parameter's name")?, value)?,
        }
    }
    Ok(pairs)
}

/// A part of a URI, of which only `what` it is is shown, with what stands behind percent signs.
fn decoded(text: &str, what: &str) -> Result<String, SourceError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        if byte == b'%' {
            let digits = behind.get(..2).and_then(|digits| str::from_utf8(digits).ok());
            let of = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|&byte| byte != 0);
            bytes.push(of.ok_or_else(|| wrong(&format!("{what} has a % without two hexadecimal digits")))?);
            rest = &behind[2..];
        } else {
            bytes.push(byte);
            rest = behind;
        }
    }
    String::from_utf8(bytes).map_err(|_| wrong(&format!("{what} is not valid UTF-8")))
}

/// Adds what the definition of a service says.
fn service(name: &str, values: &mut Values) -> Result<(), SourceError> {
    let of_user = env("PGSERVICEFILE").map(PathBuf::from).or_else(|| at_home(".pg_service.conf"));
    let directory = env("PGSYSCONFDIR").unwrap_or_else(|| "/etc/postgresql-common".into());
    for file in of_user.into_iter().chain([Path::new(&directory).join("pg_service.conf")]) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let told = |number: usize, what: &str| {
            SourceError::Invalid(format!("{}, line {}: {what}", file.display(), number + 1))
        };
        let (mut inside, mut found) = (false, false);
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if let Some(group) = line.strip_prefix('[') {
                inside = group.strip_suffix(']') == Some(name);
                found |= inside;
            } else if inside && !line.is_empty() && !line.starts_with('#') {
                let (name, value) = line.split_once('=').ok_or_else(|| told(number, "there is no ="))?;
                if name == "service" || name.starts_with("ldap") {
                    return Err(told(number, &format!("{name} is not supported in a service")));
                }
                let place = format!("{}, line {}", file.display(), number + 1);
                values
                    .add(name, value, &place)
                    .map_err(|_| told(number, &format!("there is no parameter {name:?}")))?;
            }
        }
        if found {
            return Ok(());
        }
    }
    Err(SourceError::Invalid(format!(
        "service {name:?} is defined in no file: neither PGSERVICEFILE nor pg_service.conf"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(connection: &str) -> Vec<String> {
        pairs(connection).unwrap().into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    // What libpq's documentation says of the two forms.
    #[test]
    fn keywords_may_have_quotes_spaces_and_backslashes() {
        assert_eq!(
            all(r"host=localhost  port = 5432 password='it\'s \\ me' user=a\ b dbname=''"),
            ["host=localhost", "port=5432", r"password=it's \ me", "user=a b", "dbname="]
        );
        assert!(all("  ").is_empty());
        for (wrong, why) in [("host", "no = behind \"host\""), ("a b=c", "no = behind \"a\""), ("x='y", "quote of x")] {
            let error = pairs(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn uris_have_users_hosts_databases_and_parameters() {
        assert_eq!(
            all("postgresql://me:s%40crt@h1:1,h2/my%20db?connect_timeout=10&sslmode=verify-full"),
            [
                "user=me",
                "password=s@crt",
                "dbname=my db",
                "host=h1,h2",
                "port=1,",
                "connect_timeout=10",
                "sslmode=verify-full"
            ]
        );
        assert_eq!(all("postgres://[2001:db8::1]:5433"), ["host=2001:db8::1", "port=5433"]);
        assert_eq!(all("postgresql:///db?host=%2Ftmp&ssl=true"), ["dbname=db", "host=/tmp", "sslmode=require"]);
        for wrong in ["postgresql://h/db?x", "postgresql://%zz@h", "postgresql://h/%0"] {
            assert!(pairs(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn messages_show_no_part_of_a_password() {
        for connection in [
            "password=my secret host=h",
            "host=h password=my secret",
            "host=h password='my' secret host",
            "postgresql:/me:secret@h/db",
            "me:secret@h/db?sslmode=require",
            "Secret",
            "postgresql://me:100%secret@h/db",
            "postgresql://me:%ffsecret@h/db",
            "postgresql://me:p?secret@h/db",
            "postgresql://me:p/secret@h/db?secret%zz=1",
            "postgresql://h/db?Secret=1",
            "postgresql://me:p/secret@h:1/db",
            "postgresql://me:p:secret@h:no/db",
            "host=h sslpassword=secret",
            "postgresql://h/db?sslpassword=secret",
        ] {
            let error = settings(connection).err().expect(connection).to_string();
            assert!(!error.to_lowercase().contains("secret"), "{connection}: {error}");
        }
    }

    #[test]
    fn a_connection_string_with_a_password_is_known_in_each_of_its_forms() {
        for with in [
            "host=h password=secret",
            "password = 'se cret'",
            "postgresql://me:secret@h/db",
            "postgres://me:secret@/db",
            "postgresql://h/db?password=secret",
            "postgresql://h/db?pass%77ord=secret",
            "sslpassword=secret",
        ] {
            assert!(has_password(with).unwrap(), "{with}");
        }
        let by_reference = ["service=s", "passfile=/x", "postgresql://me@h/db?service=s"];
        for without in ["", "host=h user=password", "password=''"].into_iter().chain(by_reference) {
            assert!(!has_password(without).unwrap(), "{without}");
        }
        assert!(has_password("host").is_err());
    }

    #[test]
    fn what_would_be_ignored_is_refused_by_name() {
        for (connection, told) in [
            ("sslcrl=/x", "sslcrl=/x is not supported"),
            ("gssencmode=require", "gssencmode=require is not supported"),
            ("requirepeer=postgres", "requirepeer=postgres"),
            ("client_encoding=LATIN1", "set it to UTF8"),
            ("nosuch=1", "there is no parameter \"nosuch\""),
            ("target_session_attrs=standby", "target_session_attrs"),
        ] {
            let error = settings(connection).err().expect(connection).to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn every_parameter_is_there_once() {
        assert!(PARAMETERS.is_sorted_by(|(one, ..), (next, ..)| one < next));
    }
}
