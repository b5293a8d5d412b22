//! The rules of the files, one claim a test.
