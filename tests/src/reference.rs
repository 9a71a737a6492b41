//! The pages of docs/reference that are written from the catalog and `corgipile_options()`.
//!
//! A page is made of a part, `docs/reference/parts/NAME.md.in`: prose, and directives in comments,
//! which the catalog answers.
//! - `<!-- functions NAME...`, lines `function: meaning`, `-->`: a list of functions, one line for each, with its
//!   signatures, its result, and the meaning, or else what the comments say. `model` stands for all ways to name a
//!   model, `source` for both types of a source; signatures that differ in types only are one.
//! - `<!-- arguments NAME`, lines `argument: meaning`, `-->`: a table of a function's arguments with types and
//!   defaults. Without a meaning an argument has the description of the option of this name. If that is
//!   corgipile_train()'s, a sentence before the table names it instead, and so it is with `argument: as NAME`, for
//!   another function. `argument +: more` adds to the description, `argument = default: meaning` gives a default that
//!   the catalog does not say.
//! - `<!-- returns NAME`, lines `column: meaning`, `-->`: a table of the columns that a function returns.
//! - `<!-- options`, lines `option +: more`, `-->`: the table of options.
//! - `<!-- view NAME -->`: the comment of a view in schema corgipile and a table of its columns.
//! - `<!-- settings -->`: the table of settings.
//!
//! A meaning of what is not there is an error, and so is a function or view that no directive names, or a function
//! without an example.

use crate::{Database, Session};
use std::collections::{BTreeMap, BTreeSet};

/// A row of corgipile_options().
struct Described {
    name: String,
    type_name: String,
    default: String,
    range: String,
    applies_to: String,
    description: String,
}

impl Described {
    /// What it means, and for which models, if it is not for all.
    fn meaning(&self) -> String {
        match self.applies_to.strip_prefix("all models") {
            Some(_) => self.description.clone(),
            None => format!("{}. For {} only", self.description, self.applies_to),
        }
    }
}

/// What the catalog says, and what was named of it.
pub struct Reference<'a> {
    db: &'a mut Database,
    /// of a server that has preloaded the library: elsewhere the settings that need a restart are not known
    preloaded: &'a mut Session,
    options: Vec<Described>,
    functions: BTreeSet<String>,
    views: BTreeSet<String>,
}

/// The words of a directive, and its lines: name, sign, meaning.
struct Directive {
    words: Vec<String>,
    lines: BTreeMap<String, (char, String)>,
}

impl<'a> Reference<'a> {
    /// Of a database that has the extension, and of a session of a server that has preloaded the library.
    pub fn new(db: &'a mut Database, preloaded: &'a mut Session) -> Reference<'a> {
        let none = |text: &str| if text == "NULL" { String::new() } else { text.to_owned() };
        let rows = db.lines("SELECT * FROM corgipile_options()");
        let described = |row: &String| {
            let cells: Vec<&str> = row.splitn(6, '|').collect();
            let [name, type_name, default, range, applies_to, description] = cells[..] else { panic!("{row}") };
            let (name, type_name, applies_to) = (name.to_owned(), type_name.to_owned(), applies_to.to_owned());
            let (default, range, description) = (none(default), none(range), description.to_owned());
            Described { name, type_name, default, range, applies_to, description }
        };
        let options = rows.iter().map(described).collect();
        Reference { db, preloaded, options, functions: BTreeSet::new(), views: BTreeSet::new() }
    }

    /// The page that a part makes.
    ///
    /// # Errors
    /// The directive that cannot be answered.
    pub fn page(&mut self, part: &str) -> Result<String, String> {
        let mut page = String::new();
        let mut lines = part.lines();
        while let Some(line) = lines.next() {
            // Marks of figures are the document's.
            let Some(directive) = line.strip_prefix("<!-- ").filter(|rest| !rest.starts_with("figures: ")) else {
                page.push_str(line);
                page.push('\n');
                continue;
            };
            let mut body = vec![directive.trim_end_matches("-->").trim()];
            if !directive.ends_with("-->") {
                body.extend(lines.by_ref().take_while(|line| *line != "-->"));
            }
            page.push_str(&self.answer(&directive_of(&body)?)?);
        }
        Ok(page)
    }

    /// Functions for users, and views, that no directive has named.
    pub fn left_out(&mut self) -> Vec<String> {
        let functions =
            "SELECT DISTINCT p.proname FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e'
                           JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'corgipile'
                          WHERE p.proname LIKE 'corgipile\\_%' AND p.proname <> 'corgipile_support'";
        let views = "SELECT viewname FROM pg_views WHERE schemaname = 'corgipile'";
        let mut left = self.db.lines(functions);
        left.retain(|name| !self.functions.contains(name));
        left.extend(self.db.lines(views).into_iter().filter(|name| !self.views.contains(name)));
        left
    }

    fn answer(&mut self, directive: &Directive) -> Result<String, String> {
        let words: Vec<&str> = directive.words.iter().map(String::as_str).collect();
        let mut unused: BTreeSet<String> = directive.lines.keys().cloned().collect();
        let answer = match words[..] {
            ["functions", ref names @ ..] => self.function_list(names, directive, &mut unused),
            ["arguments", name] => self.arguments(name, directive, &mut unused),
            ["returns", name] => self.returns(name, directive, &mut unused),
            ["options"] => Ok(self.option_table(directive, &mut unused)),
            ["view", name] => self.view(name),
            ["settings"] => Ok(self.settings()),
            _ => Err(format!("there is no directive {words:?}")),
        }?;
        match unused.first() {
            Some(name) => Err(format!("{words:?}: there is no {name}")),
            None => Ok(answer),
        }
    }

    /// A line for each function.
    fn function_list(
        &mut self,
        names: &[&str],
        directive: &Directive,
        unused: &mut BTreeSet<String>,
    ) -> Result<String, String> {
        let mut list = String::new();
        let mut before = Vec::new();
        for name in names {
            let overloads = self.overloads(name)?;
            let said = directive.lines.get(*name).map(|(_, said)| said.clone());
            unused.remove(*name);
            let meaning = said.unwrap_or_else(|| distinct(overloads.iter().map(|o| text(&o.comment))).join("; "));
            let results = distinct(overloads.iter().map(|o| o.result.clone())).join(" or ");
            let signatures = merged(&overloads);
            let calls: Vec<String> = signatures.iter().map(|arguments| code(&format!("{name}({arguments})"))).collect();
            let calls = match calls[..] {
                [_, _, ..] if signatures == before => format!("`{name}`, with the same arguments"),
                _ => calls.join(", "),
            };
            let arrow = if results.is_empty() { String::new() } else { format!(" → {results}") };
            list.push_str(&format!("- {calls}{arrow}: {meaning}\n"));
            before = signatures;
        }
        Ok(list)
    }

    fn overloads(&mut self, name: &str) -> Result<Vec<Overload>, String> {
        let rows = self.db.lines(&format!(
            "SELECT pg_get_function_arguments(p.oid) || '@@' || pg_get_function_result(p.oid) || '@@' || obj_description(p.oid, 'pg_proc')
               FROM pg_proc p WHERE p.proname = '{name}' ORDER BY p.oid"
        ));
        if rows.is_empty() {
            return Err(format!("there is no function {name}"));
        }
        self.functions.insert(name.to_owned());
        let overload = |row: &String| {
            let cells: Vec<&str> = row.split("@@").collect();
            let result = match cells[1] {
                "void" => String::new(),
                "record" => "a row".to_owned(),
                rows if rows.starts_with("TABLE(") => "rows".to_owned(),
                type_name => code(&short(type_name)),
            };
            Overload { arguments: arguments_of(cells[0]), result, comment: cells[2].to_owned() }
        };
        Ok(rows.iter().map(overload).collect())
    }

    /// The functions of which a page runs no example.
    pub fn without_example(&self, page: &str) -> Vec<String> {
        let examples: String = page.split("```").skip(1).step_by(2).filter(|block| block.contains("sql")).collect();
        let missing = |name: &&String| !examples.contains(&format!("{name}("));
        self.functions.iter().filter(missing).cloned().collect()
    }

    /// The described option or argument of this name.
    fn described(&self, name: &str) -> Option<&Described> {
        self.options.iter().find(|described| described.name == name)
    }

    fn arguments(
        &mut self,
        function: &str,
        directive: &Directive,
        unused: &mut BTreeSet<String>,
    ) -> Result<String, String> {
        let rows = self.db.lines(&format!(
            "SELECT a.name || '@@' || format_type(a.type, NULL) || '@@' || coalesce(pg_get_function_arg_default(p.oid, a.n::int), '-')
               FROM pg_proc p, unnest(coalesce(p.proallargtypes, p.proargtypes), p.proargnames, coalesce(p.proargmodes, array_fill('i'::\"char\", ARRAY[p.pronargs::int])))
                               WITH ORDINALITY AS a(type, name, mode, n)
              WHERE p.oid = (SELECT min(oid) FROM pg_proc WHERE proname = '{function}') AND a.mode = 'i' ORDER BY a.n"
        ));
        if rows.is_empty() {
            return Err(format!("there is no function {function}, or it has no arguments"));
        }
        self.functions.insert(function.to_owned());
        let mut table_rows = Vec::new();
        // function that describes arguments, and these
        let mut elsewhere: Vec<(String, Vec<String>)> = Vec::new();
        for row in rows {
            let cells: Vec<&str> = row.split("@@").collect();
            let [name, type_name, declared] = cells[..] else { return Err(row) };
            let described = self.described(name);
            let of_train = function == "corgipile_train";
            let (sign, said) = directive.lines.get(name).map_or(('+', ""), |(sign, said)| (*sign, said.as_str()));
            unused.remove(name);
            let (given_default, said) = if sign == '=' { said.split_once(": ").ok_or(said)? } else { ("", said) };
            let known = described.map_or(String::new(), |described| match of_train {
                true => text(&described.meaning()),
                false => "as corgipile_train".to_owned(),
            });
            let meaning = match (sign, known.as_str(), said) {
                ('+', "", "") => return Err(format!("{function}: nothing is said of {name}")),
                ('+', known, "") => known.to_owned(),
                ('+', known, more) => format!("{known}. {more}"),
                (_, known, "") => known.to_owned(),
                (_, _, said) => said.to_owned(),
            };
            if given_default.is_empty()
                && let Some(other) = meaning
                    .strip_prefix("as ")
                    .filter(|other| other.starts_with("corgipile_") && !other.contains([' ', '.']))
            {
                match elsewhere.iter_mut().find(|(function, _)| function == other) {
                    Some((_, names)) => names.push(code(name)),
                    None => elsewhere.push((other.to_owned(), vec![code(name)])),
                }
                continue;
            }
            let meaning = meaning.replacen("as corgipile_train", "as for `corgipile_train`", 1);
            let default = match (declared, described) {
                _ if !given_default.is_empty() => given_default.to_owned(),
                ("-", _) => String::new(),
                (declared, Some(described)) if declared.starts_with("NULL") && !described.default.is_empty() => {
                    described.default.clone()
                }
                (declared, _) if declared.starts_with("NULL") => "NULL".to_owned(),
                (declared, _) => declared.split("::").next().unwrap_or(declared).to_owned(),
            };
            let mut cells = vec![code(name), code(&short(type_name)), value(&default)];
            if of_train {
                cells.push(described.map_or(String::new(), |described| range(&described.range)));
            }
            cells.push(meaning);
            table_rows.push(cells);
        }
        let head: &[&str] = match function {
            "corgipile_train" => &["Argument", "Type", "Default", "Range", "Meaning"],
            _ => &["Argument", "Type", "Default", "Meaning"],
        };
        let sentence = |(other, names): &(String, Vec<String>)| format!("As for `{other}`: {}.\n", names.join(", "));
        let mut blocks: Vec<String> = elsewhere.iter().map(sentence).collect();
        if !table_rows.is_empty() {
            let table = table(head, table_rows);
            // Defaults and ranges are no results.
            let has_figures = table.split('`').step_by(2).any(|prose| prose.contains(|c: char| c.is_ascii_digit()));
            blocks.push(if has_figures { format!("<!-- figures: given -->\n{table}") } else { table });
        }
        Ok(blocks.join("\n"))
    }

    fn returns(
        &mut self,
        function: &str,
        directive: &Directive,
        unused: &mut BTreeSet<String>,
    ) -> Result<String, String> {
        let rows = self.db.lines(&format!(
            "SELECT a.name || '@@' || format_type(a.type, NULL)
               FROM pg_proc p, unnest(p.proallargtypes, p.proargnames, p.proargmodes) WITH ORDINALITY AS a(type, name, mode, n)
              WHERE p.oid = (SELECT min(oid) FROM pg_proc WHERE proname = '{function}') AND a.mode IN ('t', 'o') ORDER BY a.n"
        ));
        if rows.is_empty() {
            return Err(format!("{function} returns no columns"));
        }
        let row = |row: &String| {
            let (name, type_name) = row.split_once("@@").ok_or("no type")?;
            unused.remove(name);
            let (_, meaning) =
                directive.lines.get(name).ok_or(format!("{function}: nothing is said of column {name}"))?;
            Ok::<_, String>(vec![code(name), code(&short(type_name)), meaning.clone()])
        };
        let rows = rows.iter().map(row).collect::<Result<Vec<_>, _>>()?;
        Ok(table(&["Column", "Type", "Meaning"], rows))
    }

    fn option_table(&self, directive: &Directive, unused: &mut BTreeSet<String>) -> String {
        let options = self.options.iter().filter_map(|option| Some((option, option.type_name.strip_prefix("JSON ")?)));
        let row = |(option, type_name): (&Described, &str)| {
            unused.remove(&option.name);
            let more = directive.lines.get(&option.name).map_or(String::new(), |(_, more)| format!(". {more}"));
            let default = value(&option.default);
            let models = option.applies_to.strip_prefix("all models").map(|rest| rest.trim_start_matches(", "));
            let applies = text(models.unwrap_or(&option.applies_to));
            vec![
                code(&option.name),
                type_name.to_owned(),
                default,
                range(&option.range),
                applies,
                text(&option.description) + &more,
            ]
        };
        table(&["Key", "Type", "Default", "Range", "Only for", "Meaning"], options.map(row).collect())
    }

    fn view(&mut self, name: &str) -> Result<String, String> {
        let columns = self.db.lines(&format!(
            "SELECT a.attname || '@@' || format_type(a.atttypid, NULL) || '@@' || coalesce(col_description(a.attrelid, a.attnum), '')
               FROM pg_attribute a WHERE a.attrelid = 'corgipile.{name}'::regclass AND a.attnum > 0 ORDER BY a.attnum"
        ));
        self.views.insert(name.to_owned());
        let row = |row: &String| {
            let cells: Vec<&str> = row.split("@@").collect();
            if cells[2].is_empty() {
                return Err(format!("column {} of view {name} has no comment", cells[0]));
            }
            Ok(vec![code(cells[0]), code(&short(cells[1])), text(cells[2])])
        };
        let columns = columns.iter().map(row).collect::<Result<Vec<_>, _>>()?;
        let comment = self.db.line(&format!("SELECT obj_description('corgipile.{name}'::regclass, 'pg_class')"));
        Ok(format!("`corgipile.{name}`: {}.\n\n{}", text(&comment), table(&["Column", "Type", "Meaning"], columns)))
    }

    fn settings(&mut self) -> String {
        let rows = self.preloaded.lines(
            "SELECT name || '@@' || CASE unit WHEN 'kB' THEN pg_size_pretty(boot_val::bigint * 1024) ELSE boot_val END
                        || '@@' || short_desc || ' ' || extra_desc
                        || CASE context WHEN 'user' THEN ' Any user may set it.' ELSE '' END
               FROM pg_settings WHERE name LIKE 'corgipile.%' ORDER BY name",
        );
        let row = |row: &String| {
            let cells: Vec<&str> = row.split("@@").collect();
            vec![code(cells[0]), code(cells[1]), text(cells[2])]
        };
        table(&["Setting", "Default", "Meaning"], rows.iter().map(row).collect())
    }
}

fn directive_of(body: &[&str]) -> Result<Directive, String> {
    let words = body[0].split_whitespace().map(str::to_owned).collect();
    let mut lines = BTreeMap::new();
    for line in &body[1..] {
        let (name, said) = line.split_once(' ').ok_or_else(|| format!("no meaning: {line}"))?;
        let (name, sign, said) = match (name.strip_suffix(':'), said.split_once(' ')) {
            (Some(name), _) => (name, ':', said),
            (None, Some(("+:", said))) => (name, '+', said),
            (None, Some(("=", said))) => (name, '=', said),
            _ => return Err(format!("no meaning: {line}")),
        };
        lines.insert(name.to_owned(), (sign, said.to_owned()));
    }
    Ok(Directive { words, lines })
}

/// A function of a name that several may have.
struct Overload {
    arguments: Vec<Argument>,
    result: String,
    comment: String,
}

#[derive(Clone, PartialEq)]
struct Argument {
    /// with what is before it, such as VARIADIC
    name: String,
    types: Vec<String>,
    default: Option<String>,
}

/// The arguments of a signature, without those that are results.
fn arguments_of(signature: &str) -> Vec<Argument> {
    let inputs = signature.split(", ").filter(|argument| !argument.is_empty() && !argument.starts_with("OUT "));
    let argument = |(position, argument): (usize, &str)| {
        let plain = short(argument);
        let (declared, default) = match plain.split_once(" DEFAULT ") {
            Some((declared, default)) => (declared, Some(default.to_owned())),
            None => (plain.as_str(), None),
        };
        let named = declared.strip_prefix("VARIADIC ").unwrap_or(declared);
        let (name, type_name) = named.split_once(' ').unwrap_or((named, ""));
        // Arguments that stand for each other have the same name, and the type is what they are called.
        let (name, types) = match (position, name, type_name) {
            (0, "model_id", "bigint") | (0, "name", "text") | (0, "model", "jsonb") => ("*model", named),
            (_, "source", "text" | "regclass") => ("*source", named),
            _ => (name, type_name),
        };
        let name = if declared == named { name.to_owned() } else { format!("VARIADIC {name}") };
        Argument { name, types: vec![types.to_owned()], default }
    };
    inputs.enumerate().map(argument).collect()
}

/// The signatures of overloads, of which those that differ in types only are one.
fn merged(overloads: &[Overload]) -> Vec<String> {
    let mut signatures: Vec<Vec<Argument>> = Vec::new();
    for Overload { arguments, .. } in overloads {
        let same = |known: &&mut Vec<Argument>| {
            let names = |arguments: &[Argument]| {
                arguments.iter().map(|a| (a.name.clone(), a.default.clone())).collect::<Vec<_>>()
            };
            names(known) == names(arguments)
        };
        match signatures.iter_mut().find(same) {
            Some(known) => {
                for (known, argument) in known.iter_mut().zip(arguments) {
                    known.types = distinct(known.types.iter().chain(&argument.types).cloned());
                }
            }
            None => signatures.push(arguments.clone()),
        }
    }
    signatures.iter().map(|arguments| signature(arguments)).collect()
}

/// As PostgreSQL's documents write it: what has a default in brackets.
fn signature(arguments: &[Argument]) -> String {
    let mut written = String::new();
    let first_optional = arguments.iter().position(|argument| argument.default.is_some());
    for (position, argument) in arguments.iter().enumerate() {
        let opens = first_optional == Some(position);
        written.push_str(match (position, opens) {
            (0, true) => "[",
            (0, false) => "",
            (_, true) => " [, ",
            (_, false) => ", ",
        });
        written.push_str(&match (&argument.types[..], argument.name.strip_prefix('*')) {
            ([only], Some(_)) => only.clone(),
            (_, Some(name)) => name.to_owned(),
            (types, None) => format!("{} {}", argument.name, types.join("/")),
        });
        if let Some(default) = argument.default.as_ref().filter(|default| *default != "NULL") {
            written.push_str(&format!(" = {default}"));
        }
    }
    if first_optional.is_some() {
        written.push(']');
    }
    written
}

/// Each text once, in the order in which they come.
fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    texts.filter(|text| seen.insert(text.clone())).collect()
}

/// A table in Markdown.
fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = format!("{}\n{}\n", head.join(" | "), vec!["---"; head.len()].join(" | "));
    for row in rows {
        table.push_str(row.join(" | ").trim_end());
        table.push('\n');
    }
    table
}

/// A value as code, what is said in place of one as text.
fn value(said: &str) -> String {
    if said.is_empty() || (said.contains(' ') && !said.starts_with('[')) { text(said) } else { code(said) }
}

/// A range: a list of words as code.
fn range(said: &str) -> String {
    let words: Vec<&str> = said.split(", ").collect();
    let is_list = words.len() > 1 && words.iter().all(|word| !word.contains(' '));
    if is_list { words.into_iter().map(code).collect::<Vec<_>>().join(", ") } else { text(said) }
}

fn code(text: &str) -> String {
    format!("`{text}`").replace('|', "\\|")
}

/// A text of SQL in Markdown: names that have a _ or () are code.
fn text(plain: &str) -> String {
    let word = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != ')');
        let is_name = bare.contains('_') || bare.ends_with("()");
        let bare = if bare.ends_with(')') && !bare.ends_with("()") { &bare[..bare.len() - 1] } else { bare };
        if is_name && !bare.is_empty() { word.replacen(bare, &format!("`{bare}`"), 1) } else { word.to_owned() }
    };
    plain.split(' ').map(word).collect::<Vec<_>>().join(" ").replace('|', "\\|").replace(" * ", " × ")
}

/// Types by the names that are used in SQL, and defaults without theirs.
fn short(types: &str) -> String {
    let mut pieces = types.split("::");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str(&piece[piece.find([',', ')']).unwrap_or(piece.len())..]);
    }
    [("double precision", "float8"), ("timestamp with time zone", "timestamptz"), ("integer", "int")]
        .iter()
        .fold(plain, |types, (long, short)| types.replace(long, short))
}
