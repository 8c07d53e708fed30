// SPDX-License-Identifier: MIT
//! `#[export]`: a wrapper for each function, in C's calling convention, and its description for the OCaml text.
//!
//! The user's tokens stay as they are; types and names of the user's never stand inside `unsafe`, so that crates which
//! forbid unsafe code can use the macro. What is wrong with a type is said where the type stands.
use crate::{casing, names};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned, ToTokens};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Error, FnArg, GenericParam, Ident, ItemFn, LitStr, Path, Result, ReturnType, Signature, Token, Type};

/// `#[export(name = "…", symbol = "…", noalloc, crate = path)]`
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    symbol: Option<LitStr>,
    noalloc: bool,
    krate: Option<Path>,
}

impl Parse for Options {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut options = Options::default();
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                options.krate = Some(input.call(Path::parse_mod_style)?);
            } else {
                let key: Ident = input.parse()?;
                if key == "noalloc" {
                    options.noalloc = true;
                } else if key == "name" || key == "symbol" {
                    input.parse::<Token![=]>()?;
                    let text: LitStr = input.parse()?;
                    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || (c == '\'' && key == "name");
                    if text.value().is_empty() || !text.value().chars().all(legal) {
                        return Err(Error::new(text.span(), "not a name"));
                    }
                    *(if key == "name" { &mut options.name } else { &mut options.symbol }) = Some(text);
                } else {
                    let message = "an option of `export` is `name = …`, `symbol = …`, `noalloc` or `crate = …`";
                    return Err(Error::new(key.span(), message));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

/// What the first parameter says.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Pure,
    Read,
    Write,
}

/// How the wrapper works.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Without a runtime.
    Pure,
    /// With read access, if only for the conversion of arguments.
    Read,
    /// With write access.
    Write,
}

struct Argument {
    /// Without the names of lifetimes.
    ty: Type,
    /// A number or truth value, by its name.
    plain: bool,
    /// `&str` and `&[T]` where the runtime may collect: the owned type that is lent.
    owned: Option<TokenStream>,
    /// `&T`, a Rust value that OCaml owns.
    payload: Option<Type>,
}

pub fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let options = match syn::parse2::<Options>(arguments) {
        Ok(options) => options,
        Err(error) => return [item, error.to_compile_error()].into_iter().collect(),
    };
    let code = if let Ok(function) = syn::parse2::<ItemFn>(item.clone()) {
        let krate = options.krate.clone().map_or_else(|| quote!(::ocaml_boxroot), |path| path.into_token_stream());
        Export::new(&function.sig, &function.attrs, options, None, krate).map(|export| {
            let (vis, tokens) = (&function.vis, export.tokens());
            let name = format_ident!("__ocaml_export_{}", ident_text(&function.sig.ident));
            let krate = &export.krate;
            quote! {
                #[doc(hidden)]
                #[allow(non_upper_case_globals, dead_code, clippy::all, clippy::pedantic)]
                #vis const #name: #krate::export::Export = #tokens;
            }
        })
    } else if let Ok(block) = syn::parse2::<syn::ItemImpl>(item.clone()) {
        return methods(options, block).unwrap_or_else(|error| [item, error.to_compile_error()].into_iter().collect());
    } else {
        Err(Error::new(Span::call_site(), "`export` stands in front of a function, or of an `impl` without a trait"))
    };
    let code = code.unwrap_or_else(Error::into_compile_error);
    quote!(#item #code)
}

/// All functions of an `impl`.
fn methods(options: Options, mut block: syn::ItemImpl) -> Result<TokenStream> {
    if let Some((_, path, _)) = &block.trait_ {
        return Err(Error::new(path.span(), "methods of traits are not exported: write a function"));
    }
    if let Some(parameter) = block.generics.params.first() {
        return Err(Error::new(parameter.span(), "methods of generic types are not exported: write a function"));
    }
    if options.name.is_some() || options.symbol.is_some() || options.noalloc {
        return Err(Error::new(block.self_ty.span(), "this option stands in front of a method"));
    }
    let krate = options.krate.map_or_else(|| quote!(::ocaml_boxroot), |path| path.into_token_stream());
    let Type::Path(path) = &*block.self_ty else {
        return Err(Error::new(block.self_ty.span(), "methods of this type are not exported: write a function"));
    };
    let self_ty = block.self_ty.clone();
    let type_name = path.path.segments.last().map(|s| ident_text(&s.ident)).unwrap_or_default();
    let mut consts = TokenStream::new();
    for item in &mut block.items {
        let syn::ImplItem::Fn(method) = item else { continue };
        let mut inner = Options::default();
        let mut error = None;
        method.attrs.retain(|attribute| {
            if !attribute.path().is_ident("export") {
                return true;
            }
            if !matches!(attribute.meta, syn::Meta::Path(_)) {
                match attribute.parse_args::<Options>() {
                    Ok(options) => inner = options,
                    Err(e) => error = Some(e),
                }
            }
            false
        });
        if let Some(error) = error {
            return Err(error);
        }
        let owner = Some((&*self_ty, &*type_name));
        let export = Export::new(&method.sig, &method.attrs, inner, owner, krate.clone())?;
        let (vis, tokens) = (&method.vis, export.tokens());
        let name = format_ident!("__ocaml_export_{}", ident_text(&method.sig.ident));
        consts.extend(quote! {
            #[doc(hidden)]
            #[allow(non_upper_case_globals, dead_code, clippy::all, clippy::pedantic)]
            #vis const #name: #krate::export::Export = #tokens;
        });
    }
    Ok(quote! {
        #block
        impl #self_ty { #consts }
    })
}

struct Export {
    krate: TokenStream,
    function: TokenStream,
    /// `type A = Any;`: what functions that are generic for OCaml are compiled for.
    aliases: TokenStream,
    /// `type A = Var<0>;`: what they are described with.
    variables: TokenStream,
    turbofish: TokenStream,
    kind: Kind,
    /// The first argument is `&self`.
    receiver: bool,
    noalloc: bool,
    arguments: Vec<Argument>,
    result: Type,
    result_plain: bool,
    name: String,
    symbol: String,
    doc: String,
}

impl Export {
    fn new(
        sig: &Signature,
        attributes: &[syn::Attribute],
        options: Options,
        owner: Option<(&Type, &str)>,
        krate: TokenStream,
    ) -> Result<Export> {
        refuse(sig)?;
        let ident = &sig.ident;
        let mut parameters = Vec::new();
        for input in &sig.inputs {
            match input {
                FnArg::Typed(typed) => parameters.push((*typed.ty).clone()),
                FnArg::Receiver(receiver) => {
                    let Some((ty, _)) = owner else {
                        let message = "put `#[export]` in front of the `impl`, not of the method";
                        return Err(Error::new(receiver.span(), message));
                    };
                    if receiver.reference.is_none() || receiver.mutability.is_some() {
                        let message = "OCaml shares its values: take `&self`";
                        return Err(Error::new(receiver.span(), message));
                    }
                    parameters.push(syn::parse_quote_spanned!(receiver.span()=> &#ty));
                }
            }
        }
        let receiver = matches!(sig.inputs.first(), Some(FnArg::Receiver(_)));
        let at = usize::from(receiver);
        let kind = parameters.get(at).map_or(Kind::Pure, runtime_kind);
        if kind != Kind::Pure {
            parameters.remove(at);
        }
        if let Some(late) = parameters.iter().find(|ty| runtime_kind(ty) != Kind::Pure) {
            return Err(Error::new(late.span(), "the runtime is the first parameter"));
        }
        if options.noalloc && kind == Kind::Write {
            let message =
                "a function with `noalloc` does not take `&mut Runtime`, as it can neither allocate nor raise";
            return Err(Error::new(sig.inputs.first().map_or_else(|| ident.span(), Spanned::span), message));
        }
        let mut strip = Strip { owner: owner.map(|(ty, _)| ty.clone()) };
        let mut arguments = Vec::new();
        let api = quote!(#krate::export);
        for mut ty in parameters {
            strip.visit_type_mut(&mut ty);
            arguments.push(Argument::new(ty, kind, &api)?);
        }
        let mut result = match &sig.output {
            ReturnType::Default => syn::parse_quote!(()),
            ReturnType::Type(_, ty) => (**ty).clone(),
        };
        strip.visit_type_mut(&mut result);
        let (mut aliases, mut variables, mut parameters) = (TokenStream::new(), TokenStream::new(), Vec::new());
        for parameter in sig.generics.type_params() {
            let (name, n) = (&parameter.ident, parameters.len() as u8);
            aliases.extend(quote!(#[allow(dead_code)] type #name = #krate::Any;));
            variables.extend(quote!(#[allow(dead_code)] type #name = #krate::Var<#n>;));
            parameters.push(name.clone());
        }
        let turbofish = if parameters.is_empty() { quote!() } else { quote!(::<#(#parameters),*>) };
        let plain_name = ident_text(ident);
        let prefix = names::crate_prefix();
        let symbol = options.symbol.map(|text| text.value()).unwrap_or_else(|| match owner {
            Some((_, ty)) => format!("{prefix}_{}_{plain_name}", ty.to_lowercase()),
            None => format!("{prefix}_{plain_name}"),
        });
        Ok(Export {
            krate,
            function: match owner {
                Some((ty, _)) => quote!(<#ty>::#ident),
                // A path: variables of the wrapper have names that the function may have as well.
                None => quote!(self::#ident),
            },
            aliases,
            variables,
            turbofish,
            kind,
            receiver,
            noalloc: options.noalloc,
            result_plain: is_plain(&result),
            arguments,
            result,
            name: options.name.map_or_else(|| casing::field_name(&plain_name), |text| text.value()),
            symbol,
            doc: documentation(attributes),
        })
    }

    fn tokens(&self) -> TokenStream {
        let Export { krate, aliases, name, symbol, doc, noalloc, .. } = self;
        let api = quote!(#krate::export);
        let describe = self.describe(&api);
        let (wrapper, bytecode) = self.wrappers(&api);
        let body = self.body(&api);
        quote! {{
            #aliases
            #body
            #wrapper
            #describe
            unsafe { #api::Export::new(#name, (#symbol, #bytecode), #noalloc, #doc, describe) }
        }}
    }

    fn way(&self) -> Way {
        let value = |a: &Argument| a.plain || last_segment(&a.ty).is_some_and(|name| name == "Value");
        match self.kind {
            Kind::Pure if self.arguments.iter().all(value) => Way::Pure,
            Kind::Write => Way::Write,
            _ => Way::Read,
        }
    }

    /// `fn describe`: the types, for the OCaml text.
    fn describe(&self, api: &TokenStream) -> TokenStream {
        let (krate, variables) = (&self.krate, &self.variables);
        let arguments = self.arguments.iter().map(|argument| {
            if let Some(payload) = &argument.payload {
                return quote_spanned!(argument.ty.span()=> #api::describe_payload::<#payload>(to));
            }
            let ty = match &argument.owned {
                Some(owned) => owned.clone(),
                None => argument.ty.to_token_stream(),
            };
            let function = format_ident!(
                "describe_{}",
                match self.kind {
                    _ if argument.plain => "plain",
                    Kind::Write => "write",
                    _ => "read",
                }
            );
            quote_spanned!(argument.ty.span()=> #api::#function::<#ty>(to))
        });
        let result = &self.result;
        let result = match self.result_plain {
            true => quote_spanned!(result.span()=> #api::describe_plain_result::<#result>(to)),
            false => {
                let marker = quote!(::core::marker::PhantomData);
                quote_spanned!(result.span()=> #api::ResultType::<#result>(#marker).split().describe(to))
            }
        };
        quote! {
            fn describe(to: &mut #krate::Definitions) -> #api::Signature {
                #[allow(unused_imports)]
                use #api::{DescribeResult as _, SplitType as _};
                #variables
                let mut arguments = #api::Vec::<#api::String>::new();
                #(arguments.push(#arguments);)*
                #api::Signature { arguments, result: #result }
            }
        }
    }

    /// The types and names of the native function's parameters, as Rust sees them: a word, or what a plain type says.
    fn natives(&self, api: &TokenStream) -> (Vec<Ident>, Vec<TokenStream>) {
        let names = (0..self.arguments.len()).map(|i| format_ident!("a{i}")).collect();
        let types = self.arguments.iter().map(|argument| match argument.plain {
            true => {
                let ty = &argument.ty;
                quote_spanned!(ty.span()=> <#ty as #api::Plain>::Native)
            }
            false => quote!(isize),
        });
        (names, types.collect())
    }

    fn result_native(&self, api: &TokenStream) -> TokenStream {
        let ty = &self.result;
        match (self.noalloc, self.result_plain) {
            (_, true) => quote!(<#ty as #api::PlainResult>::Native),
            _ => quote!(isize),
        }
    }

    /// `fn body`: converts the arguments, calls the function, and its result on the way to OCaml.
    fn body(&self, api: &TokenStream) -> TokenStream {
        let (krate, function, turbofish) = (&self.krate, &self.function, &self.turbofish);
        let values: Vec<&Argument> = self.arguments.iter().filter(|a| !a.plain).collect();
        let count = values.len();
        let plain_names: Vec<Ident> =
            self.arguments.iter().enumerate().filter(|(_, a)| a.plain).map(|(i, _)| format_ident!("a{i}")).collect();
        let plain_types: Vec<TokenStream> = self
            .arguments
            .iter()
            .filter(|a| a.plain)
            .map(|a| {
                let ty = &a.ty;
                quote_spanned!(ty.span()=> <#ty as #api::Plain>::Native)
            })
            .collect();
        let native = self.result_native(api);
        let way = self.way();
        let (mut lets, mut passed, mut words, mut slots) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut next = 0usize;
        for (i, argument) in self.arguments.iter().enumerate() {
            let (x, a, ty) = (format_ident!("x{i}"), format_ident!("a{i}"), &argument.ty);
            let span = ty.span();
            if argument.plain {
                let convert = match self.noalloc {
                    true => quote_spanned!(span=> #api::total_plain::<#ty>(#a)),
                    false => quote_spanned!(span=> #api::plain_arg::<#ty>(#a, #i)?),
                };
                lets.push(quote!(let #x = #convert;));
                passed.push(quote!(#x));
                continue;
            }
            let (place, word) = (next, format_ident!("w{next}"));
            next += 1;
            words.push(word.clone());
            let source = match &argument.owned {
                Some(owned) => owned.clone(),
                None => quote!(#ty),
            };
            let convert = match way {
                _ if argument.payload.is_some() => {
                    let payload = &argument.payload;
                    quote_spanned!(span=> #api::payload_arg::<#payload>(rt, &places[#place], #i)?)
                }
                Way::Pure => quote_spanned!(span=> #api::pure_arg(lock, #word)),
                _ if self.noalloc => quote_spanned!(span=> #api::total_value(rt, &places[#place])),
                Way::Read => quote_spanned!(span=> #api::read_arg::<#source>(rt, &places[#place], #i)?),
                Way::Write => quote_spanned!(span=> #api::write_arg::<#source>(rt, &places[#place], #i)?),
            };
            let annotation = match self.noalloc || way == Way::Pure {
                true => quote!(: #ty),
                false => quote!(),
            };
            lets.push(quote!(let #x #annotation = #convert;));
            passed.push(match argument.owned {
                Some(_) => quote!(&*#x),
                None => quote!(#x),
            });
            if self.kind == Kind::Write {
                slots.push(match argument.payload {
                    Some(_) => quote!(true),
                    None => quote_spanned!(span=> <#source as #api::WriteArg<'_>>::SLOT),
                });
            }
        }
        let rt = match self.kind {
            Kind::Pure => quote!(),
            _ => quote!(rt,),
        };
        let result_span = self.result.span();
        // A receiver comes before the runtime.
        let call = match self.receiver {
            true => {
                let (first, others) = (&passed[0], &passed[1..]);
                quote!(#function #turbofish(#first, #rt #(#others),*))
            }
            false => quote!(#function #turbofish(#rt #(#passed),*)),
        };
        let ty = &self.result;
        let bind_words = match count {
            0 => quote!(let _ = words;),
            _ => quote!(let [#(#words),*] = words.each();),
        };
        if self.noalloc {
            let asserts = self.arguments.iter().map(|a| {
                let ty = &a.ty;
                quote_spanned!(ty.span()=> total::<#ty>();)
            });
            let total = quote_spanned!(result_span=> #api::TotalResult::total(result));
            let work = match way {
                Way::Pure => quote!(#bind_words let lock = &*lock; #(#lets)* let result: #ty = #call; #total),
                _ => quote! {
                    #api::read_total(lock, words, |rt, places| {
                        let _ = places;
                        #(#lets)*
                        let result: #ty = #call;
                        #total
                    })
                },
            };
            return quote! {
                #[inline(always)]
                fn body(
                    lock: &mut #api::Lock, words: #api::Words<#count>, #(#plain_names: #plain_types),*
                ) -> #native {
                    #[allow(dead_code)]
                    fn total<T: #api::Total>() {}
                    #(#asserts)*
                    #work
                }
            };
        }
        let hold = match self.result_plain {
            true => quote_spanned!(result_span=> #api::plain_result(result)?),
            false => quote_spanned!(result_span=> #api::Returned(#api::Returned(result).split()?).pending()),
        };
        let finish = match (self.result_plain, way) {
            (true, _) => quote!(::core::result::Result::Ok(held)),
            (false, Way::Pure) => quote_spanned!(result_span=> #api::finish_pure(lock, held)),
            (false, _) => quote_spanned!(result_span=> #api::finish(rt, held)),
        };
        let work = match way {
            Way::Pure => quote! {
                #bind_words
                let held = {
                    let lock = &*lock;
                    let _ = lock;
                    #(#lets)*
                    let result: #ty = #call;
                    #hold
                };
                #finish
            },
            _ => {
                let (enter, arguments) = match way {
                    Way::Write => (quote!(write), quote!(lock, words, false #(|| #slots)*,)),
                    _ => (quote!(read), quote!(lock, words,)),
                };
                let lend = match self.kind {
                    Kind::Write => quote!(let rt: &mut #krate::Runtime = &mut *rt;),
                    _ => quote!(let rt: &#krate::Runtime = &*rt;),
                };
                quote! {
                    #api::#enter(#arguments |rt, places| {
                        let _ = places;
                        let held = {
                            #lend
                            let _ = &rt;
                            #(#lets)*
                            let result: #ty = #call;
                            #hold
                        };
                        #finish
                    })
                }
            }
        };
        quote! {
            #[inline(always)]
            fn body(
                lock: &mut #api::Lock, words: #api::Words<#count>, #(#plain_names: #plain_types),*
            ) -> ::core::result::Result<#native, #api::Raise> {
                #[allow(unused_imports)]
                use #api::{Convert as _, Split as _};
                #work
            }
        }
    }

    /// The C functions, and the name of the one for bytecode if it is another one.
    fn wrappers(&self, api: &TokenStream) -> (TokenStream, TokenStream) {
        let (names, types) = self.natives(api);
        let native = self.result_native(api);
        let symbol = &self.symbol;
        let passed: Vec<&Ident> =
            names.iter().zip(&self.arguments).filter(|(_, a)| a.plain).map(|(name, _)| name).collect();
        let words: Vec<&Ident> =
            names.iter().zip(&self.arguments).filter(|(_, a)| !a.plain).map(|(name, _)| name).collect();
        let arguments = quote!(lock, words #(, #passed)*);
        let make_words = quote!(let words = unsafe { #api::Words::new([#(#words),*]) };);
        let work = if self.noalloc {
            let name = &self.name;
            // The closure is safe code of ours; `body` holds what is the user's.
            quote! {
                #make_words
                unsafe { #api::noalloc(#name, move |lock| body(#arguments)) }
            }
        } else {
            quote! {
                #make_words
                match unsafe { #api::run(move |lock| body(#arguments)) } {
                    Ok(result) => result,
                    Err(raised) => unsafe { raised.raise() },
                }
            }
        };
        let plain_arguments = self.arguments.iter().filter(|a| a.plain);
        let differs = plain_arguments.clone().any(|a| is_unboxed(&a.ty))
            || (self.result_plain && is_unboxed_result(&self.result));
        let separate = differs || self.arguments.len() > 5;
        let bytecode_symbol = format!("{symbol}_bytecode");
        let bytecode = separate.then(|| {
            let boxed = match self.result_plain {
                true => {
                    let ty = &self.result;
                    quote!(unsafe { <#ty as #api::PlainResult>::boxed(native(#(#names),*)) })
                }
                false => quote!(unsafe { native(#(#names),*) }),
            };
            let unboxed = names.iter().zip(&self.arguments).filter(|(_, a)| a.plain).map(|(name, a)| {
                let ty = &a.ty;
                quote!(let #name = unsafe { <#ty as #api::Plain>::unbox(#name) };)
            });
            if self.arguments.len() > 5 {
                quote! {
                    #[export_name = #bytecode_symbol]
                    unsafe extern "C" fn bytecode(arguments: *const isize, _count: i32) -> isize {
                        let [#(#names),*] = unsafe { #api::Words::of_bytecode(arguments) };
                        #(#unboxed)*
                        #boxed
                    }
                }
            } else if names.is_empty() {
                quote! {
                    #[export_name = #bytecode_symbol]
                    unsafe extern "C" fn bytecode(_unit: isize) -> isize { #boxed }
                }
            } else {
                quote! {
                    #[export_name = #bytecode_symbol]
                    unsafe extern "C" fn bytecode(#(#names: isize),*) -> isize {
                        #(#unboxed)*
                        #boxed
                    }
                }
            }
        });
        let some = match separate {
            true => quote!(::core::option::Option::Some(#bytecode_symbol)),
            false => quote!(::core::option::Option::None),
        };
        let code = quote! {
            #[export_name = #symbol]
            unsafe extern "C" fn native(#(#names: #types),*) -> #native {
                #work
            }
            #bytecode
        };
        (code, some)
    }
}

/// What no wrapper can be made for.
pub fn refuse(sig: &Signature) -> Result<()> {
    let no = |tokens: &dyn ToTokens, message: &str| Err(Error::new_spanned(tokens, message));
    if let Some(token) = &sig.asyncness {
        return no(token, "OCaml cannot call an `async` function");
    }
    if let Some(token) = &sig.unsafety {
        return no(token, "OCaml cannot keep to the conditions of an `unsafe` function");
    }
    if let Some(token) = &sig.abi {
        return no(token, "the calling convention is added by `export`");
    }
    if let Some(token) = &sig.variadic {
        return no(token, "OCaml passes a fixed number of arguments");
    }
    for parameter in &sig.generics.params {
        if let GenericParam::Const(parameter) = parameter {
            return no(parameter, "a number cannot be a parameter of an OCaml function's type");
        }
    }
    struct ImplTrait(Option<Error>);
    impl VisitMut for ImplTrait {
        fn visit_type_impl_trait_mut(&mut self, ty: &mut syn::TypeImplTrait) {
            self.0.get_or_insert(Error::new_spanned(ty, "OCaml needs to know this type: write it out"));
        }
    }
    let mut found = ImplTrait(None);
    found.visit_signature_mut(&mut sig.clone());
    found.0.map_or(Ok(()), Err)
}

/// `&Runtime`, `&mut Runtime`, or neither.
fn runtime_kind(ty: &Type) -> Kind {
    let Type::Reference(reference) = ty else { return Kind::Pure };
    match last_segment(&reference.elem) {
        Some(name) if name == "Runtime" => match reference.mutability {
            Some(_) => Kind::Write,
            None => Kind::Read,
        },
        _ => Kind::Pure,
    }
}

pub fn last_segment(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

/// Lifetimes with a name are left to inference, and `Self` is written out.
pub struct Strip {
    pub owner: Option<Type>,
}

impl VisitMut for Strip {
    fn visit_lifetime_mut(&mut self, lifetime: &mut syn::Lifetime) {
        if lifetime.ident != "static" {
            lifetime.ident = Ident::new("_", lifetime.ident.span());
        }
    }
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let (Type::Path(path), Some(owner)) = (&*ty, &self.owner) {
            if path.path.is_ident("Self") {
                *ty = owner.clone();
                return;
            }
        }
        visit_mut::visit_type_mut(self, ty);
    }
}

impl Argument {
    fn new(ty: Type, kind: Kind, api: &TokenStream) -> Result<Argument> {
        if kind == Kind::Write && last_segment(&ty).is_some_and(|name| name == "Value") {
            let message =
                "this function takes `&mut Runtime`, so it may run the collector, which moves or frees values \
                           that are not rooted: write `ValueRef<'_, T>` or `Root<T>` in place of `Value<'_, T>`";
            return Err(Error::new_spanned(ty, message));
        }
        let plain = is_plain(&ty);
        let owned = match &ty {
            Type::Reference(reference) if kind == Kind::Write && reference.mutability.is_none() => {
                match &*reference.elem {
                    elem if last_segment(elem).is_some_and(|name| name == "str") => {
                        Some(quote_spanned!(ty.span()=> #api::String))
                    }
                    Type::Slice(slice) => {
                        let elem = &slice.elem;
                        Some(quote_spanned!(ty.span()=> #api::Vec<#elem>))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let payload = match &ty {
            Type::Reference(reference) => match &*reference.elem {
                Type::Path(path) if !last_segment(&reference.elem).is_some_and(|n| n == "str" || n == "ValueCell") => {
                    if let Some(token) = &reference.mutability {
                        return Err(Error::new_spanned(token, "OCaml shares its values: take `&T`"));
                    }
                    Some(Type::Path(path.clone()))
                }
                _ => None,
            },
            _ => None,
        };
        Ok(Argument { ty, plain, owned, payload })
    }
}

const INTEGERS: &[&str] = &["i8", "i16", "i32", "u8", "u16", "u32", "i64", "u64", "isize", "usize"];

fn primitive(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.get_ident().map(Ident::to_string),
        Type::Tuple(tuple) if tuple.elems.is_empty() => Some("()".into()),
        _ => None,
    }
}

/// A type that passes as a word or a float. If the name means something else here, the wrapper does not compile.
fn is_plain(ty: &Type) -> bool {
    primitive(ty).is_some_and(|name| name == "f64" || name == "bool" || name == "()" || INTEGERS.contains(&&*name))
}

fn is_unboxed(ty: &Type) -> bool {
    primitive(ty).is_some_and(|name| name == "f64" || INTEGERS.contains(&&*name))
}

/// Integers of up to 32 bits fit in an OCaml `int`; others are checked, and leave as values.
fn is_unboxed_result(ty: &Type) -> bool {
    primitive(ty).is_some_and(|name| name == "f64" || INTEGERS[..6].contains(&&*name))
}

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

/// The documentation, for the item that is made.
pub fn documentation_tokens(attributes: &[&syn::Attribute]) -> TokenStream {
    attributes.iter().map(|attribute| quote!(#attribute)).collect()
}
