// SPDX-License-Identifier: MIT
//! `import!`: OCaml functions as Rust functions.
use crate::casing;
use crate::function::{Function, Input, Signature};
use crate::text::{conditions, documentation_tokens, ident_text};
use crate::ty::Ty;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned, ToTokens};
use syn::parse::{Parse, ParseStream};
use syn::token::Brace;
use syn::{Attribute, Error, Ident, LitStr, Path, Result, Token, Visibility};

struct Import {
    krate: Option<Path>,
    modules: Vec<Module>,
}

struct Module {
    attributes: Vec<Attribute>,
    vis: Visibility,
    name: Ident,
    ocaml: LitStr,
    functions: Vec<Function>,
}

impl Parse for Import {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut krate = None;
        if input.peek(Token![crate]) && input.peek2(Token![=]) {
            input.parse::<Token![crate]>()?;
            input.parse::<Token![=]>()?;
            krate = Some(crate::names::crate_path(input)?);
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
                crate::names::check_module(&ocaml)?;
                input.parse::<Token![;]>()?;
                modules.push(Module { attributes, vis, name, ocaml, functions: Vec::new() });
            } else {
                let signature: Signature = input.parse()?;
                if input.peek(Brace) {
                    return Err(input.error("the body is in OCaml"));
                }
                input.parse::<Token![;]>()?;
                let Some(module) = modules.last_mut() else {
                    let message = "before the functions stands `mod name = \"Module\";`";
                    return Err(Error::new(signature.ident.span(), message));
                };
                module.functions.push(Function { attributes, vis, signature });
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
        for function in &self.functions {
            match tokens(krate, function, &ocaml.value()) {
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
                pub static __OCAML_IMPORTS: &[#krate::export::Import] = &[#(#entries),*];
            }
        }
    }
}

/// The function, and its entry in the module's list.
fn tokens(krate: &TokenStream, function: &Function, module: &str) -> Result<(TokenStream, TokenStream)> {
    let (vis, sig) = (&function.vis, &function.signature);
    sig.refuse()?;
    crate::shape::unbounded(&sig.generics)?;
    let (mut name, mut place) = (casing::field_name(&ident_text(&sig.ident)), sig.ident.span());
    let mut attributes = Vec::new();
    for attribute in &function.attributes {
        match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("name") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                    (name, place) = (text.value(), text.span());
                }
                other => return Err(Error::new_spanned(other, "the function's name in OCaml, a string")),
            },
            _ => attributes.push(attribute),
        }
    }
    if let Some(why) = crate::names::refuse_import(module, &name) {
        return Err(Error::new(place, why));
    }
    let (mut names_, mut types) = (Vec::new(), Vec::new());
    for input in &sig.inputs {
        let Input::Typed(typed) = input else { return Err(Error::new(input.span(), "OCaml functions have no `self`")) };
        let behind = typed.ty.reference().and_then(|(_, behind)| behind.last_segment());
        if behind.is_some_and(|name| name == "Runtime") {
            return Err(typed.ty.error("the runtime is added by `import!`"));
        }
        names_.push(format_ident!("a{}", names_.len()));
        types.push(&typed.ty);
    }
    let result = result_type(sig.ident.span(), sig.output.as_ref())?;
    let free = |name: &&Ident| result.mentions(name) && !types.iter().any(|ty| ty.mentions(name));
    if let Some(name) = sig.generics.type_params().map(|parameter| &parameter.ident).find(free) {
        let message = "no argument has this type, so OCaml would give the result any type, which Rust would believe";
        return Err(Error::new(name.span(), message));
    }
    let api = quote!(#krate::export);
    let ident = &sig.ident;
    let (generics, bounds) = (&sig.generics.params, &sig.generics.where_clause);
    let generics = if generics.is_empty() { quote!() } else { quote!(, #generics) };

    // In the signature, what is borrowed from the runtime lasts as long as the runtime is lent.
    let returned = result.with_lifetime("ocaml_runtime");
    let inferred: Vec<Ty> = types.iter().map(|ty| ty.stripped(None)).collect();
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
    let guard = result.last_segment().is_some_and(|name| name == "ValueGuard");
    let result_inferred = result.stripped(None);
    let convert = match guard {
        true => quote!(::core::result::Result::Ok(result)),
        false => quote_spanned!(result.span()=> #api::imported::<#result_inferred>(result)),
    };
    let mut docs = documentation_tokens(&attributes);
    if !attributes.iter().any(|attribute| attribute.path().is_ident("doc")) {
        let text = format!("`{module}.{name}` of OCaml.");
        docs.extend(quote!(#[doc = #text]));
    }
    let parameters = types.iter().zip(&names_).map(|(ty, name)| quote!(#name: #ty));
    let cell = format_ident!("__OCAML_IMPORT_{}", ident_text(ident));
    let conditions = conditions(&function.attributes);
    let path = format!("{module}.{name}");
    let code = quote! {
        #conditions
        #[allow(non_upper_case_globals)]
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
    let names: Vec<&Ident> = sig.generics.type_params().map(|parameter| &parameter.ident).collect();
    let count = names.len() as u8;
    let numbers = (0..count).map(proc_macro2::Literal::u8_unsuffixed);
    let variables = match names.is_empty() {
        true => quote!(),
        false => quote!(#krate::__type_variables! { #(#names #numbers)* }),
    };
    let described = inferred.iter().map(|ty| quote_spanned!(ty.span()=> #api::describe_type::<#ty>));
    let described_result = quote_spanned!(result.span()=> #api::describe_type::<#result_inferred>);
    let entry = quote! {#conditions {
        #variables
        const TYPES: #api::ImportTypes = (&[#(#described),*], #described_result, #count);
        unsafe { #api::Import::new(#module, #name, TYPES, &#cell) }
    }};
    Ok((code, entry))
}

/// The type in `Result<…, Exception>`.
fn result_type(place: Span, output: Option<&Ty>) -> Result<Ty> {
    let message = "an OCaml function may raise: write `-> Result<…, Exception>`";
    let Some(ty) = output else { return Err(Error::new(place, message)) };
    if ty.last_segment().is_some_and(|name| name == "Result") {
        if let [result, error] = &ty.arguments()[..] {
            if error.last_segment().is_some_and(|name| name == "Exception") {
                return Ok(result.clone());
            }
        }
    }
    Err(ty.error(message))
}
