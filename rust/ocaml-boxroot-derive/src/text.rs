// SPDX-License-Identifier: MIT
//! Names and documentation as text.
use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

pub fn ident_text(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}

/// The documentation comment.
pub fn documentation(attributes: &[syn::Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        let syn::Meta::NameValue(pair) = &attribute.meta else { continue };
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(line), .. }) = &pair.value else { continue };
        if pair.path.is_ident("doc") {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line.value().trim());
        }
    }
    text
}

/// The conditions (`cfg`) of an item, for what is made beside it.
pub fn conditions(attributes: &[syn::Attribute]) -> TokenStream {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).map(|attribute| quote!(#attribute)).collect()
}

/// The documentation, for the item that is made.
pub fn documentation_tokens(attributes: &[&syn::Attribute]) -> TokenStream {
    attributes.iter().map(|attribute| quote!(#attribute)).collect()
}
