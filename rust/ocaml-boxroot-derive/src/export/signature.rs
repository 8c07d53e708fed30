// SPDX-License-Identifier: MIT
//! What the macros ask of a function's signature.
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Error, GenericParam, Ident, Result, Signature, Type};

/// What the first parameter says.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Pure,
    Read,
    Write,
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
pub fn runtime_kind(ty: &Type) -> Kind {
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
