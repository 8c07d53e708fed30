// SPDX-License-Identifier: MIT
//! `OCamlType`, `ToOCaml` and `FromOCaml`.
use crate::casing;
use crate::shape::{Field, Kind, Shape, Variant};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned, ToTokens};
use syn::{GenericParam, Ident, Lifetime};

impl Shape {
    fn type_parameters(&self) -> Vec<&Ident> {
        self.generics.type_params().map(|parameter| &parameter.ident).collect()
    }

    /// The generics of an implementation, with these bounds for each type parameter that is converted, and a lifetime
    /// in front that outlives the others.
    fn implementation(&self, bounds: &TokenStream, lifetime: Option<&Lifetime>) -> (TokenStream, TokenStream) {
        let mut generics = self.generics.clone();
        for parameter in &mut generics.params {
            if let GenericParam::Type(parameter) = parameter {
                parameter.default = None;
            }
        }
        let clause = generics.make_where_clause();
        for parameter in self.type_parameters() {
            if !self.descriptors.contains(parameter) {
                clause.predicates.push(syn::parse_quote!(#parameter: #bounds));
            }
            if self.elements.contains(parameter) && !bounds.is_empty() {
                let krate = &self.krate;
                clause.predicates.push(syn::parse_quote!(#parameter: #krate::Element));
            }
        }
        if let Some(lifetime) = lifetime {
            for parameter in self.generics.lifetimes() {
                let parameter = &parameter.lifetime;
                clause.predicates.push(syn::parse_quote!(#lifetime: #parameter));
            }
            generics.params.insert(0, syn::parse_quote!(#lifetime));
        }
        let (parameters, _, clause) = generics.split_for_impl();
        (parameters.into_token_stream(), clause.into_token_stream())
    }

    fn itself(&self) -> TokenStream {
        let (ident, (_, arguments, _)) = (&self.ident, self.generics.split_for_impl());
        quote!(#ident #arguments)
    }

    /// Definitions of the type parameters as type variables, for a block.
    fn variables(&self) -> TokenStream {
        let krate = &self.krate;
        let names = self.type_parameters();
        let numbers = 0..names.len() as u8;
        quote!(#(#[allow(dead_code, non_camel_case_types)] type #names = #krate::Var<#numbers>;)*)
    }

    /// Whether OCaml makes the record flat: decided where it is defined, so for parameters that are variables.
    fn flat(&self, fields: &[Field]) -> TokenStream {
        let (krate, variables) = (&self.krate, self.variables());
        let floats = fields.iter().map(|field| {
            let ty = &field.ty;
            let span = at(field.span);
            quote_spanned!(span=> <<#ty as #krate::Typed>::Type as #krate::OCamlType>::FLOAT)
        });
        quote!({ #variables #(#floats)&&* })
    }

    /// The only field, where the type is unboxed.
    fn only(&self) -> Option<(&Field, TokenStream)> {
        let field = match &self.kind {
            _ if !self.unboxed => None,
            Kind::Record(fields) => fields.first(),
            Kind::Variants(variants) => variants.first().and_then(|variant| variant.fields.first()),
            Kind::Polymorphic(_) => None,
        }?;
        let member = &field.member;
        Some((field, quote!(Self { #member: field })))
    }
}

/// Errors point at the user's code, and lints are silent, since it is still the macro's.
fn at(span: Span) -> Span {
    Span::call_site().located_at(span)
}

/// `OCamlType`, `Typed`, `Element`.
pub fn describe(shape: &Shape) -> TokenStream {
    let (krate, name, ident, itself) = (&shape.krate, &shape.name, &shape.ident, shape.itself());
    let api = quote!(#krate::derive);
    let parameters = shape.type_parameters();
    let count = parameters.len();
    let variables = shape.variables();
    let doc = &shape.doc;
    let attributes = if shape.unboxed { "[@@unboxed]" } else { "" };
    let body = body(shape, &api);
    let (float, own) = match shape.only() {
        Some((field, _)) => {
            let ty = &field.ty;
            (
                quote!(<<#ty as #krate::Typed>::Type as #krate::OCamlType>::FLOAT),
                quote!(#krate::OCamlType + #krate::Typed<Type = Self_> + #krate::Element),
            )
        }
        None => (quote!(false), quote!(#krate::OCamlType)),
    };
    // The bound `Typed<Type = A>` names the parameter.
    let (generics, clause) = bounds_naming(shape, &own);
    let (typed_generics, typed_clause) = shape.implementation(&quote!(#krate::Typed), None);
    let (element_generics, element_clause) = shape.implementation(&quote!(), None);
    let arguments = shape.generics.params.iter().map(|parameter| match parameter {
        GenericParam::Lifetime(_) => quote!('static),
        GenericParam::Type(parameter) => {
            let parameter = &parameter.ident;
            match shape.descriptors.contains(parameter) {
                true => parameter.to_token_stream(),
                false => quote!(<#parameter as #krate::Typed>::Type),
            }
        }
        GenericParam::Const(parameter) => parameter.ident.to_token_stream(),
    });
    quote! {
        // SAFETY: the definition says what the conversions do, which are derived from the same fields.
        #[automatically_derived]
        unsafe impl #generics #krate::OCamlType for #itself #clause {
            const FLOAT: bool = #float;
            fn describe(to: &mut #krate::Definitions) -> #api::String {
                to.define(
                    ::core::concat!(::core::module_path!(), "::", ::core::stringify!(#ident)),
                    #name,
                    #count,
                    |definition, to| {
                        #variables
                        definition.doc = #api::String::from(#doc);
                        definition.attributes = #api::String::from(#attributes);
                        definition.body = #body;
                    },
                );
                let arguments: [#api::String; #count] = [#(<#parameters as #krate::OCamlType>::describe(to)),*];
                #api::apply(&arguments, #name)
            }
        }
        #[automatically_derived]
        impl #typed_generics #krate::Typed for #itself #typed_clause {
            type Type = #ident<#(#arguments),*>;
        }
        #[automatically_derived]
        impl #element_generics #krate::Element for #itself #element_clause {}
    }
}

fn bounds_naming(shape: &Shape, bounds: &TokenStream) -> (TokenStream, TokenStream) {
    let mut generics = shape.generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.default = None;
        }
    }
    let clause = generics.make_where_clause();
    for parameter in shape.type_parameters() {
        let bounds: TokenStream = bounds
            .clone()
            .into_iter()
            .map(|token| match token {
                proc_macro2::TokenTree::Ident(ident) if ident == "Self_" => parameter.clone().into(),
                token => token,
            })
            .collect();
        clause.predicates.push(syn::parse_quote!(#parameter: #bounds));
    }
    let (parameters, _, clause) = generics.split_for_impl();
    (parameters.into_token_stream(), clause.into_token_stream())
}

/// An expression: the text behind the name of the type.
fn body(shape: &Shape, api: &TokenStream) -> TokenStream {
    let krate = &shape.krate;
    let text = |field: &Field| {
        let ty = &field.ty;
        let span = at(field.span);
        quote_spanned!(span=> <<#ty as #krate::Typed>::Type as #krate::OCamlType>::describe(to))
    };
    let record = |fields: &[Field], function: &str| {
        let function = format_ident!("{function}");
        let rows = fields.iter().map(|field| {
            let (name, doc, text) = (&field.name, &field.doc, text(field));
            let mutable = field.mutable;
            quote!((#mutable, #name, #text, #doc))
        });
        quote!(#api::#function(&[#(#rows),*]))
    };
    let rows = |variants: &[Variant], mark: &str| {
        let rows: Vec<TokenStream> = variants
            .iter()
            .map(|variant| {
                let name = format!("{mark}{}", variant.name);
                let doc = &variant.doc;
                let arguments = if variant.named {
                    record(&variant.fields, "inline")
                } else {
                    let texts = variant.fields.iter().map(text);
                    quote!(#api::arguments(&[#(#texts),*] as &[#api::String]))
                };
                quote!((#name, #arguments, #doc))
            })
            .collect();
        quote!(&[#(#rows),*] as &[(&str, #api::String, &str)])
    };
    match &shape.kind {
        Kind::Record(fields) => {
            let record = record(fields, "record");
            quote!(#api::String::from(" = ") + &#record)
        }
        Kind::Variants(variants) => {
            let rows = rows(variants, "");
            quote!(#api::constructors(#rows))
        }
        Kind::Polymorphic(variants) => {
            let rows = rows(variants, "`");
            quote!(#api::polymorphic(#rows))
        }
    }
}

/// The names of a variant's fields in a pattern, and the pattern.
fn pattern(variant: &Variant) -> (Vec<Ident>, TokenStream) {
    let names: Vec<Ident> = (0..variant.fields.len()).map(|i| format_ident!("field{i}")).collect();
    let members = variant.fields.iter().map(|field| &field.member);
    let path = &variant.path;
    let pattern = quote!(#path { #(#members: #names),* });
    (names, pattern)
}

pub fn to_ocaml(shape: &Shape) -> TokenStream {
    let (krate, itself) = (&shape.krate, shape.itself());
    let api = quote!(#krate::derive);
    let (generics, clause) = shape.implementation(&quote!(#krate::ToOCaml), None);
    let word = |field: &Field, name: TokenStream| {
        let span = at(field.span);
        quote_spanned!(span=> #krate::ToOCaml::to_ocaml(#name, n)?.raw())
    };
    let (words, make, float) = if let Some((field, _)) = shape.only() {
        let member = &field.member;
        let span = at(field.span);
        (
            quote!(#krate::ToOCaml::words(&self.#member)),
            quote_spanned!(span=> unsafe {
                ::core::result::Result::Ok(#krate::ToOCaml::to_ocaml(&self.#member, n)?.cast())
            }),
            quote! {
                #[inline]
                fn to_float(&self) -> ::core::option::Option<#krate::Flat> {
                    #krate::ToOCaml::to_float(&self.#member)
                }
            },
        )
    } else {
        let (words, make) = match &shape.kind {
            Kind::Record(fields) => {
                let members: Vec<_> = fields.iter().map(|field| &field.member).collect();
                let size = fields.len();
                let flat = shape.flat(fields);
                let values = fields.iter().map(|field| {
                    let member = &field.member;
                    word(field, quote!(&self.#member))
                });
                (
                    quote!(1 + #size #(+ #krate::ToOCaml::words(&self.#members))*),
                    quote! {
                        if #flat {
                            unsafe { #api::floats(n, [#(#api::float(&self.#members, n)?),*]) }
                        } else {
                            unsafe { #api::block(n, 0, [#(#values),*]) }
                        }
                    },
                )
            }
            Kind::Variants(variants) => {
                let (mut constant, mut tag) = (0i32, 0u8);
                let arms: Vec<(TokenStream, TokenStream)> = variants
                    .iter()
                    .map(|variant| {
                        let (names, pattern) = pattern(variant);
                        if names.is_empty() {
                            constant += 1;
                            let number = constant - 1;
                            let make = quote!(unsafe { ::core::result::Result::Ok(#api::constant(#number)) });
                            return (quote!(#pattern => 0), quote!(#pattern => #make));
                        }
                        let number = tag;
                        tag = tag.wrapping_add(1);
                        let values = variant.fields.iter().zip(&names).map(|(field, name)| word(field, quote!(#name)));
                        let size = names.len();
                        (
                            quote!(#pattern => 1 + #size #(+ #krate::ToOCaml::words(#names))*),
                            quote!(#pattern => unsafe { #api::block(n, #number, [#(#values),*]) }),
                        )
                    })
                    .collect();
                matches(arms)
            }
            Kind::Polymorphic(variants) => {
                let arms = variants
                    .iter()
                    .map(|variant| {
                        let (names, pattern) = pattern(variant);
                        let hash = casing::hash(&variant.name);
                        let values: Vec<_> =
                            variant.fields.iter().zip(&names).map(|(field, name)| word(field, quote!(#name))).collect();
                        let size = names.len();
                        let argument = match &values[..] {
                            [] => {
                                let make = quote!(unsafe { ::core::result::Result::Ok(#api::constant(#hash)) });
                                return (quote!(#pattern => 0), quote!(#pattern => #make));
                            }
                            [one] => one.clone(),
                            several => quote!(#api::block::<#krate::Any, #size>(n, 0, [#(#several),*])?.raw()),
                        };
                        (
                            quote!(#pattern => 4 + #size #(+ #krate::ToOCaml::words(#names))*),
                            quote!(#pattern => unsafe {
                                #api::block(n, 0, [#api::constant::<#krate::Any>(#hash).raw(), #argument])
                            }),
                        )
                    })
                    .collect();
                matches(arms)
            }
        };
        (words, make, quote!())
    };
    quote! {
        #[automatically_derived]
        impl #generics #krate::ToOCaml for #itself #clause {
            #[inline]
            fn words(&self) -> usize {
                #words
            }
            // SAFETY of the blocks in it: what is made has the type that `OCamlType` describes.
            fn to_ocaml<'ocaml_nursery>(
                &self,
                n: &'ocaml_nursery #krate::Nursery,
            ) -> ::core::result::Result<#krate::Value<'ocaml_nursery, Self::Type>, #krate::ConvertError> {
                #make
            }
            #float
        }
    }
}

/// Matches of `*self` for the two functions.
fn matches(arms: Vec<(TokenStream, TokenStream)>) -> (TokenStream, TokenStream) {
    if arms.is_empty() {
        return (quote!(match *self {}), quote!(match *self {}));
    }
    let (words, makes): (Vec<_>, Vec<_>) = arms.into_iter().unzip();
    (quote!(match self { #(#words,)* }), quote!(match self { #(#makes,)* }))
}

pub fn from_ocaml(shape: &Shape) -> TokenStream {
    let (krate, itself, name) = (&shape.krate, shape.itself(), &shape.name);
    let api = quote!(#krate::derive);
    let lifetime = Lifetime::new("'ocaml_value", Span::call_site());
    let bound = quote!(#krate::FromOCaml<#lifetime>);
    let (generics, clause) = shape.implementation(&bound, Some(&lifetime));
    let read = |fields: &[Field], first: usize, of: TokenStream| {
        let fields = fields.iter().enumerate().map(|(i, field)| {
            let (member, i, span) = (&field.member, i + first, at(field.span));
            quote_spanned!(span=> #member: #api::field(rt, #of, #i)?)
        });
        quote!(#(#fields),*)
    };
    let not = quote!(::core::result::Result::Err(#api::not(#name)));
    let (make, float) = if let Some((field, make)) = shape.only() {
        let span = at(field.span);
        (
            quote_spanned!(span=> {
                let field = #krate::FromOCaml::from_ocaml(rt, unsafe { v.cast() })?;
                ::core::result::Result::Ok(#make)
            }),
            quote_spanned! {span=>
                #[inline]
                fn from_float(x: f64) -> ::core::result::Result<Self, #krate::ConvertError> {
                    let field = #krate::FromOCaml::from_float(x)?;
                    ::core::result::Result::Ok(#make)
                }
            },
        )
    } else {
        let make = match &shape.kind {
            Kind::Record(fields) => {
                let size = fields.len();
                let flat = shape.flat(fields);
                let floats = fields.iter().enumerate().map(|(i, field)| {
                    let (member, span) = (&field.member, at(field.span));
                    quote_spanned!(span=> #member: #krate::FromOCaml::from_float(#api::float_field(v, #i))?)
                });
                let values = read(fields, 0, quote!(v));
                quote! {
                    if #flat {
                        if !#api::is_flat(v, #size) {
                            return #not;
                        }
                        ::core::result::Result::Ok(unsafe { Self { #(#floats),* } })
                    } else {
                        if #api::block_of(v) != ::core::option::Option::Some((0, #size)) {
                            return #not;
                        }
                        ::core::result::Result::Ok(unsafe { Self { #values } })
                    }
                }
            }
            Kind::Variants(variants) => {
                let (mut constants, mut blocks) = (Vec::new(), Vec::new());
                for variant in variants {
                    let path = &variant.path;
                    if variant.fields.is_empty() {
                        let number = constants.len() as isize;
                        constants.push(quote!(#number => ::core::result::Result::Ok(#path {})));
                    } else {
                        let (number, size) = (blocks.len() as u8, variant.fields.len());
                        let values = read(&variant.fields, 0, quote!(v));
                        blocks.push(quote!(::core::option::Option::Some((#number, #size)) =>
                            ::core::result::Result::Ok(unsafe { #path { #values } })));
                    }
                }
                quote! {
                    match #api::block_of(v) {
                        ::core::option::Option::None => match #api::number(v) {
                            #(#constants,)*
                            _ => #not,
                        },
                        #(#blocks,)*
                        _ => #not,
                    }
                }
            }
            Kind::Polymorphic(variants) => {
                let (mut constants, mut blocks) = (Vec::new(), Vec::new());
                for variant in variants {
                    let path = &variant.path;
                    let hash = casing::hash(&variant.name) as isize;
                    let size = variant.fields.len();
                    match size {
                        0 => constants.push(quote!(#hash => ::core::result::Result::Ok(#path {}))),
                        1 => {
                            let values = read(&variant.fields, 1, quote!(v));
                            blocks.push(quote!(#hash => ::core::result::Result::Ok(unsafe { #path { #values } })));
                        }
                        _ => {
                            let values = read(&variant.fields, 0, quote!(tuple));
                            blocks.push(quote!(#hash => {
                                let tuple = unsafe { #api::part(v, 1) };
                                if #api::block_of(tuple) != ::core::option::Option::Some((0, #size)) {
                                    return #not;
                                }
                                ::core::result::Result::Ok(unsafe { #path { #values } })
                            }));
                        }
                    }
                }
                quote! {
                    match #api::block_of(v) {
                        ::core::option::Option::None => match #api::number(v) {
                            #(#constants,)*
                            _ => #not,
                        },
                        ::core::option::Option::Some((0, 2)) => match #api::number(unsafe { #api::part(v, 0) }) {
                            #(#blocks,)*
                            _ => #not,
                        },
                        _ => #not,
                    }
                }
            }
        };
        (make, quote!())
    };
    quote! {
        #[automatically_derived]
        impl #generics #krate::FromOCaml<#lifetime> for #itself #clause {
            // SAFETY of the blocks in it: tags and sizes are tested, and the fields have the types that `OCamlType`
            // describes.
            fn from_ocaml(
                rt: &#lifetime #krate::Runtime,
                v: #krate::Value<#lifetime, Self::Type>,
            ) -> ::core::result::Result<Self, #krate::ConvertError> {
                #make
            }
            #float
        }
    }
}
