//! Texts as SQL writes them, in expressions that people copy.

/// A text as SQL writes it.
pub fn quote_text(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// `column` with NULL in place of these texts.
pub(crate) fn without(column: &str, texts: &[String]) -> String {
    match texts {
        [] => column.to_owned(),
        [only] => format!("NULLIF({column}, {})", quote_text(only)),
        several => {
            let listed: Vec<String> = several.iter().map(|text| quote_text(text)).collect();
            format!("CASE WHEN {column} NOT IN ({}) THEN {column} END", listed.join(", "))
        }
    }
}

/// Is a text one of those that stand for a missing value?
pub(crate) fn is_code(text: &str) -> bool {
    const CODES: [&str; 25] = [
        "",
        "?",
        "??",
        "-",
        "--",
        "---",
        ".",
        "..",
        "*",
        "na",
        "n/a",
        "n.a.",
        "n.a",
        "#n/a",
        "nan",
        "nat",
        "null",
        "none",
        "nil",
        "missing",
        "unknown",
        "unk",
        "\\n",
        "not available",
        "not applicable",
    ];
    CODES.contains(&text.trim().to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_sql_wants_them() {
        assert_eq!(quote_text("don't"), "'don''t'");
        assert_eq!(quote_text("\\N"), "E'\\\\N'");
    }

    #[test]
    fn codes_become_null() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(without("a", &[]), "a");
        assert_eq!(without("a", &texts(&["?"])), "NULLIF(a, '?')");
        assert_eq!(without("a", &texts(&["?", ""])), "CASE WHEN a NOT IN ('?', '') THEN a END");
    }

    #[test]
    fn a_code_stands_for_a_missing_value_in_any_case() {
        assert!(["", " ", "NA", "N/A", "?", "-", "NaN", "null", "\\N"].iter().all(|text| is_code(text)));
        assert!(!["0", "no", "nope", "-1", "a"].iter().any(|text| is_code(text)));
    }
}
