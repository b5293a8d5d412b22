//! Lists of words written as one text.
//!
//! The tables of commands and options are long; as text they stay readable and diff well.

/// Whether `word` is one of the words in `list`, which are separated by white space.
pub(super) fn listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}
