//! Bash as the policy sees it: a script is simple commands, compound commands, redirections, assignments and
//! substitutions, or it is [`Opaque`].
//!
//! In reading order: [`parse`] turns text into these types (with [`compound`], [`simple`], [`word`], [`expansion`] and [`heredoc`]);
//! [`value`] says what is known of a word before it runs; [`check`] walks a script and judges every part; [`known`] holds
//! the commands that only read; [`state`] (with [`builtin`] and [`variable`]) is what earlier commands did to the shell; [`scan`] (with [`launch`]) finds denied commands
//! wherever they hide.
//!
//! Why a parser of our own: a general grammar answers "what is this, most likely", with error recovery and a node kind
//! for everything; a policy needs "this and nothing else". Here each byte of the text is consumed by a rule that agrees
//! with bash or the whole script is [`Opaque`], so the set of texts that can be allowed is exactly what these files
//! spell out. It is also smaller than a binding, and has neither C code nor a recovery to trust.
//!
//! Invariant: nothing in here runs, reads or waits. Invariant: every expansion that may run a command is in the tree;
//! what cannot be represented is an error of the parser, never a silent omission.

mod builtin;
pub(super) mod check;
mod compound;
mod expansion;
pub(super) mod facts;
mod heredoc;
mod inspect;
pub(super) mod known;
mod launch;
pub(super) mod parse;
pub(super) mod scan;
mod simple;
pub(super) mod state;
pub(super) mod value;
mod variable;
mod word;

/// Commands in the order of the text, whatever joins them (`;`, `&`, `&&`, `||`, a new line).
pub(super) type List = Vec<Node>;

/// The text is not understood, and why, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opaque(pub(super) String);

/// One command.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Words, assignments and redirections.
    Simple(Simple),
    /// Two or more commands joined by `|` or `|&`.
    Pipeline(List),
    /// Two or more joined by `&&` alone: each runs only if those before it succeeded.
    Conjunction(List),
    /// Everything with a body or a syntax of its own.
    Compound(Compound),
}

impl Node {
    /// Whether it is a simple command.
    pub(super) fn is_simple(&self) -> bool {
        match self {
            Self::Simple(_) => true,
            Self::Pipeline(_) | Self::Conjunction(_) | Self::Compound(_) => false,
        }
    }
}

/// `a=1 name word … > file`.
#[derive(Clone, Debug, Default)]
pub(super) struct Simple {
    /// Assignments before the first word.
    pub(super) assigns: Vec<Assign>,
    /// The words, the command's name first.
    pub(super) words: Vec<Word>,
    /// The redirections.
    pub(super) redirects: Vec<Redirect>,
    /// The text, for people.
    pub(super) text: String,
}

/// `name=value`, `name+=value`, `name=(…)`.
#[derive(Clone, Debug)]
pub(super) struct Assign {
    /// The variable.
    pub(super) name: String,
    /// One word, or the elements of an array.
    pub(super) values: Vec<Word>,
    /// `+=` or an array: the value is not just the word.
    pub(super) compound: bool,
}

/// A compound command.
#[derive(Clone, Debug)]
pub(super) struct Compound {
    /// Which one.
    pub(super) kind: Kind,
    /// Words that are expanded: the list of `for`, the subject and patterns of `case`, operands of `[[`.
    pub(super) words: Vec<Word>,
    /// The bodies, conditions included.
    pub(super) bodies: Vec<List>,
    /// Redirections of the whole.
    pub(super) redirects: Vec<Redirect>,
}

/// The kinds of compound commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `{ …; }` and `if`.
    Group,
    /// `( … )`.
    Subshell,
    /// `while`, `until`.
    Loop,
    /// `for name in …`.
    For { name: String },
    /// `select name in …`.
    Select { name: String },
    /// `for ((…))`.
    ForArithmetic { names: Vec<String> },
    /// `case`.
    Case,
    /// `name() …`.
    Function { name: String },
    /// `[[ … ]]`.
    Condition,
    /// `(( … ))`, with the names in it.
    Arithmetic { names: Vec<String> },
    /// `coproc …`.
    Coprocess,
}

/// A redirection.
#[derive(Clone, Debug)]
pub(super) enum Redirect {
    /// `<`: reads a file.
    Read(Word),
    /// `>`, `>>`, `>|`, `<>`, `&>`, `>& file`: opens a file for writing.
    Write(Word),
    /// `2>&1`, `<&-`: only moves descriptors.
    Duplicate,
    /// A here-document or here-string.
    Text(Word),
}

/// A word before expansion.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    /// Its pieces in order; no piece at all is impossible, an empty quoted text is a piece.
    pub(super) parts: Vec<Part>,
}

/// A piece of a word.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// Text; unquoted text may hold glob and brace characters.
    Text { text: String, quoted: bool },
    /// `$name` and `${name…}`.
    Parameter { name: String, operation: Operation, quoted: bool },
    /// `$(…)` and backquotes.
    Command { body: List, quoted: bool },
    /// `<(…)`, `>(…)`.
    Process { body: List },
    /// `$((…))`, with the names in it.
    Arithmetic { names: Vec<String> },
    /// `~`, `~name`.
    Home,
}

/// What `${name…}` does with the value.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// The value itself.
    Plain,
    /// Its length.
    Length,
    /// A default, alternative, pattern or replacement that is expanded itself.
    With(Vec<Part>),
    /// `:=`: assigns.
    Assign(Vec<Part>),
    /// `:?`: ends a shell that is not interactive.
    Fail(Vec<Part>),
}
