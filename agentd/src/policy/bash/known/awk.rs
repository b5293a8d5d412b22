//! `awk`: a scanner that proves a program free of output redirections, pipes, `system`, `getline`, includes and the
//! environment. What it cannot tell apart (a division from a regular expression in doubt) it refuses.

use super::super::value::Value;
use super::Proof;
use super::bracket::Bracket;
use super::options::Table;
use crate::policy::words::listed;

const OPTIONS: Table = Table {
    flags: "",
    with_value: "Fv",
    optional: "",
    long: "",
    long_with_value: "field-separator assign",
    numbers: false,
};

/// Proves that an `awk` only prints.
pub(super) fn read_only(arguments: &[Value]) -> Proof {
    if let [Value::Known(only)] = arguments
        && only == "--version"
    {
        return Ok(());
    }
    // Options end at the program; what looks like one behind it belongs to the program.
    let parsed = OPTIONS.read("awk", arguments)?;
    let program =
        parsed.operands.first().and_then(|program| program.known()).ok_or("the program of awk is not known")?;
    Scanner::new(program).check().ok_or_else(|| "this awk program is not known to only print".to_owned())
}

/// What stood before, as far as it decides what `/` means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A value: `/` divides.
    Operand,
    /// An operator or nothing: `/` begins a regular expression.
    Other,
    /// A closing parenthesis, `length`, `++`: one or the other.
    Doubt,
}

struct Scanner<'a> {
    rest: &'a str,
    before: Before,
    /// Inside the arguments of `print` or `printf`, where `>` may write.
    printing: bool,
    /// The last character that counts.
    last: char,
}

impl<'a> Scanner<'a> {
    fn new(program: &'a str) -> Self {
        Self { rest: program, before: Before::Other, printing: false, last: ';' }
    }

    fn check(mut self) -> Option<()> {
        while let Some(c) = self.rest.chars().next() {
            match c {
                ' ' | '\t' => {
                    self.rest = &self.rest[1..];
                    continue;
                }
                '"' => self.delimited('"')?,
                '/' if self.before == Before::Doubt => return None,
                '/' if self.before == Before::Other => self.delimited('/')?,
                '#' => {
                    self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
                    continue;
                }
                'a'..='z' | 'A'..='Z' | '_' => self.word()?,
                '0'..='9' | '.' => {
                    self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
                    self.before = Before::Operand;
                }
                '|' if self.rest.starts_with("||") => self.operator(2),
                '|' | '@' | '\\' | '`' | '\'' => return None,
                '>' if self.printing => return None,
                // A statement goes on behind these.
                '\n' if ",&|(?:".contains(self.last) => self.operator(1),
                ';' | '\n' | '}' | '{' => {
                    self.printing = false;
                    self.operator(1);
                }
                ']' => {
                    self.operator(1);
                    self.before = Before::Operand;
                }
                ')' => {
                    self.operator(1);
                    self.before = Before::Doubt;
                }
                '+' | '-' if self.rest.starts_with("++") || self.rest.starts_with("--") => {
                    self.operator(2);
                    self.before = Before::Doubt;
                }
                _ if c.is_ascii() => self.operator(1),
                _ => return None,
            }
            if c != '\n' {
                self.last = c;
            }
        }
        Some(())
    }

    fn operator(&mut self, length: usize) {
        self.rest = &self.rest[length..];
        self.before = Before::Other;
    }

    /// Over a string or a regular expression on one line.
    fn delimited(&mut self, delimiter: char) -> Option<()> {
        let regex = delimiter == '/';
        let mut bracket = Bracket::Outside;
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\n' => return None,
                '\\' => {
                    let (_, escaped) = chars.next().filter(|(_, c)| *c != '\n')?;
                    if bracket.open() && matches!(escaped, '/' | ']') {
                        return None;
                    }
                    bracket = bracket.after(escaped, true);
                }
                _ if c == delimiter => {
                    self.rest = &self.rest[at + 1..];
                    self.before = Before::Operand;
                    return (!bracket.open()).then_some(());
                }
                _ if regex => bracket = bracket.after(c, false),
                _ => {}
            }
        }
        None
    }

    fn word(&mut self) -> Option<()> {
        const REFUSED: &str = "system getline ENVIRON SYMTAB FUNCTAB PROCINFO close fflush";
        const KEYWORDS: &str = "\
    print printf return in if else while for do BEGIN END case exit delete next default switch";
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if listed(REFUSED, word) {
            return None;
        }
        self.printing |= matches!(word, "print" | "printf");
        self.before = match word {
            "length" | "func" | "function" => Before::Doubt,
            _ if listed(KEYWORDS, word) => Before::Other,
            _ => Before::Operand,
        };
        self.rest = rest;
        Some(())
    }
}
