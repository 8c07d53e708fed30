# SPDX-License-Identifier: MIT
"""What Rust types are in OCaml, where programs could disagree about it: types of one name, types for all types, the
last constructor; and the text in projects that are strict, and have modules of all names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from testing import crate, matrix
from testing.compilers import Compiler
from testing.crate import CARGO, Shop
from testing.run import ROOT, Outcome

RUST = ROOT / "rust"
MODULES = RUST / "ocaml-boxroot/ocaml"
LINK = ("-cclib", "-lpthread", "-cclib", "-ldl", "-cclib", "-lm")
# What dune passes in its profile for development.
DEV = (
    "-w",
    "@1..3@5..28@30..39@43@46..47@49..57@61..62@67@69@70-40-41-42-44-45-48-58-59-60-66-70",
    "-strict-sequence",
    "-strict-formats",
    "-short-paths",
    "-g",
)
MANIFEST = f"""
[package]
name = "types"
version = "0.0.0"
edition = "2021"
[lib]
crate-type = ["staticlib"]
[dependencies]
ocaml-boxroot = {{ path = "{RUST / "ocaml-boxroot"}" }}
MORE
[workspace]
"""
HEAD = "#![forbid(unsafe_code)]\n#![allow(dead_code)]\nuse ocaml_boxroot::*;\nuse std::sync::Mutex;\n"
GENERATE = """
external text : string -> string = "types_ocaml_text"
let () =
  try print_string (text Sys.argv.(1)) with e -> prerr_endline (Printexc.to_string e); exit 1
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    why = crate.missing()
    skip = [pytest.mark.skip(reason=why)] if why else []
    compilers = [(c, [pytest.mark.xdist_group(f"rust-{c.name}"), *skip]) for c in matrix.ends()]
    metafunc.parametrize("compiler", [pytest.param(c, id=c.name, marks=marks) for c, marks in compilers])


class Library:
    """A Rust library named `types`, and a folder with OCaml programs that use it."""

    def __init__(self, compiler: Compiler, name: str, text: str, more: str = "") -> None:
        self.shop = Shop(compiler)
        self.folder = self.shop.folder / "types" / name
        self.target = self.shop.target
        self.put(self.folder, text, MANIFEST.replace("MORE", more))

    def put(self, folder: Path, text: str, manifest: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "src").mkdir(parents=True)
        (folder / "src/lib.rs").write_text(text)
        (folder / "Cargo.toml").write_text(manifest)
        self.shop.pin(folder)

    def build(self) -> Outcome:
        return self.shop.try_run([CARGO, "build", "--offline"], self.folder, self.target)

    def built(self) -> Library:
        outcome = self.build()
        assert outcome.passed, outcome.tail(40)
        shutil.copy(self.target / "debug/libtypes.a", self.folder)
        (self.folder / "generate.ml").write_text(GENERATE)
        words = [self.shop.compiler.ocamlopt, "generate.ml", "libtypes.a", *LINK, "-o", "generate"]
        self.shop.run(words, self.folder)
        return self

    def generate(self) -> Library:
        for file in ("types.ml", "types.mli"):
            (self.folder / file).write_text(self.shop.run(["./generate", file], self.folder))
        for file in ("ocaml_boxroot.ml", "ocaml_boxroot.mli"):
            shutil.copy(MODULES / file, self.folder)
        return self

    def refuses(self) -> str:
        """Why it has no text."""
        outcome = self.shop.try_run(["./generate", "types.ml"], self.folder)
        assert not outcome.passed
        return outcome.text

    def runs(self, text: str, *files: str, flags: tuple[str, ...] = ()) -> str:
        (self.folder / "main.ml").write_text(text)
        ours = ("ocaml_boxroot.mli", "ocaml_boxroot.ml", "types.mli", "types.ml")
        words = [self.shop.compiler.ocamlopt, *flags, *files, *ours, "main.ml", "libtypes.a", *LINK, "-o", "main"]
        self.shop.run(words, self.folder)
        said = self.shop.run(["./main"], self.folder)
        assert "types: ok" in said.splitlines(), said
        return said


def variants(count: int) -> str:
    """Constructors with arguments."""
    rows = "".join(f"    C{i}(isize),\n" for i in range(count))
    return (
        f"{HEAD}#[derive(OCamlType, ToOCaml, FromOCaml)]\npub enum Many {{\n    Constant,\n{rows}}}\n"
        f"#[export]\nfn last(n: isize) -> Many {{ Many::C{count - 1}(n) }}\n"
        f"#[export]\nfn number(m: Many) -> isize {{ if let Many::C{count - 1}(n) = m {{ n }} else {{ -1 }} }}\n"
        'library! { name = "types", exports = [last, number] }\n'
    )


def test_as_many_constructors_as_ocaml_has(compiler: Compiler) -> None:
    most = 244 if compiler.major >= 5 else 246
    library = Library(compiler, "constructors", variants(most)).built().generate()
    library.runs(f"""
      let () =
        Gc.full_major ();
        assert (Types.last 7 = Types.C{most - 1} 7);
        assert (Types.number (Types.C{most - 1} 8) = 8 && Types.number (Types.C0 8) = -1);
        Gc.full_major ();
        print_endline "types: ok"
    """)
    outcome = Library(compiler, "constructors-too-many", variants(most + 1)).build()
    assert not outcome.passed
    assert "a type of OCaml has at most 244 constructors with arguments (with OCaml 4, 246)" in outcome.text


SCOPES = """
trait Own { type It; }
struct First;
struct Second;
fn first() {
    #[derive(OCamlType, ToOCaml, FromOCaml)]
    struct Point { x: isize }
    impl Own for First { type It = Point; }
}
fn second() {
    #[derive(OCamlType, ToOCaml, FromOCaml)]
    struct Point { x: RENAMED }
    impl Own for Second { type It = Point; }
}
#[export]
fn make(x: isize) -> Vec<<First as Own>::It> { let _ = x; vec![] }
#[export]
fn take(x: <Second as Own>::It) { drop(x) }
library! { name = "types", exports = [make, take] }
"""
ABSTRACT = """
trait Own { type It; }
struct First;
struct Second;
fn first() {
    pub struct Table<A>(pub Mutex<Vec<Root<A>>>);
    ocaml_abstract! { Table<A> = "table"; }
    impl Own for First { type It = Boxed<Table<Int>>; }
}
fn second() {
    pub struct Table(pub isize);
    ocaml_abstract! { Table = "table"; }
    impl Own for Second { type It = Boxed<Table>; }
}
#[export]
fn make(x: Root<<First as Own>::It>) { drop(x) }
#[export]
fn take(x: Root<<Second as Own>::It>) { drop(x) }
library! { name = "types", exports = [make, take] }
"""


@pytest.mark.parametrize("text", [SCOPES, ABSTRACT], ids=["derived", "abstract"])
def test_types_of_one_name_in_two_scopes(compiler: Compiler, text: str) -> None:
    """Also if their definitions are the same: OCaml's types would be one."""
    name = "table" if text == ABSTRACT else "point"
    for field in ("String", "isize") if text == SCOPES else ("",):
        library = Library(compiler, "scopes", HEAD + text.replace("RENAMED", field)).built()
        said = library.refuses()
        rust = f"`types::{name.capitalize()}`"
        assert f"two types of Rust, {rust} and {rust}, are both named `{name}` in OCaml" in said, said
    if text == SCOPES:
        renamed = text.replace("struct Point { x: RENAMED }", '#[ocaml(rename = "other")] struct Point { x: String }')
        Library(compiler, "scopes", HEAD + renamed).built().generate().runs("""
          let () = Types.take { x = "x" }; assert (Types.make 1 = [||]); print_endline "types: ok"
        """)


SHARED = """
#![forbid(unsafe_code)]
use ocaml_boxroot::*;
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub struct Point { pub x: FIELD }
"""


def test_two_versions_of_one_crate(compiler: Compiler) -> None:
    text = HEAD + (
        "#[export]\nfn make(x: isize) -> one::Point { one::Point { x } }\n"
        "#[export]\nfn take(p: two::Point) -> String { p.x }\n"
        'library! { name = "types", exports = [make, take] }\n'
    )
    more = 'one = { package = "shared", path = "../one" }\ntwo = { package = "shared", path = "../two" }\n'
    library = Library(compiler, "versions", text, more)
    for folder, version, field in (("one", "1.0.0", "isize"), ("two", "2.0.0", "String")):
        manifest = MANIFEST.replace('name = "types"\nversion = "0.0.0"', f'name = "shared"\nversion = "{version}"')
        manifest = manifest.replace('[lib]\ncrate-type = ["staticlib"]\n', "")
        library.put(library.folder.parent / folder, SHARED.replace("FIELD", field), manifest.replace("MORE", ""))
    said = library.built().refuses()
    assert "two types of Rust, `shared::Point` and `shared::Point`, are both named `point` in OCaml" in said, said


ANY_TYPE = """
/// A cell of any type.
pub struct Cell<A>(Mutex<Root<A>>);
ocaml_abstract! { Cell<A> = "cell"; }

#[export]
fn create<A: TypeVar>(rt: &mut Runtime, v: Root<A>) -> ValueGuard<'_, Boxed<Cell<A>>> {
    rt.boxed_erased(Cell(v.into()))
}
#[export]
fn get<A: TypeVar>(rt: &Runtime, cell: &Cell<A>) -> Root<A> { cell.0.lock().unwrap().clone_ref(rt) }
#[export]
fn set<A: TypeVar>(rt: &mut Runtime, cell: ValueRef<'_, Boxed<Cell<A>>>, v: Root<A>) {
    *cell.payload_erased(rt).0.lock().unwrap() = v;
}

/// As text, where the type is known.
#[export]
fn known(rt: &mut Runtime, v: Root<Str>) -> ValueGuard<'_, Boxed<Cell<Str>>> { rt.boxed(Cell(v.into())) }
#[export]
fn known_get(rt: &Runtime, cell: &Cell<Str>) -> Root<Str> { cell.0.lock().unwrap().clone_ref(rt) }

/// Puts a number in any cell: whether that was possible.
#[export]
fn poke(rt: &Runtime, v: Root<Any>) -> bool {
    match v.get(rt).downcast::<Boxed<Cell<Any>>>() {
        Ok(cell) => {
            *cell.payload(rt).0.lock().unwrap() = int(0x1234).root(rt).into_any();
            true
        }
        Err(_) => false,
    }
}

/// Hidden things of the library, by their names.
#[export]
fn poke_hidden(rt: &Runtime, v: Root<Any>) -> bool {
    v.get(rt).downcast::<Boxed<Cell<ocaml_boxroot::export::Erased>>>().is_ok()
}

/// Floats in a flat array are values too.
#[export]
fn reversed<A>(rt: &mut Runtime, array: Vec<Root<A>>) -> Vec<Root<A>> {
    rt.full_major().unwrap();
    array.into_iter().rev().collect()
}
#[export]
fn second<'a, A>(rt: &'a Runtime, array: [Value<'a, A>; 3]) -> Value<'a, A> { let _ = rt; array[1] }

/// A type of its own that is `float` in OCaml.
struct Celsius(f64);
impl Typed for Celsius { type Type = Float; }
impl Element for Celsius {}
impl<'a> FromOCaml<'a> for Celsius {
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Float>) -> Result<Self, ConvertError> { Ok(Celsius(v.to_f64())) }
}
#[export]
fn warmest(all: Vec<Celsius>) -> f64 { all.iter().fold(f64::MIN, |most, x| most.max(x.0)) }

library! { name = "types", exports = [
    create, get, set, known, known_get, poke, poke_hidden, reversed, second, warmest,
] }
"""
OF_ANY_TYPE = """
let () =
  let text = Types.create (String.make 3 'x') and number = Types.create 5 in
  Gc.full_major ();
  assert (Types.get text = "xxx" && Types.get number = 5);
  Types.set text (String.make 3 'y');
  (* What is made for all types is not given out as what is of one type. *)
  assert (not (Types.poke (Obj.repr text)) && not (Types.poke (Obj.repr number)));
  assert (not (Types.poke_hidden (Obj.repr text)));
  Gc.full_major ();
  assert (String.length (Types.get text) = 3 && Types.get text = "yyy");
  assert (Types.known_get (Types.known "z") = "z");
  assert (match Types.get (Types.known "z") with _ -> false | exception Invalid_argument _ -> true);
  for n = 0 to 400 do
    let floats = Array.init n float_of_int in
    let back = Types.reversed floats in
    Gc.minor ();
    assert (back = Array.init n (fun i -> float_of_int (n - 1 - i)));
    assert (n = 0 || Obj.tag (Obj.repr back) = Obj.double_array_tag)
  done;
  assert (Types.reversed [| "a"; "b" |] = [| "b"; "a" |]);
  assert (Types.second [| 1.; 2.5; 3. |] = 2.5 && Types.second [| 'a'; 'b'; 'c' |] = 'b');
  assert (Types.warmest [| 1.; 2.5; -3. |] = 2.5);
  print_endline "types: ok"
"""


def test_types_for_all_types(compiler: Compiler) -> None:
    library = Library(compiler, "any", HEAD + ANY_TYPE).built().generate()
    library.runs(OF_ANY_TYPE)


def test_type_variables_of_nothing(compiler: Compiler) -> None:
    text = HEAD + (
        "static KEPT: Mutex<Option<Root<ocaml_boxroot::export::Erased>>> = Mutex::new(None);\n"
        "#[export]\nfn put(x: Root<ocaml_boxroot::export::Erased>) { *KEPT.lock().unwrap() = Some(x) }\n"
        'library! { name = "types", exports = [put] }\n'
    )
    said = Library(compiler, "nothing", text).built().refuses()
    assert "a type variable stands where no function is generic" in said, said


STRICT = """
/// One field: {x|x > 0}, {%html|a}, {%%b c|, "a string that does not end, (* nor this, '"', {id|.
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub struct One { /** {a|field "} */ pub n: isize }
/// One that changes.
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub struct OneMutable { #[ocaml(mutable)] pub n: isize }
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub struct Wrapped(f64);
#[derive(OCamlType, ToOCaml, FromOCaml)]
#[ocaml(unboxed)]
pub struct Bare { x: f64 }
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub enum Single { Only { x: isize } }
/// The two refer to each other, and have a field of one name.
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub struct Tree { pub name: String, pub forest: List<Forest> }
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub struct Forest { pub name: String, pub trees: List<Tree> }
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub struct Box_<A> { pub it: A }

/// Not to be mixed up with {|this: "*)" and (*
#[derive(Debug, OCamlException)]
pub struct Failed { why: String, at: Root<Any> }
impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(&self.why) }
}
impl std::error::Error for Failed {}

/// {x|x > 0} \\" {%a|
#[export]
fn one(x: One, y: OneMutable) -> (One, Wrapped, Bare) { (x, Wrapped(y.n as f64), Bare { x: 0.5 }) }
#[export]
fn single(x: Single) -> One { let Single::Only { x: n } = x; One { n } }
#[export]
fn tree(t: Tree) -> Forest { Forest { name: t.name.clone(), trees: List(vec![t]) } }
#[export]
fn boxed<A>(x: Box_<Root<A>>) -> Box_<Root<A>> { x }
#[export]
#[allow(clippy::type_complexity)]
fn modules<'a>(
    rt: &'a Runtime, c: char, o: Value<'a, Any>, l: Value<'a, Lazy<Int>>, a: Value<'a, Atomic<Int>>,
    b: Value<'a, Array1<f64>>, z: Value<'a, Array1<Complex<f64>>>,
) -> Result<char, Failed> {
    let _ = (l, a, b, z);
    if c == 'x' { Err(Failed { why: "x".into(), at: o.root(rt) }) } else { Ok(c) }
}
library! {
    /// Of {x|x > 0}, "quoted", {id|.
    name = "types", exports = [one, single, tree, boxed, modules], exceptions = [Failed]
}
"""
OF_STRICT = """
let () =
  let one, wrapped, bare = Types.one { Types.n = 1 } { Types.n = 2 } in
  assert (one = { Types.n = 1 } && wrapped = Types.Wrapped 2. && bare = { Types.x = 0.5 });
  assert (Types.single (Types.Only { x = 3 }) = { Types.n = 3 });
  let t = { Types.name = "t"; forest = [] } in
  assert (Types.tree t = { Types.name = "t"; trees = [ t ] });
  assert (Types.boxed { Types.it = "a" } = { Types.it = "a" });
  let numbers = Stdlib.Bigarray.(Array1.create float64 c_layout 1) in
  let complex = Stdlib.Bigarray.(Array1.create complex64 c_layout 1) in
  let any = Stdlib.Obj.repr 1 and atomic = Stdlib.Atomic.make 1 in
  let call c = Types.modules (Stdlib.Uchar.of_char c) any (lazy 1) atomic numbers complex in
  assert (call 'y' = Stdlib.Uchar.of_char 'y');
  assert (match call 'x' with _ -> false | exception Types.Failed { why = "x"; at } -> Stdlib.Obj.obj at = 1);
  print_endline "types: ok"
"""
# Functions with names that the macros and the OCaml text use too; letters that OCaml has not; conditions; bounds.
NAMES = """
use std::fmt::Debug;
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub struct Größe { naïve: isize }
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub enum Été { Ärger, 数(isize) }
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub struct Pair<A: Clone, B = isize> where A: Debug + PartialEq, B: Copy { a: Vec<A>, b: Option<B> }
#[export]
fn größe(x: Größe) -> Été { Été::数(x.naïve) }
#[export]
fn pair(x: Pair<String>) -> Pair<f64, bool> { Pair { a: vec![x.a.len() as f64], b: Some(x.b == Some(1)) } }
#[export]
fn check_(n: isize) -> isize { n + 1 }
#[export]
fn exceptions_(n: isize) -> isize { n + 2 }
#[export]
fn __ocaml_body(n: isize) -> isize { n + 3 }
#[export]
fn __ocaml_native(n: f64) -> f64 { n + 4.0 }
#[export]
fn __ocaml_slots(_rt: &mut Runtime, n: String) -> usize { n.len() }
struct Own(isize);
ocaml_abstract! { Own = "own"; }
#[export]
impl Own {
    fn make(rt: &mut Runtime, n: isize) -> ValueGuard<'_, Boxed<Own>> { rt.boxed(Own(n)) }
    #[cfg(any())]
    fn absent(&self) -> Nothing { self.0 }
    #[cfg(all())]
    fn number(&self) -> isize { self.0 }
}
import! {
    #[cfg(all())]
    mod text = "String";
    #[cfg(any())]
    pub fn absent(x: Nothing) -> Result<Nothing, Exception>;
    #[cfg(all())]
    pub fn length(s: &str) -> Result<isize, Exception>;
    #[cfg(any())]
    mod none = "None";
}
#[derive(Debug, OCamlException)]
struct Failed;
impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("failed") }
}
impl std::error::Error for Failed {}
library! {
    name = "types",
    exports = [größe, pair, check_, exceptions_, __ocaml_body, __ocaml_native, __ocaml_slots, Own::make,
        #[cfg(any())] Own::absent, #[cfg(all())] Own::number],
    imports = [#[cfg(any())] none, text],
    exceptions = [Failed, #[cfg(any())] Absent],
}
"""
OF_NAMES = """
let () =
  assert (Types.gru00f6u00dfe { nau00efve = 7 } = U6570 7);
  assert (Types.pair { a = [| "x" |]; b = Some 1 } = { a = [| 1. |]; b = Some true });
  assert (Types.check_ 1 = 2 && Types.exceptions_ 1 = 3 && Types.__ocaml_body 1 = 4 && Types.__ocaml_native 1. = 5.);
  assert (Types.__ocaml_slots "four" = 4);
  assert (Types.number (Types.make 8) = 8);
  print_endline "types: ok"
"""


def test_names_and_conditions(compiler: Compiler) -> None:
    Library(compiler, "names", HEAD + NAMES).built().generate().runs(OF_NAMES, flags=DEV)


# Modules of the project, none of which has what OCaml's module of that name has.
OWN = [
    "array",
    "atomic",
    "bigarray",
    "callback",
    "complex",
    "domain",
    "lazy",
    "list",
    "obj",
    "option",
    "out_channel",
    "printexc",
    "printf",
    "string",
    "sys",
    "uchar",
]


def test_the_text_in_a_strict_project(compiler: Compiler) -> None:
    """With the warnings of dune's profile for development, and with modules of the project that hide OCaml's own."""
    library = Library(compiler, "strict", HEAD + STRICT).built().generate()
    own = [f"{name}.ml" for name in OWN]
    for file in own:
        (library.folder / file).write_text("type mine\nlet mine = ()\n")
    library.runs(OF_STRICT, *own, flags=DEV)
