// SPDX-License-Identifier: MIT
use ocaml::{FromValue, Int, List, Runtime, ToValue, Value};
use std::sync::Mutex;

#[derive(ToValue, FromValue)]
pub struct Record {
    id: Int,
    weight: f64,
    name: String,
}

static INTS: Mutex<Vec<Int>> = Mutex::new(Vec::new());
static FLOATS: Mutex<Vec<f64>> = Mutex::new(Vec::new());
static STRINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static RECORDS: Mutex<Vec<Record>> = Mutex::new(Vec::new());

/// There is no conversion of a vector to a list.
fn list<T: ToValue + FromValue>(gc: &Runtime, v: &[T]) -> List<T> {
    v.iter().rev().fold(List::empty(), |list, x| unsafe { list.add(gc, x) })
}

macro_rules! lists {
    ($($read:ident $make:ident $kept:ident: $item:ty;)*) => {$(
        #[ocaml::func]
        pub fn $read(v: List<$item>) -> Int {
            let v = v.into_vec();
            let n = v.len() as Int;
            *$kept.lock().unwrap() = v;
            n
        }

        #[ocaml::func(gc)]
        pub fn $make(_unit: Value) -> List<$item> {
            list(gc, &$kept.lock().unwrap())
        }
    )*}
}

macro_rules! arrays {
    ($($read:ident $make:ident $kept:ident: $item:ty;)*) => {$(
        #[ocaml::func]
        pub fn $read(v: Vec<$item>) -> Int {
            let n = v.len() as Int;
            *$kept.lock().unwrap() = v;
            n
        }

        #[ocaml::func(gc)]
        pub fn $make(_unit: Value) -> Value {
            $kept.lock().unwrap().to_value(gc)
        }
    )*}
}

lists! {
    read_list_int make_list_int INTS: Int;
    read_list_float make_list_float FLOATS: f64;
    read_list_string make_list_string STRINGS: String;
}
arrays! {
    read_array_int make_array_int INTS: Int;
    read_array_float make_array_float FLOATS: f64;
    read_array_string make_array_string STRINGS: String;
    read_records make_records RECORDS: Record;
}
