//! Where a job keeps its files on this host: a directory that only its owner can enter.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{env, io};

use anyhow::Context;
use lockstep_collectives::{JobId, JobSecret};
use rustix::rand::{GetRandomFlags, getrandom};

/// The directory of one job; removed when dropped, and by the guard if that never happens.
///
/// It exists from [`JobDirectory::store`] on, so that the guard can be there before it.
#[derive(Debug)]
pub(crate) struct JobDirectory {
    job: JobId,
    path: PathBuf,
}

impl JobDirectory {
    /// Makes up a job id and a path for its directory.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub(crate) fn choose() -> anyhow::Result<Self> {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty()).map_err(io::Error::from)?;
        let job = JobId::new(format!("{:016x}", u64::from_le_bytes(random)))?;
        let path = env::temp_dir().join(format!("lockstep-{job}"));
        Ok(Self { job, path })
    }

    /// The job's id.
    pub(crate) fn job(&self) -> &JobId {
        &self.job
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory and stores the job's secret in it; returns the file.
    ///
    /// # Errors
    /// When the directory exists already, or it or the file cannot be written.
    pub(crate) fn store(&self, secret: &JobSecret) -> anyhow::Result<PathBuf> {
        DirBuilder::new()
            .mode(0o700)
            .create(&self.path)
            .with_context(|| format!("cannot make the job's directory {}", self.path.display()))?;
        let file = self.path.join("key");
        secret.write_new(&file)?;
        Ok(file)
    }
}

impl Drop for JobDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_private_and_leaves_nothing() {
        let directory = JobDirectory::choose().unwrap();
        let key = directory.store(&JobSecret::generate().unwrap()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(directory.path()), mode(&key)), (0o700, 0o600));
        let path = directory.path().to_owned();
        drop(directory);
        assert!(!path.exists());
    }
}
