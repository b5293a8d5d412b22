//! What can be put in at the cursor: `/commands`, and files after `@`. Pure; [`files`] is the one walk over the disk.

use std::path::Path;

use ignore::WalkBuilder;

use super::command::{self, Wish};
use crate::render::{Line, Style};

/// Candidates that are shown at once: more push the text away.
const SHOWN: usize = 6;

/// Files that are looked at: a large repository; what lies beyond is typed by hand.
const FILES_MAX: usize = 50_000;

/// A list of candidates at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    /// Where what they replace begins.
    pub start: usize,
    items: Vec<Item>,
    selected: usize,
    /// Enter takes a file or an argument; a command it runs.
    pub fills: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    text: String,
    about: String,
}

/// What arguments of commands can be, as far as this terminal knows.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Models that were used here.
    pub models: Vec<String>,
    /// Background commands, newest first.
    pub jobs: Vec<KnownJob>,
}

/// A background command.
#[derive(Clone, Debug)]
pub struct KnownJob {
    /// Its id's last digits.
    pub id: String,
    /// What it runs.
    pub command: String,
    /// Whether it does.
    pub runs: bool,
}

/// The words of `/effort`.
const EFFORTS: [&str; 6] = ["low", "medium", "high", "xhigh", "max", "default"];

impl Known {
    fn arguments(&self, wish: Wish) -> Vec<Item> {
        let item = |text: &str, about: &str| Item { text: text.to_owned(), about: about.to_owned() };
        let jobs =
            |all: bool| self.jobs.iter().filter(move |job| all || job.runs).map(|job| item(&job.id, &job.command));
        match wish {
            Wish::Effort => EFFORTS.iter().map(|word| item(word, "")).collect(),
            Wish::Model => self.models.iter().map(|name| item(name, "")).collect(),
            Wish::Job => jobs(true).collect(),
            Wish::Kill => jobs(false).collect(),
            _ => Vec::new(),
        }
    }
}

impl Menu {
    /// The candidates for a text and a cursor; none when nothing fits.
    #[must_use]
    pub fn at(text: &str, cursor: usize, files: &[String], known: &Known) -> Option<Self> {
        let before = text.get(..cursor)?;
        if before.len() == text.len()
            && let Some((name, word)) = before.split_once(' ')
            && let Some(wish) = command::wish(name)
            && !word.contains(char::is_whitespace)
        {
            let items = known.arguments(wish);
            let items: Vec<Item> =
                items.into_iter().filter(|item| item.text.starts_with(word) && item.text != word).collect();
            let start = name.len() + 1;
            return (!items.is_empty()).then_some(Self { start, items, selected: 0, fills: true });
        }
        if before.starts_with('/') && !before.contains([' ', '\n']) && before.len() == text.len() {
            let items: Vec<Item> = command::ALL
                .iter()
                .filter(|command| command.name.starts_with(before) && command.name != before)
                .map(|command| Item { text: command.name.to_owned(), about: command.about.to_owned() })
                .collect();
            return (!items.is_empty()).then_some(Self { start: 0, items, selected: 0, fills: false });
        }
        let start = before.rfind('@')?;
        let word = &before[start + 1..];
        let begins = before[..start].chars().next_back().is_none_or(char::is_whitespace);
        if !begins || word.contains(char::is_whitespace) {
            return None;
        }
        let mut found: Vec<(i64, &String)> = files.iter().filter_map(|file| Some((score(word, file)?, file))).collect();
        found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.len().cmp(&b.1.len())).then_with(|| a.1.cmp(b.1)));
        let items: Vec<Item> = found
            .into_iter()
            .take(SHOWN)
            .map(|(_, file)| Item { text: format!("@{file}"), about: String::new() })
            .collect();
        // A file that is written out needs no menu.
        let done = items.len() == 1 && items[0].text[1..] == *word;
        (!items.is_empty() && !done).then_some(Self { start, items, selected: 0, fills: true })
    }

    /// Whether it offers the same at the same place.
    #[must_use]
    pub fn same_list(&self, other: &Self) -> bool {
        self.start == other.start && self.items == other.items
    }

    /// Selects the next one, or the one before.
    pub fn step(&mut self, back: bool) {
        let count = self.items.len();
        self.selected = (self.selected + if back { count - 1 } else { 1 }) % count;
    }

    /// What the selected one puts in.
    #[must_use]
    pub fn choice(&self) -> String {
        self.items.get(self.selected).map_or_else(String::new, |item| format!("{} ", item.text))
    }

    /// The list as it stands below the input.
    #[must_use]
    pub fn lines(&self, columns: usize) -> Vec<Line> {
        let from = (self.selected + 1).saturating_sub(SHOWN);
        let width = self.items.iter().map(|item| item.text.chars().count()).max().unwrap_or(0) + 2;
        self.items
            .iter()
            .enumerate()
            .skip(from)
            .take(SHOWN)
            .map(|(at, item)| {
                let (mark, style) = if at == self.selected { ("› ", Style::Bold) } else { ("  ", Style::Plain) };
                let gap = if item.about.is_empty() { 0 } else { width - item.text.chars().count() };
                Line::new()
                    .lit(Style::Bold, mark)
                    .text(style, &item.text)
                    .text(Style::Plain, &" ".repeat(gap))
                    .text(Style::Dim, &item.about)
                    .fit(columns)
            })
            .collect()
    }
}

/// How well a file fits what was typed: each letter in order, better at the beginning of a word, side by side, and in the
/// file's own name; `None` when it does not fit. Capitals count only when they were typed.
fn score(word: &str, file: &str) -> Option<i64> {
    let exact = word.chars().any(char::is_uppercase);
    let same = |a: char, b: char| if exact { a == b } else { a == b || a.to_lowercase().eq(b.to_lowercase()) };
    let name = file.rfind('/').map_or(0, |at| at + 1);
    let mut total = 0;
    let mut wanted = word.chars().peekable();
    let mut last: Option<usize> = None;
    // From the file's own name when the word fits there, else from the whole path.
    let from = if fits(word, &file[name..], same) { name } else { 0 };
    let mut before = '/';
    for (at, char) in file[from..].char_indices() {
        let Some(&want) = wanted.peek() else { break };
        if same(want, char) {
            wanted.next();
            total += 1;
            if last.is_some_and(|last| last + 1 == at) {
                total += 4;
            }
            if !before.is_alphanumeric() {
                total += 3;
            }
            last = Some(at + char.len_utf8() - 1);
        }
        before = char;
    }
    let depth = i64::try_from(file.matches('/').count()).unwrap_or(0);
    let bonus = if from == name { 10 } else { 0 };
    wanted.peek().is_none().then_some((total + bonus) * 8 - depth)
}

fn fits(word: &str, text: &str, same: impl Fn(char, char) -> bool) -> bool {
    let mut chars = text.chars();
    word.chars().all(|want| chars.any(|char| same(want, char)))
}

/// The files below a directory, as its ignore files allow, relative to it.
#[must_use]
pub fn files(directory: &Path) -> Vec<String> {
    let walk = WalkBuilder::new(directory).hidden(false).filter_entry(|entry| entry.file_name() != ".git").build();
    walk.filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(|entry| Some(entry.path().strip_prefix(directory).ok()?.to_str()?.to_owned()))
        .take(FILES_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let job = |id: &str, runs| KnownJob { id: id.into(), command: "make".into(), runs };
        Known { models: vec!["model-a".into(), "model-b".into()], jobs: vec![job("aa11", true), job("bb22", false)] }
    }

    fn offered(text: &str, files: &[&str]) -> Vec<String> {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let menu = Menu::at(text, text.len(), &files, &known());
        menu.map(|menu| menu.items.into_iter().map(|item| item.text).collect()).unwrap_or_default()
    }

    #[test]
    fn files_are_found_by_some_of_their_letters() {
        let files = ["src/main.rs", "src/model/main_loop.rs", "docs/manual.md", "README.md"];
        assert_eq!(offered("look at @main", &files), ["@src/main.rs", "@src/model/main_loop.rs"]);
        assert_eq!(offered("@mlrs", &files), ["@src/model/main_loop.rs"]);
        assert_eq!(offered("@docs/m", &files), ["@docs/manual.md"]);
        assert_eq!(offered("@README", &files), ["@README.md"]);
        assert!(offered("me@main", &files).is_empty(), "an address is no file");
        assert!(offered("@README.md", &files).is_empty(), "nothing is left to complete");
    }

    #[test]
    fn commands_are_offered_at_the_very_beginning_only() {
        assert_eq!(offered("/det", &[]), ["/detach"]);
        assert!(offered("see /det", &[]).is_empty() && offered("/detach", &[]).is_empty());
    }

    #[test]
    fn arguments_are_offered_where_they_are_known() {
        assert_eq!(offered("/effort x", &[]), ["xhigh"]);
        assert_eq!(offered("/model ", &[]), ["model-a", "model-b"]);
        assert_eq!(offered("/job ", &[]), ["aa11", "bb22"]);
        assert_eq!(offered("/kill ", &[]), ["aa11"], "one that is over cannot be ended");
        assert!(offered("/effort max", &[]).is_empty() && offered("/kill aa11 ", &[]).is_empty());
        assert!(Menu::at("/kill ", 6, &[], &known()).unwrap().fills, "Enter alone ends nothing");
    }

    #[test]
    fn the_list_is_stepped_through_in_both_directions() {
        let mut menu = Menu::at("/", 1, &[], &Known::default()).unwrap();
        let first = menu.choice();
        menu.step(true);
        assert_ne!(menu.choice(), first);
        menu.step(false);
        assert_eq!(menu.choice(), first);
    }

    #[test]
    fn the_walk_honours_ignore_files() {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in [(".ignore", "secret\n"), ("a.txt", ""), ("secret", ""), (".git/config", ""), ("d/b", "")] {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut found = files(home.path());
        found.sort();
        assert_eq!(found, [".ignore", "a.txt", "d/b"]);
    }
}
