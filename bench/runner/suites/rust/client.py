# SPDX-License-Identifier: MIT
"""A crate with many exported functions and derived types, written for each library: what its macros cost users."""

from __future__ import annotations

from .names import INTEROP, OCAML, OURS

RECORDS, VARIANTS, FUNCTIONS = 40, 10, 200
FIELDS = (("id", "int"), ("weight", "float"), ("name", "string"), ("active", "bool"), ("parts", "ints"))
CONSTRUCTORS = (("Nothing", ""), ("Number", "int"), ("Text", "string"), ("Size", "float"))
RUST = {
    OURS: {"int": "i64", "ints": "Vec<i64>"},
    INTEROP: {"int": "i64", "ints": "Vec<i64>"},
    OCAML: {"int": "ocaml::Int", "ints": "Vec<ocaml::Int>"},
}
COMMON = {"float": "f64", "string": "String", "bool": "bool"}
INTEROP_TYPES = {
    "int": "OCamlInt",
    "float": "OCamlFloat",
    "string": "String",
    "bool": "bool",
    "ints": "OCamlUniformArray<OCamlInt>",
}


def derived(library: str) -> str:
    return {
        OURS: "#[derive(OCamlType, ToOCaml, FromOCaml)]\n",
        OCAML: "#[derive(ocaml::ToValue, ocaml::FromValue)]\n",
    }.get(library, "")


def record(library: str, name: str) -> str:
    rust = RUST[library] | COMMON
    text = f"{derived(library)}pub struct {name} {{\n"
    text += "".join(f"    pub {field}: {rust[kind]},\n" for field, kind in FIELDS) + "}\n"
    if library == INTEROP:
        fields = "".join(f"        {field}: {INTEROP_TYPES[kind]},\n" for field, kind in FIELDS)
        text += f"impl_conv_ocaml_record! {{\n    {name} {{\n{fields}    }}\n}}\n"
    return text


def variant(library: str, name: str) -> str:
    rust = RUST[library] | COMMON
    cases = [f"    {c}({rust[kind]}),\n" if kind else f"    {c},\n" for c, kind in CONSTRUCTORS]
    text = f"{derived(library)}pub enum {name} {{\n{''.join(cases)}}}\n"
    if library == INTEROP:
        names = [f"{name}::{c}(value: {INTEROP_TYPES[k]})" if k else f"{name}::{c}" for c, k in CONSTRUCTORS]
        text += (
            f"impl_conv_ocaml_variant! {{\n    {name} {{\n" + "".join(f"        {n},\n" for n in names) + "    }\n}\n"
        )
    return text


def function(library: str, n: int) -> str:
    """Eight kinds by turns."""
    kind, r, v = n % 8, f"Record{n % RECORDS}", f"Variant{n % VARIANTS}"
    if library == INTEROP:
        arguments, result, body = [
            (f"x: OCaml<{r}>", f"OCaml<{r}>", f"let x: {r} = x.to_rust();\n    x.to_ocaml(cr)"),
            (f"x: OCaml<{v}>", f"OCaml<{v}>", f"let x: {v} = x.to_rust();\n    x.to_ocaml(cr)"),
            ("a: OCaml<OCamlInt>, b: OCaml<OCamlInt>", "OCaml<OCamlInt>",
             "let (a, b): (i64, i64) = (a.to_rust(), b.to_rust());\n    (a + b).to_ocaml(cr)"),
            ("a: OCaml<OCamlFloat>, b: OCaml<OCamlFloat>", "OCaml<OCamlFloat>",
             "let (a, b): (f64, f64) = (a.to_rust(), b.to_rust());\n    (a + b).to_ocaml(cr)"),
            ("s: OCaml<String>", "OCaml<String>", "let s: String = s.to_rust();\n    s.to_uppercase().to_ocaml(cr)"),
            ("v: OCaml<OCamlList<OCamlInt>>", "OCaml<OCamlInt>",
             "let v: Vec<i64> = v.to_rust();\n    v.iter().sum::<i64>().to_ocaml(cr)"),
            ("s: OCaml<Option<String>>", "OCaml<bool>",
             "let s: Option<String> = s.to_rust();\n    s.is_some().to_ocaml(cr)"),
            (f"x: OCaml<{r}>, name: OCaml<String>", f"OCaml<OCamlList<{r}>>",
             f"let mut x: {r} = x.to_rust();\n    x.name = name.to_rust();\n    vec![x].to_ocaml(cr)"),
        ][kind]  # fmt: skip
        return f"#[export]\npub fn client_{n}(cr: &mut OCamlRuntime, {arguments}) -> {result} {{\n    {body}\n}}\n"
    int_ = RUST[library]["int"]
    list_in, list_out, items = {
        OURS: (f"v: List<{int_}>", f"List<{r}>", ("v.0.iter()", "List(vec![x])")),
        OCAML: (f"v: LinkedList<{int_}>", f"LinkedList<{r}>", ("v.iter()", "LinkedList::from([x])")),
    }[library]
    arguments, result, body = [
        (f"x: {r}", r, "x"),
        (f"x: {v}", v, "x"),
        (f"a: {int_}, b: {int_}", int_, "a + b"),
        ("a: f64, b: f64", "f64", "a + b"),
        ("s: String", "String", "s.to_uppercase()"),
        (list_in, int_, f"{items[0]}.sum()"),
        ("s: Option<String>", "bool", "s.is_some()"),
        (f"x: {r}, name: String", list_out, f"let mut x = x;\n    x.name = name;\n    {items[1]}"),
    ][kind]
    attribute = "#[export]" if library == OURS else "#[ocaml::func]"
    return f"{attribute}\npub fn client_{n}({arguments}) -> {result} {{\n    {body}\n}}\n"


BEGIN = {
    OURS: "#![forbid(unsafe_code)]\nuse ocaml_boxroot::*;\n",
    INTEROP: "#![allow(unused_variables)]\nuse ocaml_interop::*;\n",
    OCAML: "use std::collections::LinkedList;\n",
}


def source(library: str) -> str:
    parts = [BEGIN[library]]
    parts += [record(library, f"Record{n}") for n in range(RECORDS)]
    parts += [variant(library, f"Variant{n}") for n in range(VARIANTS)]
    parts += [function(library, n) for n in range(FUNCTIONS)]
    return "\n".join(parts)
