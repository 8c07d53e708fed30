// SPDX-License-Identifier: MIT
//! Tests in processes of their own.

use std::process::{Command, Output};

const CHILD: &str = "OCAML_BOXROOT_CHILD";

/// The test's name, as the list of this program has it.
fn name_of<Test>() -> &'static str {
    let path = std::any::type_name::<Test>();
    path.split_once("::").expect("the crate, and the path in it").1
}

/// What the process that runs the test for this caller is to do; none in other processes.
pub fn told<Test: Fn() + Copy>(_: Test) -> Option<String> {
    let words = std::env::var(CHILD).ok()?;
    words.strip_prefix(name_of::<Test>())?.strip_prefix(' ').map(str::to_owned)
}

/// Runs this program again, for the test alone.
pub fn again<Test: Fn() + Copy>(_: Test, what: &str) -> Output {
    let name = name_of::<Test>();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{name} {what}"))
        .output()
        .unwrap()
}

/// Runs the body of the test in a process of its own.
pub fn alone<Test: Fn() + Copy>(test: Test, body: impl FnOnce()) {
    if told(test).is_some() {
        return body();
    }
    let output = again(test, "");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.contains(" 1 passed"), "{}\n{said}{errors}", output.status);
}
