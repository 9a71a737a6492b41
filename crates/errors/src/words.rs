//! Parts of messages: numbers, names and lists as they stand in a sentence.

/// NaN and infinities as SQL writes them; a number beyond double precision has become an infinity.
pub(super) fn in_words(value: f64) -> String {
    match value {
        f64::INFINITY => "Infinity or out of range".into(),
        f64::NEG_INFINITY => "-Infinity or out of range".into(),
        value => value.to_string(),
    }
}

/// One of what is named in the plural.
pub(super) fn singular(plural: &str) -> String {
    match plural.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => plural.trim_end_matches('s').to_owned(),
    }
}

/// Words of which one is to be chosen: `"auto", "on" or "off"`.
pub fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => quoted.concat(),
    }
}

/// Names that a notice has room for; of more it says how many.
pub const NAMED: usize = 10;

/// The first of these names, and how many more there are.
pub fn some_of(names: &[String]) -> String {
    match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{}, and {more} more", names[..NAMED].join(", ")),
    }
}

/// Some of several names.
pub(super) fn alternatives(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let more = if names.len() > SHOWN { format!(", or one of {} others", names.len() - SHOWN) } else { String::new() };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(" or "))
}
