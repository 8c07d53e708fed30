// SPDX-License-Identifier: MIT
//! `import!`: OCaml functions as Rust functions.
use crate::casing;
use crate::export::{last_segment, refuse, Strip};
use crate::text::{documentation_tokens, ident_text};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned, ToTokens};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, LitStr, Path, PathArguments, Result, ReturnType, Token,
    TraitItemFn, Type, Visibility,
};

struct Import {
    krate: Option<Path>,
    modules: Vec<Module>,
}

struct Module {
    attributes: Vec<Attribute>,
    vis: Visibility,
    name: Ident,
    ocaml: LitStr,
    functions: Vec<(Visibility, TraitItemFn)>,
}

impl Parse for Import {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut krate = None;
        if input.peek(Token![crate]) && input.peek2(Token![=]) {
            input.parse::<Token![crate]>()?;
            input.parse::<Token![=]>()?;
            krate = Some(input.call(Path::parse_mod_style)?);
            input.parse::<Token![;]>()?;
        }
        let mut modules: Vec<Module> = Vec::new();
        while !input.is_empty() {
            let attributes = input.call(Attribute::parse_outer)?;
            let vis: Visibility = input.parse()?;
            if input.peek(Token![mod]) {
                input.parse::<Token![mod]>()?;
                let name = input.parse()?;
                input.parse::<Token![=]>()?;
                let ocaml: LitStr = input.parse()?;
                let good = |part: &str| part.starts_with(|c: char| c.is_ascii_uppercase());
                if !ocaml.value().split('.').all(good) {
                    return Err(Error::new(ocaml.span(), "the name of an OCaml module, such as \"Parser\""));
                }
                input.parse::<Token![;]>()?;
                modules.push(Module { attributes, vis, name, ocaml, functions: Vec::new() });
            } else {
                let mut function: TraitItemFn = input.parse()?;
                function.attrs = attributes;
                let Some(module) = modules.last_mut() else {
                    return Err(Error::new(function.span(), "before the functions stands `mod name = \"Module\";`"));
                };
                module.functions.push((vis, function));
            }
        }
        Ok(Import { krate, modules })
    }
}

pub fn expand(input: TokenStream) -> TokenStream {
    let import = match syn::parse2::<Import>(input) {
        Ok(import) => import,
        Err(error) => return error.to_compile_error(),
    };
    let krate = import.krate.map_or_else(|| quote!(::ocaml_boxroot), |path| path.into_token_stream());
    import.modules.iter().map(|module| module.tokens(&krate)).collect()
}

impl Module {
    fn tokens(&self, krate: &TokenStream) -> TokenStream {
        let Module { attributes, vis, name, ocaml, .. } = self;
        let (mut functions, mut entries) = (TokenStream::new(), Vec::new());
        for (vis, function) in &self.functions {
            match tokens(krate, vis, function, &ocaml.value()) {
                Ok((function, entry)) => {
                    functions.extend(function);
                    entries.push(entry);
                }
                Err(error) => functions.extend(error.to_compile_error()),
            }
        }
        let text = format!("The module `{}` of OCaml.", ocaml.value());
        let doc = match attributes.iter().any(|attribute| attribute.path().is_ident("doc")) {
            true => quote!(),
            false => quote!(#[doc = #text]),
        };
        quote! {
            #(#attributes)*
            #doc
            #vis mod #name {
                #[allow(unused_imports)]
                use super::*;
                #functions
                #[doc(hidden)]
                #[allow(dead_code)]
                pub const __OCAML_IMPORTS: &[#krate::export::Import] = &[#(#entries),*];
            }
        }
    }
}

/// The function, and its entry in the module's list.
fn tokens(
    krate: &TokenStream,
    vis: &Visibility,
    function: &TraitItemFn,
    module: &str,
) -> Result<(TokenStream, TokenStream)> {
    let sig = &function.sig;
    refuse(sig)?;
    if let Some(body) = &function.default {
        return Err(Error::new(body.span(), "the body is in OCaml"));
    }
    let mut name = casing::field_name(&ident_text(&sig.ident));
    let mut attributes = Vec::new();
    for attribute in &function.attrs {
        match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("name") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => name = text.value(),
                other => return Err(Error::new(other.span(), "the function's name in OCaml, a string")),
            },
            _ => attributes.push(attribute),
        }
    }
    let (mut names_, mut types) = (Vec::new(), Vec::new());
    for input in &sig.inputs {
        let FnArg::Typed(typed) = input else { return Err(Error::new(input.span(), "OCaml functions have no `self`")) };
        if matches!(&*typed.ty, Type::Reference(r) if last_segment(&r.elem).is_some_and(|name| name == "Runtime")) {
            return Err(Error::new(typed.ty.span(), "the runtime is added by `import!`"));
        }
        names_.push(format_ident!("a{}", names_.len()));
        types.push((*typed.ty).clone());
    }
    let result = result_type(&sig.output)?;
    let api = quote!(#krate::export);
    let ident = &sig.ident;
    let (generics, bounds) = (&sig.generics.params, &sig.generics.where_clause);
    let generics = if generics.is_empty() { quote!() } else { quote!(, #generics) };

    // In the signature, what is borrowed from the runtime lasts as long as the runtime is lent.
    let mut returned = result.clone();
    Borrowed.visit_type_mut(&mut returned);
    let mut plain = Strip { owner: None };
    let inferred: Vec<Type> = types
        .iter()
        .map(|ty| {
            let mut ty = ty.clone();
            plain.visit_type_mut(&mut ty);
            ty
        })
        .collect();
    let (argument_types, passed) = match types.is_empty() {
        true => (quote!((#krate::Unit,)), quote!(((),))),
        false => (
            {
                let each = inferred.iter().map(|ty| quote_spanned!(ty.span()=> <#ty as #krate::Typed>::Type));
                quote!((#(#each,)*))
            },
            quote!((#(#names_,)*)),
        ),
    };
    let fresh = last_segment(&result).is_some_and(|name| name == "Fresh");
    let mut result_inferred = result.clone();
    plain.visit_type_mut(&mut result_inferred);
    let convert = match fresh {
        true => quote!(::core::result::Result::Ok(result)),
        false => quote_spanned!(result.span()=> #api::imported::<#result_inferred>(result)),
    };
    let mut docs = documentation_tokens(&attributes);
    if !attributes.iter().any(|attribute| attribute.path().is_ident("doc")) {
        let text = format!("`{module}.{name}` of OCaml.");
        docs.extend(quote!(#[doc = #text]));
    }
    let parameters = sig.inputs.iter().zip(&names_).map(|(input, name)| {
        let FnArg::Typed(typed) = input else { unreachable!("tested above") };
        let ty = &typed.ty;
        quote!(#name: #ty)
    });
    let cell = format_ident!("__OCAML_IMPORT_{}", ident_text(ident).to_uppercase());
    let path = format!("{module}.{name}");
    let code = quote! {
        static #cell: #api::ImportCell = #api::ImportCell::new(#path);
        #docs
        #vis fn #ident<'ocaml_runtime #generics>(
            rt: &'ocaml_runtime mut #krate::Runtime, #(#parameters),*
        ) -> ::core::result::Result<#returned, #krate::Exception> #bounds {
            let function: &#krate::ValueCell<
                #krate::Fun<#argument_types, <#result_inferred as #krate::Typed>::Type>
            > = unsafe { #cell.function(rt) }?;
            let result = function.call(rt, #passed)?;
            #convert
        }
    };
    let mut aliases = TokenStream::new();
    let mut count = 0u8;
    for parameter in sig.generics.type_params() {
        let name = &parameter.ident;
        aliases.extend(quote!(#[allow(dead_code)] type #name = #krate::Var<#count>;));
        count += 1;
    }
    let described = inferred.iter().map(|ty| quote_spanned!(ty.span()=> #api::describe_type::<#ty>(to)));
    let described_result = quote_spanned!(result.span()=> #api::describe_type::<#result_inferred>(to));
    let entry = quote! {{
        fn describe(to: &mut #krate::Definitions) -> #api::String {
            #aliases
            let mut types = #api::Vec::<#api::String>::new();
            #(types.push(#described);)*
            types.push(#described_result);
            #api::import_type(types, #count)
        }
        #api::Import::new(#module, #name, describe, &#cell)
    }};
    Ok((code, entry))
}

/// The type in `Result<…, Exception>`.
fn result_type(output: &ReturnType) -> Result<Type> {
    let message = "an OCaml function may raise: write `-> Result<…, Exception>`";
    let ReturnType::Type(_, ty) = output else { return Err(Error::new(output.span(), message)) };
    if let Type::Path(path) = &**ty {
        let last = path.path.segments.last();
        if let Some(PathArguments::AngleBracketed(list)) =
            last.filter(|last| last.ident == "Result").map(|last| &last.arguments)
        {
            let types: Vec<&Type> = list
                .args
                .iter()
                .filter_map(|a| match a {
                    GenericArgument::Type(ty) => Some(ty),
                    _ => None,
                })
                .collect();
            if let [result, error] = types[..] {
                if last_segment(error).is_some_and(|name| name == "Exception") {
                    return Ok(result.clone());
                }
            }
        }
    }
    Err(Error::new(ty.span(), message))
}

/// `'_` becomes the lifetime of the runtime.
struct Borrowed;
impl VisitMut for Borrowed {
    fn visit_lifetime_mut(&mut self, lifetime: &mut syn::Lifetime) {
        if lifetime.ident == "_" {
            lifetime.ident = Ident::new("ocaml_runtime", lifetime.ident.span());
        }
    }
}
