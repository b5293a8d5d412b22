//! `sed`: a reader for scripts whose commands only print. `w`, `W`, `e`, the flags `w` and `e` of `s`, `-i`, and scripts
//! from files are not among them.

use super::super::value::Value;
use super::Proof;
use super::bracket::Bracket;
use super::options::Table;

const OPTIONS: Table = Table {
    flags: "nErsuz",
    with_value: "el",
    optional: "",
    long: "\
        quiet silent regexp-extended separate unbuffered null-data posix debug sandbox",
    long_with_value: "expression line-length",
    numbers: false,
};

/// Proves that a `sed` only prints.
pub(super) fn read_only(arguments: &[Value]) -> Proof {
    if let [Value::Known(only)] = arguments
        && matches!(only.as_str(), "--version" | "--help")
    {
        return Ok(());
    }
    let parsed = OPTIONS.read("sed", arguments)?;
    let scripts = parsed.options.iter().filter(|(name, _)| matches!(*name, "e" | "expression"));
    let mut scripts: Vec<Option<&str>> = scripts.map(|(_, script)| *script).collect();
    if scripts.is_empty() {
        scripts.push(parsed.operands.first().and_then(|script| script.known()));
    }
    for script in scripts {
        let script = script.ok_or("the script of sed is not known")?;
        Script { rest: script }.check().ok_or("this sed script is not known to only print")?;
    }
    Ok(())
}

/// What is left of a script.
struct Script<'a> {
    rest: &'a str,
}

impl Script<'_> {
    /// `None` as soon as something is not understood.
    fn check(mut self) -> Option<()> {
        loop {
            self.skip(|c| c.is_ascii_whitespace() || c == ';');
            if self.rest.is_empty() {
                return Some(());
            }
            self.addresses()?;
            self.command()?;
        }
    }

    fn skip(&mut self, what: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(what);
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn next_is(&self, c: char) -> bool {
        self.rest.starts_with(c)
    }

    fn addresses(&mut self) -> Option<()> {
        if self.address()? {
            self.skip(|c| c == ' ');
            if self.next_is(',') {
                self.take();
                self.skip(|c| c == ' ');
                if self.rest.starts_with(['+', '~']) {
                    self.take();
                }
                self.address()?.then_some(())?;
            }
        }
        self.skip(|c| c == ' ' || c == '!');
        Some(())
    }

    /// Whether there was one.
    fn address(&mut self) -> Option<bool> {
        match self.rest.chars().next()? {
            '0'..='9' => {
                self.skip(|c| c.is_ascii_digit());
                if self.next_is('~') {
                    self.take();
                    self.skip(|c| c.is_ascii_digit());
                }
            }
            '$' => {
                self.take();
            }
            '/' => {
                self.take();
                self.until('/')?;
                self.skip(|c| c == 'I' || c == 'M');
            }
            '\\' => {
                self.take();
                let delimiter = self.take().filter(char::is_ascii_punctuation).filter(|c| *c != '\\')?;
                self.until(delimiter)?;
                self.skip(|c| c == 'I' || c == 'M');
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// Over a text up to and with its delimiter. A new line in it has rules of its own: not understood.
    fn until(&mut self, delimiter: char) -> Option<()> {
        let mut bracket = Bracket::Outside;
        loop {
            match self.take()? {
                '\n' => return None,
                '\\' => {
                    let escaped = self.take().filter(|c| *c != '\n')?;
                    // A backslash between brackets is a plain character to some.
                    if bracket.open() && (escaped == delimiter || escaped == ']') {
                        return None;
                    }
                    bracket = bracket.after(escaped, true);
                }
                c if c == delimiter => return (!bracket.open()).then_some(()),
                c => bracket = bracket.after(c, false),
            }
        }
    }

    /// The same where brackets mean nothing.
    fn replacement(&mut self, delimiter: char) -> Option<()> {
        loop {
            match self.take()? {
                '\n' => return None,
                '\\' => {
                    self.take().filter(|c| *c != '\n')?;
                }
                c if c == delimiter => return Some(()),
                _ => {}
            }
        }
    }

    fn command(&mut self) -> Option<()> {
        match self.take()? {
            '{' => return Some(()),
            '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {}
            'q' | 'Q' | 'l' => {
                self.skip(|c| c == ' ');
                self.skip(|c| c.is_ascii_digit());
            }
            's' => {
                let delimiter = self.take().filter(char::is_ascii_punctuation).filter(|c| *c != '\\')?;
                self.until(delimiter)?;
                self.replacement(delimiter)?;
                self.skip(|c| c.is_ascii_digit() || "gpiImM".contains(c));
            }
            'y' => {
                let delimiter = self.take().filter(char::is_ascii_punctuation).filter(|c| *c != '\\')?;
                self.replacement(delimiter)?;
                self.replacement(delimiter)?;
            }
            'b' | 't' | 'T' => {
                self.skip(|c| c == ' ');
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
            }
            ':' => {
                // A label runs to the end of the line in some versions: nothing may follow it on the line.
                self.skip(|c| c == ' ');
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
            }
            _ => return None,
        }
        self.skip(|c| c == ' ');
        // `}` may follow a command directly; everything else must be separated.
        (self.rest.is_empty() || self.rest.starts_with([';', '\n', '}'])).then_some(())
    }
}
