// SPDX-License-Identifier: MIT
//! Names of types, constructors and fields in OCaml, and the hash of a polymorphic variant.

/// The name of a type: `HttpRequest` is `http_request`.
pub fn type_name(rust: &str) -> String {
    let chars: Vec<char> = plain(rust).chars().collect();
    let mut name = String::new();
    for (i, c) in chars.iter().enumerate() {
        // At the beginning of a word: after a lower case letter or a digit, or before one (`HTTPRequest`).
        let after = i > 0 && chars[i - 1] != '_';
        let small = |i: usize| chars.get(i).is_some_and(|c: &char| c.is_lowercase());
        let begins = c.is_uppercase() && after && (!chars[i - 1].is_uppercase() || small(i + 1));
        if begins {
            name.push('_');
        }
        name.extend(c.to_lowercase());
    }
    escape(ascii(&name), |name| KEYWORDS.contains(&name) || TYPES.contains(&name))
}

/// The name of a field or a function: `r#` goes, and a keyword of OCaml gets an underscore.
pub fn field_name(rust: &str) -> String {
    let name = plain(rust);
    let mut chars = name.chars();
    let first = chars.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    escape(ascii(&(first + chars.as_str())), |name| KEYWORDS.contains(&name))
}

/// The name of a constructor.
pub fn constructor_name(rust: &str) -> String {
    let name = ascii(plain(rust).trim_start_matches('_'));
    let mut chars = name.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    first + chars.as_str()
}

/// Why `name` cannot be one of a type or a field.
pub fn refuse_value(name: &str, is_type: bool) -> Option<&'static str> {
    if KEYWORDS.contains(&name) || name == "_" {
        return Some("is a keyword of OCaml");
    }
    if is_type && TYPES.contains(&name) {
        return Some("is a type of OCaml itself");
    }
    let first = name.chars().next();
    match first.is_some_and(|c| c.is_ascii_lowercase() || c == '_') && name.chars().all(is_ident) {
        true => None,
        false => Some("is not a name of OCaml that begins with a small letter"),
    }
}

/// Why `name` cannot be one of a constructor.
pub fn refuse_constructor(name: &str) -> Option<&'static str> {
    match name.chars().next().is_some_and(|c| c.is_ascii_uppercase()) && name.chars().all(is_ident) {
        true => None,
        false => Some("is not a name of OCaml that begins with a capital letter"),
    }
}

/// The number that stands for a polymorphic variant.
pub fn hash(name: &str) -> i32 {
    let sum = name.bytes().fold(0u32, |sum, byte| sum.wrapping_mul(223).wrapping_add(byte.into()));
    // 31 bits, with a sign.
    ((sum << 1) as i32) >> 1
}

fn is_ident(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '\''
}

/// Other letters by their numbers: few versions of OCaml have any in names, and those have few.
pub fn ascii(name: &str) -> String {
    let letter = |c: char| if c.is_ascii() { c.to_string() } else { format!("u{:04x}", c as u32) };
    name.chars().map(letter).collect()
}

fn plain(rust: &str) -> &str {
    rust.strip_prefix("r#").unwrap_or(rust)
}

fn escape(mut name: String, taken: impl Fn(&str) -> bool) -> String {
    if taken(&name) {
        name.push('_');
    }
    name
}

/// The keywords of OCaml, with those of OCaml 5.3 (`effect`).
const KEYWORDS: &[&str] = &[
    "and",
    "as",
    "asr",
    "assert",
    "begin",
    "class",
    "constraint",
    "do",
    "done",
    "downto",
    "effect",
    "else",
    "end",
    "exception",
    "external",
    "false",
    "for",
    "fun",
    "function",
    "functor",
    "if",
    "in",
    "include",
    "inherit",
    "initializer",
    "land",
    "lazy",
    "let",
    "lor",
    "lsl",
    "lsr",
    "lxor",
    "match",
    "method",
    "mod",
    "module",
    "mutable",
    "new",
    "nonrec",
    "object",
    "of",
    "open",
    "or",
    "private",
    "rec",
    "sig",
    "struct",
    "then",
    "to",
    "true",
    "try",
    "type",
    "val",
    "virtual",
    "when",
    "while",
    "with",
];

/// Names of predefined types: a definition of the same name would change the meaning of the text that follows.
const TYPES: &[&str] = &[
    "array",
    "atomic_loc",
    "bool",
    "bytes",
    "char",
    "continuation",
    "eff",
    "exn",
    "extension_constructor",
    "float",
    "floatarray",
    "format",
    "format4",
    "format6",
    "iarray",
    "in_channel",
    "int",
    "int32",
    "int64",
    "lazy_t",
    "list",
    "nativeint",
    "option",
    "out_channel",
    "ref",
    "result",
    "string",
    "unit",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let types = ["Point", "HttpRequest", "HTTPRequest", "Vec3D", "r#Type", "List", "snake_case", "A"];
        let names = ["point", "http_request", "http_request", "vec3_d", "type_", "list_", "snake_case", "a"];
        assert_eq!(types.map(type_name), names);
        assert_eq!(["r#type", "val", "X", "_x"].map(field_name), ["type_", "val_", "x", "_x"]);
        assert_eq!(["Größe", "Ümlaut", "數"].map(type_name), ["gru00f6u00dfe", "u00fcmlaut", "u6578"]);
        assert_eq!(["naïve", "Über"].map(field_name), ["nau00efve", "u00fcber"]);
        assert_eq!(["Über", "_数"].map(constructor_name), ["U00dcber", "U6570"]);
        assert_eq!(["Leaf", "leaf", "_Leaf"].map(constructor_name), ["Leaf"; 3]);
        assert!(refuse_value("x y", false).is_some() && refuse_value("list", false).is_none());
        assert!(refuse_constructor("x").is_some() && refuse_constructor("Über").is_some());
    }

    #[test]
    fn hashes() {
        // `(Obj.magic `A : int)`, and so on, in OCaml.
        assert_eq!([hash("A"), hash("Some_longer_name"), hash("Zz")], [65, -631433290, 20192]);
    }
}
