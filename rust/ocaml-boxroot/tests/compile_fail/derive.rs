//# fields_have_a_counterpart E0277 has no counterpart among OCaml's types
#[derive(OCamlType, ToOCaml, FromOCaml)]
struct S {
    x: std::net::IpAddr, //~
    //+ x: String,
}
//# unknown_attributes_are_refused - `ocaml` knows no such attribute for a field, only `rename`, `mutable`
#[derive(OCamlType)]
struct S {
    #[ocaml(immutable)] //~
    //+ #[ocaml(mutable)]
    x: String,
}
//# attributes_have_their_places - `ocaml` knows no such attribute for a variant, only `rename`
#[derive(OCamlType)]
enum S {
    #[ocaml(mutable)] //~
    //+ #[ocaml(rename = "B")]
    A,
}
//# names_are_names - `x y` is not a name of OCaml that begins with a small letter
#[derive(OCamlType)]
struct S {
    #[ocaml(rename = "x y")] //~
    //+ #[ocaml(rename = "x_y")]
    x: String,
}
//# keywords_are_no_names - `type` is a keyword of OCaml
#[derive(OCamlType)]
struct S {
    #[ocaml(rename = "type")] //~
    //+ #[ocaml(rename = "kind")]
    x: String,
}
//# types_of_ocaml_are_not_defined_again - `list` is a type of OCaml itself
#[derive(OCamlType)]
#[ocaml(rename = "list")] //~
//+ #[ocaml(rename = "lists")]
struct S {
    x: String,
}
//# fields_have_different_names - two fields are named `x` in OCaml
#[derive(OCamlType)]
struct S {
    x: String,
    #[ocaml(rename = "x")] //~
    //+ #[ocaml(rename = "z")]
    y: String,
}
//# constructors_have_different_names - two constructors are named `A`
#[derive(OCamlType)]
enum S {
    A,
    #[ocaml(rename = "A")] //~
    //+ #[ocaml(rename = "C")]
    B,
}
//# constructors_begin_with_a_capital_letter - `a` is not a name of OCaml that begins with a capital letter
#[derive(OCamlType)]
enum S {
    #[ocaml(rename = "a")] //~
    //+ #[ocaml(rename = "A")]
    B,
}
//# unboxed_types_have_one_field - only a struct with one field can be unboxed
#[derive(OCamlType)]
#[ocaml(unboxed)]
struct S {
    x: String,
    y: String, //~
    //+ // y: String,
}
//# polymorphic_variants_have_different_hashes - OCaml cannot tell the polymorphic variants
#[derive(OCamlType)]
#[ocaml(polymorphic)]
enum S {
    Cxsdzlm,
    Chqwjrh, //~
    //+ Other,
}
//# polymorphic_variants_have_no_named_fields - a polymorphic variant has no named fields in OCaml
#[derive(OCamlType)]
#[ocaml(polymorphic)]
enum S {
    A { x: i32 }, //~
    //+ A(i32),
}
//# unions_have_no_counterpart - a union has no counterpart in OCaml
#[derive(OCamlType)]
union S { x: i32, y: u32 } //~
//+ struct S { x: i32, y: u32 }
//# borrowed_fields_do_not_survive_a_collection E0502
#[derive(OCamlType, ToOCaml, FromOCaml)]
struct S<'a> {
    x: &'a str,
}
fn f(rt: &mut Runtime, r: &Root<S<'static>>) {
    let s: S<'_> = r.to_rust(rt).unwrap();
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    s.x.len();
}
//# derived_types_are_types_of_their_own E0271
#[derive(OCamlType, ToOCaml, FromOCaml)]
struct S(i32);
#[derive(OCamlType, ToOCaml, FromOCaml)]
struct T(i32);
fn f(rt: &mut Runtime, g: &Root<Fun<(S,), Unit>>) {
    let _ = g.call(rt, (T(3),)); //~
    //+ let _ = g.call(rt, (S(3),));
}
//# fields_are_read_too E0277 cannot be made from an OCaml value
#[derive(OCamlType, ToOCaml)] //~
//+ #[derive(OCamlType, FromOCaml)]
struct Inner(i32);
#[derive(OCamlType, FromOCaml)]
struct S(Inner);
//# the_crate_is_a_crate - the name that the crate `ocaml-boxroot` has among the dependencies
mod other {
    pub use ocaml_boxroot::*;
    pub mod derive { pub use ocaml_boxroot::derive::*; }
}
#[derive(OCamlType)]
#[ocaml(crate = crate::other)] //~
//+ #[ocaml(crate = ocaml_boxroot)]
struct S { x: String }
//# the_crate_is_no_module E0433
mod other { pub use ocaml_boxroot::*; }
#[derive(OCamlType)]
#[ocaml(crate = other)] //~
//+ #[ocaml(crate = ocaml_boxroot)]
struct S;
//# parameters_have_no_traits - a type parameter has no bound but lifetimes
trait Belongs { type To; }
trait Other {}
#[derive(OCamlType)]
struct S<A: Belongs> { x: Root<A> } //~
//+ struct S<A> { x: Root<A> }
//# traits_of_parameters_are_the_standard_librarys E0277
trait Clone { type To; }
#[derive(OCamlType)]
struct S<A: Clone> { x: Root<A> } //~
//+ struct S<A: std::clone::Clone> { x: Root<A> }
//# parameters_have_no_traits_elsewhere - a type parameter has no bound but lifetimes
struct W<A>(A);
#[derive(OCamlType)]
struct S<A> where W<A>: Typed { x: Root<A> } //~
//+ struct S<A> where W<A>: 'static { x: Root<A> }
