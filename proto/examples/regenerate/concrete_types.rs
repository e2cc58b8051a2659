//! Takes the type parameters out of generated clients and servers: a server has a `dyn` of its trait inside, a client a
//! channel. So they are compiled once, in this crate, and not again in each that calls or serves.

use std::{error::Error, fs, path::Path};

use syn::{
    Expr, ExprCall, ExprPath, File, FnArg, GenericArgument, GenericParam, Generics, ImplItem,
    ImplItemFn, Item, ItemImpl, ItemMod, PathArguments, PathSegment, ReturnType, Signature, Type,
    TypeParamBound, TypePath, parse_quote,
    visit_mut::{self, VisitMut},
};

/// Rewrites a file of generated code.
pub(crate) fn rewrite(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut file: File = syn::parse_file(&fs::read_to_string(path)?)?;
    for item in &mut file.items {
        let Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        if name.ends_with("_client") {
            ConcreteType {
                replacement: parse_quote!(tonic::transport::Channel),
                server_trait: None,
            }
            .rewrite(module);
            module.content.iter_mut().flat_map(|(_, items)| items).for_each(box_calls);
        } else if name.ends_with("_server") {
            let methods =
                module.content.iter().flat_map(|(_, items)| items).find_map(|item| match item {
                    Item::Trait(methods) => Some(methods.ident.clone()),
                    _ => None,
                });
            let methods = methods.ok_or("a server without a trait")?;
            ConcreteType {
                replacement: parse_quote!(dyn #methods),
                server_trait: Some(parse_quote!(#methods)),
            }
            .rewrite(module);
        }
    }
    fs::write(path, prettyplease::unparse(&file))?;
    Ok(())
}

/// Puts a type in place of the parameter `T`.
struct ConcreteType {
    replacement: Type,
    /// Of a server: what it serves by.
    server_trait: Option<syn::Path>,
}

impl ConcreteType {
    fn rewrite(&mut self, module: &mut ItemMod) {
        for item in module.content.iter_mut().flat_map(|(_, items)| items) {
            match item {
                Item::Impl(block) => block.items.retain(|item| {
                    // An interceptor makes another type of client. A layer around the channel does the same.
                    !matches!(item, ImplItem::Fn(it) if it.sig.ident == "with_interceptor")
                }),
                // No trait of a server is `Debug`.
                Item::Struct(it) if self.server_trait.is_some() => {
                    it.attrs.retain(|attribute| !attribute.path().is_ident("derive"));
                }
                Item::Trait(methods) => methods.items.iter_mut().for_each(|item| {
                    if let syn::TraitItem::Fn(method) = item {
                        // Each is to be implemented: none has a default.
                        method.semi_token = method.default.take().map(|_| parse_quote!(;));
                    }
                }),
                _ => {}
            }
        }
        self.visit_item_mod_mut(module);
    }

    fn is_parameter(argument: &GenericArgument) -> bool {
        matches!(argument, GenericArgument::Type(Type::Path(it)) if is_named(it, &["T"]))
    }
}

fn is_named(path: &TypePath, names: &[&str]) -> bool {
    path.qself.is_none() && names.iter().any(|name| path.path.is_ident(name))
}

impl VisitMut for ConcreteType {
    fn visit_generics_mut(&mut self, generics: &mut Generics) {
        let is_ours = |it: &GenericParam| matches!(it, GenericParam::Type(it) if it.ident == "T" || it.ident == "B");
        if generics.params.iter().any(is_ours) {
            generics.params = std::mem::take(&mut generics.params)
                .into_iter()
                .filter(|it| !is_ours(it))
                .collect();
            generics.where_clause = None;
        }
        visit_mut::visit_generics_mut(self, generics);
    }

    fn visit_path_segment_mut(&mut self, segment: &mut PathSegment) {
        let name = segment.ident.to_string();
        let is_generic = ["Client", "Server", "Svc"].iter().any(|end| name.ends_with(end));
        if let PathArguments::AngleBracketed(arguments) = &segment.arguments
            && is_generic
            && arguments.args.iter().all(Self::is_parameter)
        {
            segment.arguments = PathArguments::None;
        }
        visit_mut::visit_path_segment_mut(self, segment);
    }

    fn visit_type_mut(&mut self, kind: &mut Type) {
        match kind {
            Type::Path(path) if is_named(path, &["T"]) => *kind = self.replacement.clone(),
            Type::Path(path) if is_named(path, &["B"]) => *kind = parse_quote!(tonic::body::Body),
            _ => visit_mut::visit_type_mut(self, kind),
        }
    }

    fn visit_expr_call_mut(&mut self, call: &mut ExprCall) {
        // A reference to an `Arc` would become one to a `dyn` of the `Arc` itself.
        if let (Expr::Path(ExprPath { qself: Some(_), .. }), Some(inner)) =
            (&*call.func, call.args.first_mut())
        {
            *inner = parse_quote!(&*inner);
        }
        visit_mut::visit_expr_call_mut(self, call);
    }

    fn visit_signature_mut(&mut self, signature: &mut Signature) {
        // A server is made of any type with the trait.
        if let Some(name) = &self.server_trait {
            for argument in &mut signature.inputs {
                if let FnArg::Typed(it) = argument
                    && matches!(&*it.ty, Type::Path(path) if is_named(path, &["T"]))
                {
                    it.ty = parse_quote!(impl #name);
                }
            }
        }
        visit_mut::visit_signature_mut(self, signature);
    }
}

/// A call of a client takes anything that a request can be made of, and calls another one that takes the request and
/// returns a boxed future: this is what is compiled once.
fn box_calls(item: &mut Item) {
    let Item::Impl(ItemImpl { items, .. }) = item else { return };
    let calls: Vec<_> = items
        .iter_mut()
        .filter_map(|item| match item {
            ImplItem::Fn(call) if call.sig.asyncness.is_some() => Some(box_call(call)),
            _ => None,
        })
        .collect();
    items.extend(calls.into_iter().map(ImplItem::Fn));
}

/// Returns the other one.
fn box_call(call: &mut ImplItemFn) -> ImplItemFn {
    let name = call.sig.ident.clone();
    let boxed = syn::Ident::new(&format!("send_{name}"), name.span());
    let signature = &call.sig;
    let (Some(FnArg::Typed(request)), ReturnType::Type(_, result)) =
        (signature.inputs.last(), &signature.output)
    else {
        unreachable!("a call has a request, and returns")
    };
    let (message, result) = (arguments(&request.ty), arguments(result));
    let mut block = call.block.clone();
    OwnChannel.visit_block_mut(&mut block);
    let sent = parse_quote! {
        fn #boxed(&self, request: tonic::Request #message) -> BoxFuture #result {
            let mut inner = self.inner.clone();
            Box::pin(async move #block)
        }
    };
    call.sig.asyncness = None;
    call.sig.output = parse_quote!(-> BoxFuture #result);
    call.block = parse_quote!({ self.#boxed(request.into_request()) });
    sent
}

/// `<M>` of `impl IntoRequest<M>`, and `<R, E>` of `Result<R, E>`.
fn arguments(of: &Type) -> PathArguments {
    let path = match of {
        Type::Path(it) => Some(&it.path),
        Type::ImplTrait(it) => it.bounds.first().and_then(|bound| match bound {
            TypeParamBound::Trait(it) => Some(&it.path),
            _ => None,
        }),
        _ => None,
    };
    path.and_then(|path| path.segments.last()).map(|it| it.arguments.clone()).unwrap_or_default()
}

/// The body of a call, on a channel of its own and with a request.
struct OwnChannel;

impl VisitMut for OwnChannel {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        visit_mut::visit_expr_mut(self, expression);
        match expression {
            Expr::Field(field) if matches!(&*field.base, Expr::Path(it) if it.path.is_ident("self")) =>
            {
                *expression = parse_quote!(inner);
            }
            // It is a request already.
            Expr::MethodCall(call) if call.method == "into_request" => {
                *expression = (*call.receiver).clone();
            }
            // Its only error: what was inferred by the bounds of the parameter.
            Expr::Macro(it) if it.mac.path.is_ident("format") => {
                *expression = parse_quote!(format!("Service was not ready: {e}"));
            }
            _ => {}
        }
    }
}
