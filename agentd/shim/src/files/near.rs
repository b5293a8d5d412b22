//! The place most similar to a text that does not stand in a file, and how the two differ. Pure.
//!
//! First both texts are read without everything that models get wrong (blanks, line breaks, typographic signs, accents,
//! case, backslashes); where the wanted text stands then, what was ignored is the difference. When it stands nowhere
//! even so, the place that has most of its lines is shown, or the line most like its longest one.

use std::collections::HashMap;

use proto::shim::files::{Difference, NearMiss};

use super::text;

/// Beyond this a search for likeness takes longer than looking at the file.
const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Lines of a similar place that are shown.
const LINES_SHOWN: usize = 40;

/// Differing lines that are named.
const LINES_NAMED: usize = 3;

/// Signs that are left of a wanted text when everything ignorable is gone; fewer would match anywhere.
const SIGNS_MIN: usize = 3;

/// How alike two lines must be, of 100, to call one the place that was meant.
const LIKENESS_MIN: usize = 55;

/// What a reading of a text leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ignored {
    Blanks,
    Punctuation,
    Case,
    Accents,
    Escapes,
}

const ALL: [Ignored; 5] = [Ignored::Blanks, Ignored::Punctuation, Ignored::Case, Ignored::Accents, Ignored::Escapes];

/// Finds the most similar place; none when nothing is similar enough to help.
pub(super) fn find(bytes: &[u8], wanted: &str) -> Option<NearMiss> {
    if bytes.len() > FILE_BYTES_MAX || wanted.len() > FILE_BYTES_MAX {
        return None;
    }
    let file = File::new(bytes);
    let wanted = wanted.replace("\r\n", "\n");
    if let Some(bare) = without_numbers(&wanted) {
        let mut near = file.same_signs(&bare)?;
        near.differences.insert(0, Difference::LineNumbers {});
        return Some(near);
    }
    file.same_signs(&wanted).or_else(|| file.most_lines(&wanted)).or_else(|| file.most_alike(&wanted))
}

/// A file as lines without their ends.
struct File {
    lines: Vec<String>,
}

impl File {
    fn new(bytes: &[u8]) -> Self {
        let lines =
            text::lines(text::body(bytes)).map(|line| String::from_utf8_lossy(text::without_end(line)).into_owned());
        Self { lines: lines.collect() }
    }

    /// The place where the wanted text stands when everything ignorable is ignored.
    fn same_signs(&self, wanted: &str) -> Option<NearMiss> {
        let target = read(wanted, &ALL);
        if target.chars().count() < SIGNS_MIN {
            return None;
        }
        let mut signs = String::new();
        let mut starts = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            starts.push(signs.len());
            signs.push_str(&read(line, &ALL));
        }
        let at = signs.find(&target)?;
        let first = starts.partition_point(|start| *start <= at) - 1;
        let last = starts.partition_point(|start| *start < at + target.len()) - 1;
        let place = &self.lines[first..=last];
        Some(self.near(first, last + 1, differences(wanted, place)))
    }

    /// The place that shares the most lines with the wanted text, in their order.
    fn most_lines(&self, wanted: &str) -> Option<NearMiss> {
        let wanted: Vec<&str> = wanted.lines().collect();
        let keys: Vec<String> = wanted.iter().map(|line| read(line, &ALL)).collect();
        let mut at: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, line) in self.lines.iter().enumerate() {
            at.entry(read(line, &ALL)).or_default().push(index);
        }
        let mut votes: HashMap<usize, usize> = HashMap::new();
        for (index, key) in keys.iter().enumerate().filter(|(_, key)| key.len() >= SIGNS_MIN) {
            for place in at.get(key).into_iter().flatten().filter(|place| **place >= index) {
                // A long line says more about the place than a closing brace.
                *votes.entry(*place - index).or_default() += key.len();
            }
        }
        let (start, _) = votes.into_iter().max_by_key(|(start, vote)| (*vote, usize::MAX - *start))?;
        let end = (start + wanted.len()).min(self.lines.len());
        let pairs = wanted.iter().copied().zip(&self.lines[start..end]).enumerate();
        let differing = pairs.filter(|(index, (_, found))| keys[*index] != read(found, &ALL));
        let named =
            differing.take(LINES_NAMED).map(|(index, (wanted, found))| line_difference(start + index, wanted, found));
        Some(self.near(start, end, named.collect()))
    }

    /// The line most like the longest line of the wanted text.
    fn most_alike(&self, wanted: &str) -> Option<NearMiss> {
        let (offset, longest) = wanted.lines().enumerate().max_by_key(|(_, line)| line.trim().len())?;
        let target = longest.trim();
        let scored = self.lines.iter().enumerate().map(|(index, line)| (likeness(target, line.trim()), index));
        let (score, index) = scored.max_by_key(|(score, index)| (*score, usize::MAX - *index))?;
        if score < LIKENESS_MIN {
            return None;
        }
        let start = index.saturating_sub(offset);
        let end = (start + wanted.lines().count()).min(self.lines.len());
        Some(self.near(start, end, vec![line_difference(index, longest, &self.lines[index])]))
    }

    fn near(&self, start: usize, end: usize, differences: Vec<Difference>) -> NearMiss {
        let shown = end.min(start + LINES_SHOWN);
        let lines = self.lines[start..shown].iter().map(|line| text::shown(line.as_bytes())).collect();
        NearMiss { first: start as u64 + 1, lines, differences }
    }
}

fn line_difference(index: usize, wanted: &str, found: &str) -> Difference {
    Difference::Line { number: index as u64 + 1, wanted: wanted.to_owned(), found: found.to_owned() }
}

/// A text without what is ignored.
fn read(text: &str, ignored: &[Ignored]) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        let sign = if ignored.contains(&Ignored::Punctuation) { plain(sign) } else { sign };
        if (sign.is_whitespace() && ignored.contains(&Ignored::Blanks))
            || (sign == '\\' && ignored.contains(&Ignored::Escapes))
            || (is_combining(sign) && ignored.contains(&Ignored::Accents))
        {
            continue;
        }
        let sign = if ignored.contains(&Ignored::Accents) { base(sign) } else { sign };
        if ignored.contains(&Ignored::Case) {
            out.extend(sign.to_lowercase());
        } else {
            out.push(sign);
        }
    }
    out
}

/// The ASCII sign that a typographic one stands for.
fn plain(sign: char) -> char {
    match sign {
        '\u{2018}' | '\u{2019}' | '\u{201A}' | '\u{201B}' | '\u{2032}' | '\u{00B4}' | '`' | '"' => '\'',
        '\u{201C}' | '\u{201D}' | '\u{201E}' | '\u{201F}' | '\u{2033}' | '\u{00AB}' | '\u{00BB}' => '\'',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{00AD}' => '-',
        '\u{2026}' => '.',
        '\u{00A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{3000}' => ' ',
        other => other,
    }
}

fn is_combining(sign: char) -> bool {
    ('\u{0300}'..='\u{036F}').contains(&sign)
}

/// The letter below an accent, for the Latin letters that exist with it as one character.
fn base(sign: char) -> char {
    const COMPOSED: [(&str, char); 20] = [
        ("ÀÁÂÃÄÅĀĂĄ", 'A'),
        ("àáâãäåāăą", 'a'),
        ("ÇĆĈĊČ", 'C'),
        ("çćĉċč", 'c'),
        ("ÈÉÊËĒĔĖĘĚ", 'E'),
        ("èéêëēĕėęě", 'e'),
        ("ÌÍÎÏĨĪĬĮİ", 'I'),
        ("ìíîïĩīĭį", 'i'),
        ("ÑŃŅŇ", 'N'),
        ("ñńņň", 'n'),
        ("ÒÓÔÕÖŌŎŐ", 'O'),
        ("òóôõöōŏő", 'o'),
        ("ŚŜŞŠ", 'S'),
        ("śŝşš", 's'),
        ("ÙÚÛÜŨŪŬŮŰŲ", 'U'),
        ("ùúûüũūŭůűų", 'u'),
        ("ÝŶŸ", 'Y'),
        ("ýŷÿ", 'y'),
        ("ŹŻŽ", 'Z'),
        ("źżž", 'z'),
    ];
    if sign.is_ascii() {
        return sign;
    }
    COMPOSED.iter().find(|(letters, _)| letters.contains(sign)).map_or(sign, |(_, base)| *base)
}

/// What must be ignored for the wanted text to stand in a place.
fn differences(wanted: &str, place: &[String]) -> Vec<Difference> {
    let text = place.join("\n");
    let mut found = Vec::new();
    for class in ALL {
        let others: Vec<Ignored> = ALL.into_iter().filter(|other| *other != class).collect();
        if read(&text, &others).contains(&read(wanted, &others)) {
            continue;
        }
        match class {
            Ignored::Blanks => found.extend(blank_differences(wanted, place)),
            Ignored::Punctuation => found.push(Difference::Punctuation {}),
            Ignored::Case => found.push(Difference::Case {}),
            Ignored::Accents => found.push(Difference::UnicodeForm {}),
            Ignored::Escapes => found.push(Difference::Escapes {}),
        }
    }
    found
}

/// Which blanks differ. The wanted text may start and end in the middle of a line.
fn blank_differences(wanted: &str, place: &[String]) -> Vec<Difference> {
    let wanted: Vec<&str> = wanted.lines().collect();
    if wanted.len() != place.len() {
        return vec![Difference::Blanks {}];
    }
    let lead = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
    let tail = |line: &str| line[line.trim_end().len()..].to_owned();
    let mut found: Vec<Difference> = Vec::new();
    for (index, (ours, theirs)) in wanted.iter().zip(place).enumerate() {
        let inside = index > 0 || !lead(ours).is_empty();
        if inside && lead(ours) != lead(theirs) {
            let named = found.iter().any(|other| matches!(other, Difference::Indentation { .. }));
            if !named {
                found.push(Difference::Indentation { wanted: lead(ours), found: lead(theirs) });
            }
        }
        let ends = index + 1 < wanted.len() || !tail(ours).is_empty();
        if ends && tail(ours) != tail(theirs) && !found.contains(&Difference::TrailingBlanks {}) {
            found.push(Difference::TrailingBlanks {});
        }
        let middle = ours.trim() != theirs.trim() && (index > 0 && index + 1 < wanted.len());
        if middle && !found.contains(&Difference::Blanks {}) {
            found.push(Difference::Blanks {});
        }
    }
    if found.is_empty() { vec![Difference::Blanks {}] } else { found }
}

/// The text without the line numbers of a view, when every line has one.
fn without_numbers(text: &str) -> Option<String> {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let (number, rest) = line.split_once('\t')?;
        let digits = number.trim_start();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        out.push_str(rest);
    }
    (!out.is_empty()).then_some(out)
}

/// How alike two lines are, of 100: by what they share at both ends, or by the words they share.
fn likeness(a: &str, b: &str) -> usize {
    let longer = a.len().max(b.len());
    let shorter = a.len().min(b.len());
    if longer == 0 {
        return 0;
    }
    let (a_bytes, b_bytes) = (a.as_bytes(), b.as_bytes());
    let front = a_bytes.iter().zip(b_bytes).take_while(|(a, b)| a == b).count();
    let back = a_bytes.iter().rev().zip(b_bytes.iter().rev()).take_while(|(a, b)| a == b).count();
    let ends = (front + back).min(shorter) * 100 / longer;
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (ours, theirs) = (words(a), words(b));
    let shared = ours.iter().filter(|word| theirs.contains(word)).count();
    let by_words = if ours.len() >= 2 { shared * 200 / (ours.len() + theirs.len()) } else { 0 };
    ends.max(by_words)
}
