// SPDX-License-Identifier: MIT
use ocaml_interop::*;
use std::sync::Mutex;

struct Record {
    id: i64,
    weight: f64,
    name: String,
}

impl_conv_ocaml_record! {
    Record {
        id: OCamlInt,
        weight: OCamlFloat,
        name: String,
    }
}

static INTS: Mutex<Vec<i64>> = Mutex::new(Vec::new());
static FLOATS: Mutex<Vec<f64>> = Mutex::new(Vec::new());
static STRINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static RECORDS: Mutex<Vec<Record>> = Mutex::new(Vec::new());

macro_rules! conversions {
    ($($read:ident $make:ident $type:ty, $kept:ident: $rust:ty;)*) => {$(
        #[export]
        fn $read(cr: &mut OCamlRuntime, v: OCaml<$type>) -> OCaml<OCamlInt> {
            let v: $rust = v.to_rust();
            let n = v.len() as i64;
            *$kept.lock().unwrap() = v;
            n.to_ocaml(cr)
        }

        #[export]
        fn $make(cr: &mut OCamlRuntime, unit: OCaml<()>) -> OCaml<$type> {
            $kept.lock().unwrap().to_ocaml(cr)
        }
    )*}
}

conversions! {
    read_list_int make_list_int OCamlList<OCamlInt>, INTS: Vec<i64>;
    read_list_float make_list_float OCamlList<OCamlFloat>, FLOATS: Vec<f64>;
    read_list_string make_list_string OCamlList<String>, STRINGS: Vec<String>;
    read_array_int make_array_int OCamlUniformArray<OCamlInt>, INTS: Vec<i64>;
    read_array_float make_array_float OCamlFloatArray, FLOATS: Vec<f64>;
    read_array_string make_array_string OCamlUniformArray<String>, STRINGS: Vec<String>;
    read_records make_records OCamlUniformArray<Record>, RECORDS: Vec<Record>;
}
