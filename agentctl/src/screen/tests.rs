//! Claims about the screen.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::render::Style;

/// A writer whose content can still be looked at.
#[derive(Clone, Default)]
struct Paper(Rc<RefCell<Vec<u8>>>);

impl Paper {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.borrow_mut())).unwrap()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Both outputs on one paper, as on a terminal.
fn terminal() -> (Screen, Paper) {
    let paper = Paper::default();
    let tty = Terminals { stdin: true, stdout: true, stderr: true, same: true, ..Terminals::default() };
    (Screen::new(Box::new(paper.clone()), Box::new(paper.clone()), tty), paper)
}

fn line(text: &'static str) -> Line {
    Line::new().lit(Style::Plain, text)
}

#[test]
fn a_line_beside_the_answer_begins_on_a_line_of_its_own() {
    let (mut screen, paper) = terminal();
    screen.text("half a line").unwrap();
    screen.line(&line("● done")).unwrap();
    screen.text("more\n").unwrap();
    screen.line(&line("● done")).unwrap();
    assert_eq!(paper.take(), "half a line\n● done\nmore\n● done\n");
}

#[test]
fn the_repainted_area_is_erased_before_anything_permanent() {
    let (mut screen, paper) = terminal();
    screen.repaint(&[line("one"), line("two")], None).unwrap();
    assert_eq!(paper.take(), "\x1b[?2026h\x1b[Kone\n\x1b[Ktwo\x1b[J\x1b[?2026l");
    screen.repaint(&[line("one"), line("two")], None).unwrap();
    assert_eq!(paper.take(), "", "nothing changed, nothing is written");
    screen.line(&line("kept")).unwrap();
    assert_eq!(paper.take(), "\x1b[1A\r\x1b[Jkept\n");
}

#[test]
fn permanent_lines_and_the_area_below_them_are_one_write() {
    let (mut screen, paper) = terminal();
    screen.gather();
    screen.repaint(&[line("old")], None).unwrap();
    paper.take();
    screen.line(&line("beside")).unwrap();
    screen.out_line(&line("answer")).unwrap();
    assert_eq!(paper.take(), "");
    screen.repaint(&[line("new")], None).unwrap();
    assert_eq!(paper.take(), "\x1b[?2026h\r\x1b[Jbeside\nanswer\n\x1b[Knew\x1b[J\x1b[?2026l");
    screen.line(&line("last")).unwrap();
    drop(screen);
    assert_eq!(paper.take(), "\x1b[?2026h\r\x1b[Jlast\n\x1b[J\x1b[?2026l", "nothing gathered is lost at the end");
}

#[test]
fn the_cursor_stays_in_the_line_that_is_typed() {
    let (mut screen, paper) = terminal();
    screen.repaint(&[line("› typed"), line("status")], Some((0, 4))).unwrap();
    assert_eq!(paper.take(), "\x1b[?2026h\x1b[K› typed\n\x1b[Kstatus\x1b[J\x1b[1A\r\x1b[4C\x1b[?2026l");
    screen.clear().unwrap();
    assert_eq!(paper.take(), "\r\x1b[J");
}

/// A terminal that became narrower breaks what was painted over more rows: all of them are painted over.
#[test]
fn after_a_change_of_width_the_whole_area_is_painted_over() {
    let (mut screen, paper) = terminal();
    let long = Line::new().text(Style::Plain, &"x".repeat(screen.columns() * 2));
    screen.repaint(&[long, line("end")], None).unwrap();
    screen.resized();
    paper.take();
    screen.repaint(&[line("end")], None).unwrap();
    assert_eq!(paper.take(), "\x1b[?2026h\x1b[2A\r\x1b[Kend\x1b[J\x1b[?2026l");
}

#[test]
fn a_terminal_gets_text_made_harmless_and_a_file_gets_it_as_it_is() {
    let (mut screen, paper) = terminal();
    screen.text("a\x1b[2Jb\n").unwrap();
    screen.json(&"\u{9b}x\u{202e}").unwrap();
    assert_eq!(paper.take(), "a␛[2Jb\n\"\\u009bx\\u202e\"\n");
    let (file, beside) = (Paper::default(), Paper::default());
    let mut screen = Screen::new(Box::new(file.clone()), Box::new(beside.clone()), Terminals::default());
    screen.text("a\x1b[2Jb").unwrap();
    screen.line(&line("● done")).unwrap();
    screen.repaint(&[line("never")], None).unwrap();
    screen.text("c").unwrap();
    screen.end_text().unwrap();
    assert_eq!((file.take().as_str(), beside.take().as_str()), ("a\x1b[2Jbc\n", "● done\n"));
}
