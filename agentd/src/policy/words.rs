//! Lists of words written as one text.
//!
//! The tables of commands and options are long; as text they stay readable and diff well.

/// Whether `word` is one of the words in `list`, which are separated by one blank each.
pub(super) fn listed(list: &str, word: &str) -> bool {
    // Bytes by hand: this is a third of a decision's cost when it is written with `split`.
    let (list, word) = (list.as_bytes(), word.as_bytes());
    if word.is_empty() {
        return false;
    }
    let mut start = 0;
    for (at, byte) in list.iter().enumerate() {
        if *byte == b' ' {
            if &list[start..at] == word {
                return true;
            }
            start = at + 1;
        }
    }
    &list[start..] == word
}
