//! Figures in the prose of a document, checked against where they come from.
//!
//! A test compares the blocks of a document with what psql prints. Prose that repeats a figure of a block would still
//! say the old one when the block changes. So a comment, which no reader sees, stands on the line before a paragraph,
//! list or table and says where its figures come from:
//!
//! - `<!-- figures: above -->`: from the output of the last block ` ```psql compare ` before it.
//! - `<!-- figures: below -->`: from that of the next one.
//! - `<!-- figures: docs/results/speed.md#bounds -->`: from a file of the repository, or a section of a page. Several
//!   are separated by spaces.
//! - `<!-- figures: given -->`: they are no results: defaults, settings, versions. They are not checked.
//!
//! Every number written in digits must then be there, or be one that is there, rounded to as many decimals; of a
//! percentage, also its hundredth. Numbers in backticks and in addresses of links are not figures.
//!
//! The mark cannot be forgotten: on a page with compared blocks a number with decimals has to have one, and so has a
//! whole number from 10 on that the block above prints.

use std::path::Path;

const MARK: &str = "<!-- figures:";

/// A number of the prose.
#[derive(Debug, PartialEq)]
struct Figure {
    text: String,
    value: f64,
    decimals: usize,
    percent: bool,
}

/// The parts of a document that matter here.
enum Part<'a> {
    Paragraph(Paragraph<'a>),
    /// The output of a block whose output is compared.
    Output(String),
}

struct Paragraph<'a> {
    line: usize,
    /// What its mark says.
    source: Option<&'a str>,
    text: String,
}

/// Checks the figures of a document.
///
/// # Errors
/// The lines of all paragraphs with a figure that is not where the mark says, or that has no mark.
pub fn check(text: &str, root: &Path) -> Result<(), String> {
    let parts = split(text)?;
    let has_output = parts.iter().any(|part| matches!(part, Part::Output(_)));
    let mut problems = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let Part::Paragraph(paragraph) = part else { continue };
        let (above, below) = parts.split_at(i);
        let known = match paragraph.source {
            None if !has_output => continue,
            Some("given") => Ok(Vec::new()),
            None | Some("above") => Ok(above.iter().rev().find_map(Part::output).into_iter().collect()),
            Some("below") => Ok(below.iter().find_map(Part::output).into_iter().collect()),
            Some(files) => files.split_whitespace().map(|file| section(root, file)).collect(),
        };
        if let Err(reason) = known.and_then(|texts: Vec<String>| paragraph.check(&texts)) {
            problems.push(format!("{}: {reason}", paragraph.line));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

impl Part<'_> {
    fn output(&self) -> Option<String> {
        if let Self::Output(text) = self { Some(text.clone()) } else { None }
    }
}

impl Paragraph<'_> {
    /// Checks the figures, which have to be in one of these texts.
    fn check(&self, texts: &[String]) -> Result<(), String> {
        let found = figures(&without_code(&self.text));
        let known: Vec<Figure> = texts.iter().flat_map(|text| figures(text)).collect();
        let Some(source) = self.source else {
            let repeats = |figure: &Figure| figure.value >= 10.0 && known.iter().any(|k| figure.value == k.value);
            let Some(figure) = found.iter().find(|figure| figure.decimals > 0 || repeats(figure)) else {
                return Ok(());
            };
            return Err(format!("where does {} come from? \"{MARK} above -->\" says so", figure.text));
        };
        if found.is_empty() {
            return Err("the paragraph has no figures to check".to_owned());
        }
        let mut missing = found.iter().filter(|figure| !known.iter().any(|k| figure.is(k)));
        match missing.next() {
            Some(figure) if source != "given" => Err(format!("{} is not in {}", figure.text, place(source))),
            _ => Ok(()),
        }
    }
}

fn place(source: &str) -> String {
    if matches!(source, "above" | "below") { format!("the block {source}") } else { source.to_owned() }
}

impl Figure {
    /// Is it this number, or this number rounded?
    fn is(&self, known: &Self) -> bool {
        let near = |value: f64| {
            let half = 0.5 * 0.1_f64.powi(i32::try_from(self.decimals).unwrap_or(i32::MAX));
            // Of small whole numbers, a rounded one says too little.
            let rounded = self.decimals > 0 || self.value >= 10.0;
            (self.value - value).abs() <= if rounded { half * (1.0 + 1e-9) } else { 0.0 }
        };
        known.decimals >= self.decimals && near(known.value) || self.percent && near(known.value * 100.0)
    }
}

/// Paragraphs, lists and tables, and the outputs between them.
fn split(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut open: Option<Paragraph> = None;
    let mut marked: Option<(usize, &str)> = None;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let fence = line.trim_start().strip_prefix("```");
        let mark = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix("-->"));
        let is_text = fence.is_none() && mark.is_none() && !line.trim().is_empty() && !line.starts_with('#');
        if !is_text {
            parts.extend(open.take().map(Part::Paragraph));
            if let Some((at, _)) = marked.filter(|_| !line.trim().is_empty()) {
                return Err(format!("{at}: a mark of figures stands before a paragraph"));
            }
        }
        if let Some(info) = fence {
            let body: Vec<&str> = lines.by_ref().map(|(_, l)| l).take_while(|l| l.trim() != "```").collect();
            if info.trim() == "psql compare" {
                parts.push(Part::Output(output(&body)));
            }
        } else if let Some(source) = mark {
            marked = Some((number + 1, source.trim()));
        } else if is_text {
            let paragraph = open.get_or_insert_with(|| Paragraph {
                line: number + 1,
                source: marked.take().map(|(_, source)| source),
                text: String::new(),
            });
            paragraph.text.push_str(line);
            paragraph.text.push('\n');
        }
    }
    parts.extend(open.map(Part::Paragraph));
    match marked {
        Some((at, _)) => Err(format!("{at}: a mark of figures stands before a paragraph")),
        None => Ok(parts),
    }
}

/// What a transcript's statements print.
fn output(body: &[&str]) -> String {
    let printed = body.iter().filter(|line| !line.starts_with("=> ") && !line.starts_with("-> "));
    printed.copied().collect::<Vec<_>>().join("\n")
}

/// The text of a file, or of a section of a page as far as the next heading.
fn section(root: &Path, name: &str) -> Result<String, String> {
    let (file, anchor) = name.split_once('#').map_or((name, None), |(file, anchor)| (file, Some(anchor)));
    let text = std::fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"))?;
    let Some(anchor) = anchor else { return Ok(text) };
    let mut lines = text.lines().skip_while(|line| !line.starts_with('#') || slug(line) != anchor);
    let heading = lines.next().ok_or_else(|| format!("{file} has no section {anchor}"))?;
    Ok(std::iter::once(heading).chain(lines.take_while(|line| !line.starts_with('#'))).collect::<Vec<_>>().join("\n"))
}

/// The anchor of a heading.
fn slug(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Without what is in backticks, and without the addresses of links.
fn without_code(text: &str) -> String {
    let prose: Vec<&str> = text.split('`').step_by(2).collect();
    let mut rest = prose.join("`");
    while let Some((start, length)) =
        rest.find("](").and_then(|start| rest[start..].find(')').map(|length| (start, length)))
    {
        rest.replace_range(start..=start + length, "]");
    }
    rest
}

/// The numbers of a text. Versions such as 0.3.0, days such as 2026-11-23, and what is part of a name are left out.
fn figures(text: &str) -> Vec<Figure> {
    let text: Vec<char> = text.chars().collect();
    let digit = |i: usize| text.get(i).is_some_and(char::is_ascii_digit);
    let mut found = Vec::new();
    let mut i = 0;
    while i < text.len() {
        if !digit(i) {
            i += 1;
            continue;
        }
        let start = i;
        let mut points = 0;
        // Groups of thousands, and a point in mid-number.
        while digit(i)
            || (text.get(i) == Some(&',') && (1..=3).all(|k| digit(i + k)) && !digit(i + 4) && points == 0)
            || (text.get(i) == Some(&'.') && digit(i + 1))
        {
            points += usize::from(text[i] == '.');
            i += 1;
        }
        let mut number: String = text[start..i].iter().filter(|c| **c != ',').collect();
        if text.get(i) == Some(&'e') && (digit(i + 1) || (text.get(i + 1) == Some(&'-') && digit(i + 2))) {
            let end = (i + 2..).find(|&k| !digit(k)).unwrap_or(i + 2);
            number.extend(&text[i..end]);
            i = end;
        }
        let before = |k: usize| start.checked_sub(k).map(|at| text[at]);
        let in_name = before(1).is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '^' | '.'))
            || (before(1) == Some('-') && before(2).is_some_and(char::is_alphanumeric))
            || (text.get(i) == Some(&'-') && digit(i + 1));
        if points > 1 || in_name {
            continue;
        }
        let decimals = number.split('e').next().and_then(|m| m.split_once('.')).map_or(0, |(_, d)| d.len());
        if let Ok(value) = number.parse() {
            let percent = text[i..].iter().find(|c| **c != ' ') == Some(&'%');
            found.push(Figure { text: text[start..i].iter().collect(), value, decimals, percent });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Title
```psql compare
=> SELECT accuracy, loss, rows FROM something(0.5);
 accuracy |  loss  |  rows
----------+--------+-------
   0.9958 | 0.0164 | 20000
(1 row)
```
";

    fn checked(prose: &str) -> Result<(), String> {
        check(&format!("{PAGE}\n{prose}\n"), Path::new("/nowhere"))
    }

    #[test]
    fn figures_of_the_block_above_are_as_printed_or_rounded() {
        for prose in
            ["0.9958 of 20,000 rows.", "An accuracy of 0.996, or 99.6%, and a loss of\n0.016.", "- 0.9958\n- 0.0164"]
        {
            assert_eq!(checked(&format!("<!-- figures: above -->\n{prose}")), Ok(()), "{prose}");
        }
    }

    #[test]
    fn a_figure_that_differs_from_the_block_is_found() {
        for (prose, figure) in [
            ("An accuracy of 0.9957.", "0.9957"),
            ("An accuracy\nof 0.9958 and a loss of 0.0163.", "0.0163"),
            ("20,001 rows.", "20,001"),
            ("An accuracy of 99.5%.", "99.5"),
            ("The statement's 0.5 is no output.", "0.5"),
            ("More decimals than the block has: 0.99580.", "0.99580"),
            ("About 2 rows.", "2"),
        ] {
            let expected = Err(format!("11: {figure} is not in the block above"));
            assert_eq!(checked(&format!("<!-- figures: above -->\n{prose}")), expected, "{prose}");
        }
    }

    #[test]
    fn a_figure_without_a_mark_is_found_where_output_is_compared() {
        assert!(checked("An accuracy of 0.9958.").unwrap_err().contains("where does 0.9958 come from?"));
        assert_eq!(check("An accuracy of 0.9958.\n", Path::new("/nowhere")), Ok(()));
        assert!(checked("Of 20,000 rows.").unwrap_err().contains("where does 20,000 come from?"));
        for prose in ["In 20 epochs.", "`0.5`", "[a link](a0.5.md)", "Version 0.3.0.", "A day like 2026-11-23."] {
            assert_eq!(checked(prose), Ok(()), "{prose}");
        }
        assert_eq!(checked("<!-- figures: given -->\nThe default is 0.001."), Ok(()));
    }

    #[test]
    fn a_mark_without_figures_or_paragraph_is_found() {
        for prose in
            ["<!-- figures: above -->\nNo figures.", "<!-- figures: given -->\n\n## Heading", "<!-- figures: above -->"]
        {
            assert!(checked(prose).is_err(), "{prose}");
        }
    }

    #[test]
    fn the_next_block_is_meant_by_below() {
        let page = format!("<!-- figures: below -->\nIt gets 0.9958.\n\n{PAGE}");
        assert_eq!(check(&page, Path::new("/nowhere")), Ok(()));
        let page = page.replace("0.9958.", "0.9959.");
        assert_eq!(check(&page, Path::new("/nowhere")), Err("2: 0.9959 is not in the block below".to_owned()));
    }

    #[test]
    fn figures_of_a_file_are_in_it_or_in_its_section() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = |source: &str, figure: &str| check(&format!("<!-- figures: {source} -->\nIt is {figure}.\n"), root);
        let folder = std::env::temp_dir().join(format!("figures-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let page = folder.join("page.md");
        std::fs::write(&page, "# Page\n0.25\n## One *section*\n18.72 ms\n## Another\n0.75\n").unwrap();
        let page = page.to_str().unwrap();
        assert_eq!(text(page, "0.75"), Ok(()));
        assert_eq!(text(&format!("{page}#one-section"), "18.7"), Ok(()));
        assert!(text(&format!("{page}#one-section"), "0.75").is_err());
        assert!(text(&format!("{page}#no-section"), "0.75").is_err());
        assert_eq!(text(&format!("{page}#one-section {page}#another"), "0.75"), Ok(()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
