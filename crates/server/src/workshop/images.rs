//! Namespaces kept by name, one file each, beside the data they were taken from.
//!
//! A file is written aside and renamed when it is whole and synced: under a name there is what was kept last, or
//! what was kept before, never a part. What is in a file is the broker's business; it says itself whether it is
//! whole.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use vorrang_broker::journal::image::{self, HEAD_BYTES, Summary};

/// The folder within the data directory.
const FOLDER: &str = "dev-snapshots";
const SUFFIX: &str = ".image";
/// Snapshots there may be; one more is refused.
const IMAGES_MAX: usize = 64;
/// Characters of a name.
const NAME_CHARS_MAX: usize = 64;

/// A name that is safe in a path: letters, digits, `.`, `-` and `_`, beginning with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// Reads a name.
    pub fn parse(text: &str) -> Result<Name, &'static str> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins_well && text.len() <= NAME_CHARS_MAX && text.chars().all(plain) {
            Ok(Name(text.to_owned()))
        } else {
            Err("must be at most 64 letters, digits, '.', '-' or '_', beginning with a letter or digit")
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A namespace that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Under which name.
    pub name: Name,
    /// When, and how much.
    pub summary: Summary,
    /// The size of its file.
    pub bytes: u64,
}

/// Why a snapshot cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of this name.
    #[error("there is no snapshot '{name}'; GET /dev/snapshots lists those there are")]
    Missing {
        /// The name.
        name: Name,
    },
    /// There are as many as there may be.
    #[error("there are {IMAGES_MAX} snapshots, and no more are allowed; delete one")]
    TooMany,
    /// What is in the file is no snapshot.
    #[error(transparent)]
    Image(#[from] image::Error),
    /// The disk refuses.
    #[error("cannot use {}: {source}", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Namespaces kept by name. Cheap to clone; one at a time changes files.
#[derive(Debug, Clone)]
pub struct Images {
    folder: Arc<Path>,
    changing: Arc<Mutex<()>>,
}

impl Images {
    /// Those kept beside this data.
    #[must_use]
    pub fn new(data_dir: &Path) -> Images {
        Images { folder: data_dir.join(FOLDER).into(), changing: Arc::default() }
    }

    /// Keeps an image under a name.
    pub fn save(&self, name: &Name, image: &[u8]) -> Result<Kept, Error> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let summary = Summary::read(image)?;
        let others = self.list()?.into_iter().filter(|kept| kept.name != *name).count();
        if others >= IMAGES_MAX {
            return Err(Error::TooMany);
        }
        let (path, aside) = (self.path(name), self.folder.join("being-written"));
        on_disk(&self.folder, || {
            fs::create_dir_all(&self.folder)?;
            if let Some(data_dir) = self.folder.parent() {
                File::open(data_dir)?.sync_all()?;
            }
            let mut file = File::create(&aside)?;
            file.write_all(image)?;
            file.sync_all()?;
            fs::rename(&aside, &path)?;
            File::open(&*self.folder)?.sync_all()
        })?;
        let bytes = u64::try_from(image.len()).unwrap_or(u64::MAX);
        Ok(Kept { name: name.clone(), summary, bytes })
    }

    /// The image under a name.
    pub fn load(&self, name: &Name) -> Result<Bytes, Error> {
        let path = self.path(name);
        // The file may be anything that somebody put there.
        let bytes_max = u64::try_from(image::BYTES_MAX).unwrap_or(u64::MAX);
        if fs::metadata(&path).is_ok_and(|file| file.len() > bytes_max) {
            return Err(image::Error::TooLarge.into());
        }
        match fs::read(&path) {
            Ok(bytes) => Ok(Bytes::from(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::Missing { name: name.clone() })
            }
            Err(source) => Err(Error::Disk { path, source }),
        }
    }

    /// Everything there is, in the order of names. What is no image is passed over.
    pub fn list(&self) -> Result<Vec<Kept>, Error> {
        let entries = match fs::read_dir(&*self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::Disk { path: self.folder.to_path_buf(), source }),
        };
        let kept = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let name = Name::parse(entry.file_name().to_str()?.strip_suffix(SUFFIX)?).ok()?;
            let mut file = File::open(entry.path()).ok()?;
            let mut head = [0; HEAD_BYTES];
            file.read_exact(&mut head).ok()?;
            let (summary, bytes) = (Summary::read(&head).ok()?, file.metadata().ok()?.len());
            Some(Kept { name, summary, bytes })
        };
        let mut all: Vec<Kept> = entries.filter_map(kept).collect();
        all.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(all)
    }

    /// Forgets one.
    pub fn delete(&self, name: &Name) -> Result<(), Error> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path(name);
        match fs::remove_file(&path) {
            Ok(()) => on_disk(&self.folder, || File::open(&*self.folder)?.sync_all()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::Missing { name: name.clone() })
            }
            Err(source) => Err(Error::Disk { path, source }),
        }
    }

    fn path(&self, name: &Name) -> PathBuf {
        self.folder.join(format!("{name}{SUFFIX}"))
    }
}

fn on_disk(path: &Path, work: impl FnOnce() -> io::Result<()>) -> Result<(), Error> {
    work().map_err(|source| Error::Disk { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vorrang_broker::journal::image::Image;
    use vorrang_engine::Timestamp;

    fn image(taken: u64) -> Vec<u8> {
        Image { taken: Timestamp(taken), ..Image::default() }.encode().unwrap()
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_names() {
        for good in ["a", "before-the-test", "v1.2_x", &"x".repeat(64)] {
            assert!(Name::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "a\\b", "-x", "ä", "a b", "a\0", &"x".repeat(65)] {
            assert!(Name::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_was_kept_last_under_a_name_is_there_and_a_write_cut_off_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let images = Images::new(folder.path());
        let name = Name::parse("n").unwrap();
        assert!(images.list().unwrap().is_empty());
        assert!(matches!(images.load(&name), Err(Error::Missing { .. })));
        images.save(&name, &image(1)).unwrap();
        images.save(&name, &image(2)).unwrap();
        fs::write(folder.path().join(FOLDER).join("being-written"), b"half").unwrap();
        fs::write(folder.path().join(FOLDER).join("strange.image"), b"half").unwrap();
        let listed = images.list().unwrap();
        assert_eq!(listed.iter().map(|kept| kept.summary.taken).collect::<Vec<_>>(), [Timestamp(2)]);
        assert_eq!(images.load(&name).unwrap(), image(2));
        images.delete(&name).unwrap();
        assert!(matches!(images.delete(&name), Err(Error::Missing { .. })));
        assert!(images.save(&name, b"nothing").is_err());
    }

    #[test]
    fn there_are_only_so_many() {
        let folder = tempfile::tempdir().unwrap();
        let images = Images::new(folder.path());
        for number in 0..IMAGES_MAX {
            images.save(&Name::parse(&format!("n{number}")).unwrap(), &image(1)).unwrap();
        }
        assert!(matches!(images.save(&Name::parse("more").unwrap(), &image(1)), Err(Error::TooMany)));
        images.save(&Name::parse("n1").unwrap(), &image(2)).unwrap();
    }
}
