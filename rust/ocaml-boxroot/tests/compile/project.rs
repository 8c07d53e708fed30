// SPDX-License-Identifier: MIT
//! Projects of cargo, which depend on this crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub struct Project(PathBuf);

/// The profile of this workspace: what is compiled for both is compiled once.
pub const PROFILE: &str = "[profile.dev]\ndebug = \"line-tables-only\"\n";

/// One with no files but the versions that this workspace has locked.
pub fn empty(name: &str) -> Project {
    let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&project);
    fs::create_dir_all(&project).unwrap();
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock"), project.join("Cargo.lock")).unwrap();
    Project(project)
}

/// A package that has this crate under the name `dependency`. All use the same features, so it is compiled once.
pub fn manifest(name: &str, edition: &str, dependency: &str) -> String {
    format!(
        "[package]\nname = {name:?}\nversion = \"0.0.0\"\nedition = {edition:?}\n[dependencies]\n\
         {dependency} = {{ package = \"ocaml-boxroot\", path = {:?}, features = [\"start\"] }}\n",
        env!("CARGO_MANIFEST_DIR")
    )
}

impl Project {
    pub fn add(&self, file: &str, text: &str) {
        let file = self.0.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Runs cargo. Its target folder is the one of these tests: what both need is compiled once.
    pub fn cargo(&self, words: &[&str]) -> Output {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        Command::new(env!("CARGO"))
            .current_dir(&self.0)
            .args(words)
            .env("CARGO_TARGET_DIR", target)
            .output()
            .expect("run cargo")
    }
}
