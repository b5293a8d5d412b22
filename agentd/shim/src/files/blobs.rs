//! Prior bytes by their content: one file each, compressed where that helps.
//!
//! A blob is named by the digest of the bytes themselves; `.z` behind it says that the file is a raw deflate stream of
//! them. Files without an ending are the bytes as they are: small ones, those that do
//! not shrink, and all of earlier releases.
//!
//! Invariant: what is read back has the digest it was asked by, or it counts as gone.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use miniz_oxide::deflate::{CompressionLevel, compress_to_vec};
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use proto::shim::files::Digest;

use super::history::{Prior, digest};

/// The quickest level: source text shrinks to a third or less already, and an edit waits for this.
const LEVEL: u8 = CompressionLevel::BestSpeed as u8;

/// Bytes from which compressing can gain anything: a file takes a block of this size anyway.
const COMPRESSED_FROM: usize = 4096;

/// Behind the name of a compressed blob.
const COMPRESSED: &str = "z";

/// The blobs of one session.
#[derive(Debug)]
pub(super) struct Blobs {
    dir: PathBuf,
}

impl Blobs {
    /// Opens the directory, which is made if need be. Prior versions are as private as the files were.
    pub(super) fn open(dir: PathBuf) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        Ok(Self { dir })
    }

    /// Keeps some bytes, on disk when this returns.
    pub(super) fn keep(&self, bytes: &[u8]) -> io::Result<()> {
        let plain = self.dir.join(digest(bytes).0);
        let small = plain.with_extension(COMPRESSED);
        if plain.exists() || small.exists() {
            return Ok(());
        }
        let compressed = (bytes.len() > COMPRESSED_FROM).then(|| compress_to_vec(bytes, LEVEL));
        match compressed.filter(|compressed| compressed.len() < bytes.len()) {
            Some(compressed) => write(&small, &compressed),
            None => write(&plain, bytes),
        }
    }

    /// The bytes of a prior version; none when they are gone.
    pub(super) fn read(&self, prior: &Prior) -> io::Result<Option<Vec<u8>>> {
        let plain = self.dir.join(&prior.digest.0);
        let bytes = match read(&plain.with_extension(COMPRESSED))? {
            // More than was kept cannot be what was kept.
            Some(small) => {
                let limit = usize::try_from(prior.size).unwrap_or(usize::MAX);
                decompress_to_vec_with_limit(&small, limit).ok()
            }
            None => read(&plain)?,
        };
        Ok(bytes.filter(|bytes| digest(bytes) == prior.digest))
    }

    /// Drops bytes that are not needed any more.
    pub(super) fn remove(&self, digest: &Digest) {
        let plain = self.dir.join(&digest.0);
        // It is there in one form only; what cannot be removed is tried again at the next start.
        let _ = fs::remove_file(plain.with_extension(COMPRESSED));
        let _ = fs::remove_file(plain);
    }

    /// Removes everything else: a kill came between keeping bytes and naming them.
    pub(super) fn keep_only(&self, needed: &HashSet<&str>) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let whole = path.extension().is_none_or(|end| end == COMPRESSED);
            let named = path.file_stem().and_then(|name| name.to_str()).is_some_and(|name| needed.contains(name));
            if !(whole && named) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temp = path.with_extension("part");
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&temp, path)
    })();
    if written.is_err() {
        // The disk may be full; what was written of it is no use.
        let _ = fs::remove_file(&temp);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blobs() -> (tempfile::TempDir, Blobs) {
        let dir = tempfile::tempdir().expect("a directory");
        let blobs = Blobs::open(dir.path().join("blobs")).expect("open");
        (dir, blobs)
    }

    fn prior(bytes: &[u8]) -> Prior {
        Prior { digest: digest(bytes), mode: 0o644, size: bytes.len() as u64 }
    }

    /// Bytes in which nothing repeats.
    fn noise() -> Vec<u8> {
        (0_u32..100).flat_map(|n| digest(&n.to_le_bytes()).0.into_bytes()).map(|byte| byte.wrapping_mul(167)).collect()
    }

    #[test]
    fn text_is_kept_small_and_every_content_is_read_back() {
        let (_dir, blobs) = blobs();
        let text = "fn main() {}\n".repeat(1_000).into_bytes();
        for bytes in [&text[..], b"", b"x", &noise()] {
            blobs.keep(bytes).expect("kept");
            assert_eq!(blobs.read(&prior(bytes)).expect("read").as_deref(), Some(bytes));
        }
        let small = blobs.dir.join(digest(&text).0).with_extension(COMPRESSED);
        assert!(fs::metadata(small).expect("compressed").len() < 500);
    }

    #[test]
    fn a_blob_of_an_earlier_release_is_read_as_it_is() {
        let (_dir, blobs) = blobs();
        let bytes = b"old\n".repeat(50);
        fs::write(blobs.dir.join(digest(&bytes).0), &bytes).expect("written");
        assert_eq!(blobs.read(&prior(&bytes)).expect("read"), Some(bytes.clone()));
        blobs.keep(&bytes).expect("kept");
        assert_eq!(fs::read_dir(&blobs.dir).expect("listed").count(), 1, "not kept twice");
    }

    #[test]
    fn a_damaged_blob_counts_as_gone() {
        let (_dir, blobs) = blobs();
        let bytes = b"text ".repeat(100);
        let path = blobs.dir.join(digest(&bytes).0).with_extension(COMPRESSED);
        let bomb = compress_to_vec(&vec![0; 1_000_000], LEVEL);
        for damaged in [&b"no deflate stream"[..], &compress_to_vec(b"other", LEVEL), &bomb] {
            fs::write(&path, damaged).expect("written");
            assert_eq!(blobs.read(&prior(&bytes)).expect("read"), None);
        }
    }

    #[test]
    fn only_what_is_needed_stays() {
        let (_dir, blobs) = blobs();
        let (text, other) = (b"text ".repeat(1_000), noise());
        blobs.keep(&text).expect("kept");
        blobs.keep(&other).expect("kept");
        fs::write(blobs.dir.join("0".repeat(64)), "orphan").expect("written");
        fs::write(blobs.dir.join(digest(&text).0).with_extension("part"), "half").expect("written");
        let (a, b) = (digest(&text), digest(&other));
        blobs.keep_only(&HashSet::from([a.0.as_str(), b.0.as_str()])).expect("swept");
        assert_eq!(fs::read_dir(&blobs.dir).expect("listed").count(), 2);
        blobs.remove(&a);
        blobs.remove(&b);
        assert_eq!(fs::read_dir(&blobs.dir).expect("listed").count(), 0);
    }
}
