// SPDX-License-Identifier: MIT
//! The bindings of src against the C headers: both texts are read; the C compiler judges a file of static assertions
//! made from the Rust side; and the names that linkers are to see are taken from what it makes of the headers. Needs a
//! C compiler, nm and OCaml's headers; is not linked with OCaml.

#[path = "../src/layout.rs"]
mod layout;
#[allow(dead_code)]
#[path = "../build/lookup.rs"]
mod lookup;

use layout::{DomainHead, PoolHead};
use ocaml_boxroot_sys::{BoxRoot, BoxRootEphemeral, BoxRootStorage, BoxRootWeak, BoxRootWide, BOXROOT_WIDEST};
use ocaml_boxroot_sys::{BoxrootDomain, BoxrootStats, Status, Value};
use std::collections::BTreeSet;
use std::mem::{size_of, MaybeUninit};
use std::path::{Path, PathBuf};
use std::process::Command;

/// In the header but not bound: a static inline function kept for C programs of earlier versions.
const NOT_BOUND: [&str; 1] = ["boxroot_setup_systhreads"];

/// Where what is bound is declared.
const HEADERS: [&str; 6] =
    ["boxroot.h", "boxroot/weak.h", "boxroot/storage.h", "boxroot/wide.h", "boxroot/ephemeral.h", "boxroot/report.h"];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A source file without comments.
fn source(name: &str) -> String {
    let text = std::fs::read_to_string(package().join("src").join(name)).unwrap();
    text.lines().map(|l| l.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The headers without comments.
fn header() -> String {
    let text: String =
        HEADERS.map(|name| std::fs::read_to_string(package().join("vendor/include").join(name)).unwrap()).concat();
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("/*") {
        plain += before;
        rest = after.split_once("*/").expect("end of comment").1;
    }
    plain + rest
}

fn c_type(rust: &str) -> &'static str {
    match rust.split_whitespace().collect::<Vec<_>>().join(" ").as_str() {
        "Value" => "value",
        "BoxRoot" | "Option<BoxRoot>" => "boxroot",
        "BoxRootWeak" | "Option<BoxRootWeak>" => "boxroot_weak",
        "BoxRootStorage" | "Option<BoxRootStorage>" => "boxroot_storage",
        "BoxRootWide" | "Option<BoxRootWide>" => "boxroot_wide",
        "*mut BoxRootWide" => "boxroot_wide *",
        "BoxRootEphemeral" | "Option<BoxRootEphemeral>" => "boxroot_ephemeral",
        "*mut Value" => "value *",
        "*const Value" => "value const *",
        "BoxrootDomain" | "Option<BoxrootDomain>" => "boxroot_domain",
        "*mut BoxRoot" | "*mut Option<BoxRoot>" => "boxroot *",
        "*const Option<BoxRoot>" => "boxroot const *",
        "*const c_char" => "char const *",
        "*const ValueCell" => "value const *",
        "*mut BoxrootStats" => "boxroot_statistics *",
        "Status" => "int",
        "bool" => "bool",
        "u64" => "uint64_t",
        "u32" => "uint32_t",
        "CapReached" => "void (*)(uint64_t, void *)",
        "*mut c_void" => "void *",
        "usize" => "size_t",
        "" => "void",
        other => panic!("no C type is known for {:?}: extend this table", other),
    }
}

/// Name and C type of each function of the C interface: `fn name(x: T, …) -> R`, then a semicolon or a body.
fn functions(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for piece in text.split("fn ").skip(1) {
        let declaration = piece.split(&[';', '{']).next().unwrap();
        let (name, rest) = match declaration.split_once('(') {
            Some((name, rest)) if name.starts_with("boxroot_") || name.starts_with("bxr_") => (name, rest),
            _ => continue, // of Rust's own
        };
        let (params, result) = rest.rsplit_once(')').unwrap();
        let params: Vec<_> =
            params.split(',').filter(|p| !p.trim().is_empty()).map(|p| c_type(p.split_once(':').unwrap().1)).collect();
        let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
        let result = c_type(result.trim().trim_start_matches("->"));
        found.push((name.to_owned(), format!("{} ({})", result, params)));
    }
    found
}

/// Name in Rust, and name given to the macro, of each item with a link name: `#[link_name = MACRO!("…")] pub fn
/// name(…)` or `pub static name: …`.
fn linked(text: &str, with: &str) -> Vec<(String, String)> {
    text.split(&format!("#[link_name = {}!(\"", with))
        .skip(1)
        .map(|piece| {
            let (link, rest) = piece.split_once("\")]").unwrap();
            let rest = rest.trim_start().trim_start_matches("pub fn ").trim_start_matches("pub static ");
            (rest.split(&['(', ':']).next().unwrap().to_owned(), link.to_owned())
        })
        .collect()
}

/// What the macros put before a name and behind it: `versioned`, without and with the feature `checked`, and `agreed`.
fn macros() -> [(String, String); 3] {
    let text = source("c.rs");
    let mut found = text.split("concat!(").skip(1).map(|piece| {
        let (before, behind) = piece.split_once(')').unwrap().0.split_once("$name").unwrap();
        let strings = |s: &str| s.split('"').skip(1).step_by(2).collect::<String>();
        (strings(before), strings(behind).replace("BOXROOT_OCAML", &ocaml().version.to_string()))
    });
    let all = [found.next().unwrap(), found.next().unwrap(), found.next().unwrap()];
    let places = ["#[cfg(not(feature = \"checked\"))]", "#[cfg(feature = \"checked\")]", "macro_rules! agreed"];
    assert!(places.windows(2).all(|p| text.find(p[0]).unwrap() < text.find(p[1]).unwrap()));
    all
}

/// The lines `pub name: type,` of a struct.
fn fields(text: &str, name: &str) -> Vec<(String, String)> {
    let body = text.split_once(&format!("pub struct {} {{", name)).unwrap().1.split_once('}').unwrap().0;
    body.split(",\n")
        .filter(|f| !f.trim().is_empty())
        .map(|f| f.trim().trim_start_matches("pub ").split_once(':').unwrap())
        .map(|(f, t)| (f.trim().to_owned(), t.trim().to_owned()))
        .collect()
}

fn identifiers(text: &str, prefix: &str) -> Vec<String> {
    let mut all: Vec<String> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|w| w.starts_with(prefix))
        .map(str::to_owned)
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Functions that the header declares: a name, then a parenthesis.
fn declared(header: &str) -> Vec<String> {
    let mut all = identifiers(header, "boxroot_");
    all.retain(|name| {
        header.match_indices(name.as_str()).any(|(i, _)| {
            let before = header[..i].chars().last().unwrap_or(' ');
            !before.is_alphanumeric() && before != '_' && header[i + name.len()..].trim_start().starts_with('(')
        })
    });
    all
}

#[test]
fn every_function_of_the_header_is_bound_and_no_other() {
    let mut bound: Vec<_> = functions(&source("lib.rs")).into_iter().map(|f| f.0).collect();
    bound.extend(NOT_BOUND.iter().map(|f| f.to_string()));
    bound.sort();
    let mut declared = declared(&header());
    declared.sort();
    assert_eq!(declared, bound);
}

#[test]
fn types_and_values_agree() {
    let text = source("lib.rs");
    let mut c = String::from("#include <stddef.h>\n");
    c += &HEADERS.map(|name| format!("#include <{}>\n", name)).concat();
    let mut assert = |condition: String, what: &str| c += &format!("_Static_assert({}, \"{}\");\n", condition, what);

    let functions: Vec<_> = functions(&text).into_iter().chain(functions(&source("c.rs"))).collect();
    assert!(functions.len() >= 32 + 12, "the parser found too little: {:?}", functions);
    for (name, kind) in &functions {
        assert(format!("__builtin_types_compatible_p(__typeof__({}), {})", name, kind), name);
    }

    let fields = fields(&text, "BoxrootStats");
    let parts: Vec<String> = fields.iter().map(|f| f.0.clone()).collect();
    assert!(fields.len() >= 17, "the parser found too little: {:?}", fields);
    for (i, (field, kind)) in fields.iter().enumerate() {
        assert_eq!(kind, "u64", "offsets below are for this type only");
        assert(format!("offsetof(boxroot_statistics, {}) == {}", field, i * size_of::<u64>()), field);
        assert(
            format!("__builtin_types_compatible_p(__typeof__(((boxroot_statistics *)0)->{}), {})", field, c_type(kind)),
            field,
        );
    }
    assert_eq!(size_of::<BoxrootStats>(), parts.len() * size_of::<u64>());
    assert(format!("sizeof(boxroot_statistics) == {}", size_of::<BoxrootStats>()), "boxroot_statistics");

    for (status, name) in [
        (Status::NotSetup, "BOXROOT_NOT_SETUP"),
        (Status::Running, "BOXROOT_RUNNING"),
        (Status::ToreDown, "BOXROOT_TORE_DOWN"),
        (Status::Invalid, "BOXROOT_INVALID"),
    ] {
        assert(format!("{} == {}", name, status as i32), name);
    }
    assert(format!("sizeof(int) == {}", size_of::<Status>()), "Status");
    assert(format!("sizeof(value) == {}", size_of::<Value>()), "Value");
    assert(format!("sizeof(boxroot) == {}", size_of::<Option<BoxRoot>>()), "BoxRoot");
    assert(format!("sizeof(boxroot_weak) == {}", size_of::<Option<BoxRootWeak>>()), "BoxRootWeak");
    assert(format!("sizeof(boxroot_storage) == {}", size_of::<Option<BoxRootStorage>>()), "BoxRootStorage");
    assert(format!("sizeof(boxroot_wide) == {}", size_of::<Option<BoxRootWide>>()), "BoxRootWide");
    assert(format!("BOXROOT_WIDEST == {}", BOXROOT_WIDEST), "BOXROOT_WIDEST");
    assert(format!("sizeof(boxroot_ephemeral) == {}", size_of::<Option<BoxRootEphemeral>>()), "BoxRootEphemeral");
    assert(format!("sizeof(boxroot_domain) == {}", size_of::<Option<BoxrootDomain>>()), "BoxrootDomain");
    assert(format!("sizeof(bool) == {}", size_of::<bool>()), "bool");
    let text = header();
    let states = text.split("enum {").nth(1).unwrap().split('}').next().unwrap();
    assert_eq!(identifiers(states, "BOXROOT_").len(), 4, "a status is new in the header");

    check_assertions("types", &c);
}

/// Offset of a field of a struct that need not exist.
macro_rules! offset {
    ($type:ty, $field:ident) => {{
        let place = MaybeUninit::<$type>::uninit();
        // SAFETY: the place of a field is computed, and nothing is read.
        unsafe { (std::ptr::addr_of!((*place.as_ptr()).$field) as usize) - place.as_ptr() as usize }
    }};
}

#[test]
fn layouts_agree() {
    let text = source("layout.rs");
    let mut c = String::from("#include <stddef.h>\n#include <boxroot.h>\n");
    let mut assert = |condition: String, what: &str| c += &format!("_Static_assert({}, \"{}\");\n", condition, what);
    let structs = [
        (
            "PoolHead",
            "bxr_pool_head",
            size_of::<PoolHead>(),
            vec![
                ("free_owner", offset!(PoolHead, free_owner)),
                ("alloc_owner", offset!(PoolHead, alloc_owner)),
                ("store_owner", offset!(PoolHead, store_owner)),
                ("others", offset!(PoolHead, others)),
                ("free", offset!(PoolHead, free)),
                ("freed", offset!(PoolHead, freed)),
                ("active", offset!(PoolHead, active)),
            ],
        ),
        (
            "DomainHead",
            "bxr_domain_head",
            size_of::<DomainHead>(),
            vec![("state", offset!(DomainHead, state)), ("source", offset!(DomainHead, source))],
        ),
    ];
    for (rust, c_name, size, offsets) in &structs {
        let fields = fields(&text, rust);
        assert_eq!(
            fields.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(),
            offsets.iter().map(|f| f.0).collect::<Vec<_>>()
        );
        for ((field, kind), (_, offset)) in fields.iter().zip(offsets) {
            let kind = match kind.as_str() {
                "AtomicPtr<c_void>" => "void *",
                "*mut PoolHead" => "bxr_pool_head *",
                "[*mut c_void; 5]" => "void *[5]",
                "usize" => "uintptr_t",
                "u32" => "uint32_t",
                other => panic!("no C type is known for {:?}: extend this table", other),
            };
            assert(format!("offsetof({}, {}) == {}", c_name, field, offset), field);
            assert(format!("__builtin_types_compatible_p(__typeof__((({} *)0)->{}), {})", c_name, field, kind), field);
        }
        assert(format!("sizeof({}) == {}", c_name, size), c_name);
    }
    assert(format!("BXR_POOL_SIZE == {}", layout::POOL_SIZE), "BXR_POOL_SIZE");
    assert(format!("BXR_FREE_END == {}", layout::FREE_END), "BXR_FREE_END");
    check_assertions("layout", &c);
}

/// Each name by itself, so that no two can be exchanged.
#[test]
fn link_names_agree() {
    let mut items = linked(&source("lib.rs"), "versioned");
    items.extend(linked(&source("c.rs"), "versioned"));
    let agreed = linked(&source("c.rs"), "agreed");
    assert!(items.len() >= 26 + 9 && agreed.len() >= 5, "the parser found too little: {:?} {:?}", items, agreed);
    let in_lib = source("lib.rs").split_once("extern \"C\" {").unwrap().1.to_owned();
    let foreign = functions(&source("c.rs")).len() + functions(&in_lib).len();
    let named = items.iter().chain(&agreed).filter(|i| i.0 != "bxr_cache").count();
    assert_eq!(named, foreign, "not every function has a link name: {:?}", items);
    let builds = [(&items, &[] as &[&str]), (&items, &["-DBOXROOT_DEBUG=1"]), (&agreed, &[])];
    for ((before, behind), (items, switches)) in macros().iter().zip(builds) {
        for (name, link) in items {
            let include = match name.as_str() {
                _ if name.contains("weak") => "boxroot/weak.h",
                _ if name.contains("storage") => "boxroot/storage.h",
                _ if name.contains("wide") || name.ends_with("_all") => "boxroot/wide.h",
                _ if name.contains("ephemeral") => "boxroot/ephemeral.h",
                "boxroot_report" | "boxroot_sample" | "boxroot_cap" => "boxroot/report.h",
                _ => "boxroot.h",
            };
            let c = format!("#include <{}>\nvoid const *user(void) {{ return (void const *)&{}; }}\n", include, name);
            let symbols = undefined(&format!("name-{}", link), &c, &[switches, &["-O0"]].concat());
            let mut expected = BTreeSet::from([format!("{}{}{}", before, link, behind)]);
            if symbols.contains("_GLOBAL_OFFSET_TABLE_") {
                expected.insert("_GLOBAL_OFFSET_TABLE_".to_owned());
            }
            assert_eq!(symbols, expected, "{} {:?}", name, switches);
        }
    }
}

/// The words that src/inline.rs names in assembly, or by the declarations of src/c.rs, are those that the inline
/// functions in C use.
#[test]
fn inline_paths_use_the_same_words() {
    let c = "#include <boxroot/wide.h>
        boxroot create(value v) { return boxroot_create(v); }
        void delete(boxroot r) { boxroot_delete(r); }
        bool modify(boxroot *r, value v) { return boxroot_modify(r, v); }
        bool wide_modify(boxroot_wide *w, size_t i, value v) { return boxroot_wide_modify(w, i, v); }
        boxroot create_in(boxroot_domain d, value v) { return boxroot_create_in(d, v); }
        void delete_in(boxroot_domain d, boxroot r) { boxroot_delete_in(d, r); }\n";
    let ocaml5 = ocaml().version >= 50000;
    let [(prefix, _), _, (before, behind)] = macros();
    let mut expected = BTreeSet::from(
        ["create_slow", "create_in_slow", "delete_slow", "modify_slow", "wide_modify_slow"]
            .map(|n| format!("{}{}{}", before, n, behind)),
    );
    expected.insert(format!("{}cache", prefix));
    expected.insert(if ocaml5 { "caml_state".to_owned() } else { format!("{}lock", prefix) });
    let mut symbols = undefined("words", c, &["-O2"]);
    symbols.remove("_GLOBAL_OFFSET_TABLE_");
    symbols.remove("__tls_get_addr");
    assert_eq!(symbols, expected);
    let text = source("inline.rs");
    let words: &[&str] =
        if ocaml5 { &["\"caml_state\"", "versioned!(\"cache\")"] } else { &["c::bxr_cache", "versioned!(\"lock\")"] };
    let slow = ["create_slow", "create_in_slow", "delete_slow", "modify_slow", "wide_modify_slow"];
    let slow = slow.map(|name| format!("c::bxr_{}", name));
    for word in words.iter().copied().chain(slow.iter().map(|s| s.as_str())) {
        assert!(text.contains(word), "{} is not in src/inline.rs", word);
    }
}

fn check_assertions(name: &str, c: &str) {
    compile(name, c, &["-fsyntax-only"]).unwrap();
    // The test can fail: a wrong assertion is seen.
    let wrong = format!("{}_Static_assert(sizeof(bxr_pool_head) == 1, \"wrong\");\n", c);
    assert!(compile(name, &wrong, &["-fsyntax-only"]).unwrap_err().contains("wrong"));
}

/// The symbols that an object refers to, without the underscore that some systems put before the names of C.
fn undefined(name: &str, c: &str, flags: &[&str]) -> BTreeSet<String> {
    let object = format!("{}/{}.o", env!("CARGO_TARGET_TMPDIR"), name);
    compile(name, c, &[flags, &["-fPIC", "-c", "-o", &object]].concat()).unwrap();
    let out = Command::new("nm").args(["-u", &object]).output().expect("nm");
    assert!(out.status.success());
    let plain =
        |s: &str| if cfg!(target_vendor = "apple") { s.trim_start_matches('_').to_owned() } else { s.to_owned() };
    String::from_utf8(out.stdout).unwrap().lines().map(|l| plain(l.split_whitespace().last().unwrap())).collect()
}

fn ocaml() -> lookup::Ocaml {
    lookup::find(&|name| std::env::var_os(name)).unwrap_or_else(|e| panic!("{}", e))
}

fn compile(name: &str, c: &str, flags: &[&str]) -> Result<(), String> {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.c", name));
    std::fs::write(&file, c).unwrap();
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let out = Command::new(&cc)
        .args(["-std=gnu11", "-I"])
        .arg(package().join("vendor/include"))
        .arg("-I")
        .arg(&ocaml().library)
        .args(flags)
        .arg(&file)
        .output()
        .map_err(|e| format!("cannot run {}: {}", cc, e))?;
    if out.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&out.stderr).into_owned())
    }
}
