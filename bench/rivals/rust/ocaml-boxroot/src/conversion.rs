// SPDX-License-Identifier: MIT
use ocaml_boxroot::*;
use std::sync::Mutex;

#[derive(OCamlType, ToOCaml, FromOCaml)]
pub struct Record {
    id: i64,
    weight: f64,
    name: String,
}

/// What was read last, as it is made again: lists and arrays are kept as they came.
static INTS: Mutex<Vec<i64>> = Mutex::new(Vec::new());
static FLOATS: Mutex<Vec<f64>> = Mutex::new(Vec::new());
static STRINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static INT_LIST: Mutex<List<i64>> = Mutex::new(List(Vec::new()));
static FLOAT_LIST: Mutex<List<f64>> = Mutex::new(List(Vec::new()));
static STRING_LIST: Mutex<List<String>> = Mutex::new(List(Vec::new()));
static RECORDS: Mutex<Vec<Record>> = Mutex::new(Vec::new());

fn keep<T>(kept: &Mutex<Vec<T>>, v: Vec<T>) -> usize {
    let n = v.len();
    *kept.lock().unwrap() = v;
    n
}

fn keep_list<T>(kept: &Mutex<List<T>>, list: List<T>) -> usize {
    let n = list.0.len();
    *kept.lock().unwrap() = list;
    n
}

#[export(unsafe(symbol = "read_list_int"))]
fn read_list_int(v: List<i64>) -> usize {
    keep_list(&INT_LIST, v)
}

#[export(unsafe(symbol = "read_list_float"))]
fn read_list_float(v: List<f64>) -> usize {
    keep_list(&FLOAT_LIST, v)
}

#[export(unsafe(symbol = "read_list_string"))]
fn read_list_string(v: List<String>) -> usize {
    keep_list(&STRING_LIST, v)
}

#[export(unsafe(symbol = "read_array_int"))]
fn read_array_int(v: Vec<i64>) -> usize {
    keep(&INTS, v)
}

#[export(unsafe(symbol = "read_array_float"))]
fn read_array_float(v: Vec<f64>) -> usize {
    keep(&FLOATS, v)
}

#[export(unsafe(symbol = "read_array_string"))]
fn read_array_string(v: Vec<String>) -> usize {
    keep(&STRINGS, v)
}

#[export(unsafe(symbol = "read_records"))]
fn read_records(v: Vec<Record>) -> usize {
    keep(&RECORDS, v)
}

type Made<'a, T> = Result<ValueGuard<'a, T>, ConvertError>;

#[export(unsafe(symbol = "make_list_int"))]
fn make_list_int(rt: &mut Runtime) -> Made<'_, List<Int>> {
    rt.alloc(&*INT_LIST.lock().unwrap())
}

#[export(unsafe(symbol = "make_list_float"))]
fn make_list_float(rt: &mut Runtime) -> Made<'_, List<Float>> {
    rt.alloc(&*FLOAT_LIST.lock().unwrap())
}

#[export(unsafe(symbol = "make_list_string"))]
fn make_list_string(rt: &mut Runtime) -> Made<'_, List<Str>> {
    rt.alloc(&*STRING_LIST.lock().unwrap())
}

#[export(unsafe(symbol = "make_array_int"))]
fn make_array_int(rt: &mut Runtime) -> Made<'_, Array<Int>> {
    rt.alloc(&*INTS.lock().unwrap())
}

#[export(unsafe(symbol = "make_array_float"))]
fn make_array_float(rt: &mut Runtime) -> Made<'_, Array<Float>> {
    rt.alloc(&*FLOATS.lock().unwrap())
}

#[export(unsafe(symbol = "make_array_string"))]
fn make_array_string(rt: &mut Runtime) -> Made<'_, Array<Str>> {
    rt.alloc(&*STRINGS.lock().unwrap())
}

#[export(unsafe(symbol = "make_records"))]
fn make_records(rt: &mut Runtime) -> Made<'_, Array<Record>> {
    rt.alloc(&*RECORDS.lock().unwrap())
}
