//! Which object of a configuration a table of a file is.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The object of the table that begins at a byte, as `pool "web": backend "10.0.0.1"`.
pub(super) fn at(text: &str, at: usize) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let lists = [
        ("region", "region"),
        ("health_check", "health check"),
        ("pool", "pool"),
        ("service", "service"),
    ];
    lists.into_iter().find_map(|(list, kind)| {
        items(document.get_ref(), list).find_map(|(item, table)| {
            let named = named(kind, table, "name");
            let inner = [("backend", "address"), ("group", "region")];
            let mut inner = inner.into_iter().flat_map(|(list, id)| {
                items(table, list).map(move |(item, table)| (list, id, item, table))
            });
            match inner.find(|(_, _, item, _)| item.span().start == at) {
                Some((kind, id, _, table)) => {
                    Some(format!("{named}: {}", self::named(kind, table, id)))
                }
                None => (item.span().start == at).then_some(named),
            }
        })
    })
}

/// The tables of a list.
fn items<'t, 'i>(
    table: &'t DeTable<'i>,
    list: &str,
) -> impl Iterator<Item = (&'t Spanned<DeValue<'i>>, &'t DeTable<'i>)> + use<'t, 'i> {
    let value =
        table.iter().find(|(key, _)| key.get_ref() == list).map(|(_, value)| value.get_ref());
    let items = match value {
        Some(DeValue::Array(items)) => items.iter().collect(),
        _ => Vec::new(),
    };
    items.into_iter().filter_map(|item| match item.get_ref() {
        DeValue::Table(table) => Some((item, table)),
        _ => None,
    })
}

/// A kind with the name that its table has.
fn named(kind: &str, table: &DeTable<'_>, id: &str) -> String {
    match table.iter().find(|(key, _)| key.get_ref() == id).map(|(_, value)| value.get_ref()) {
        Some(DeValue::String(name)) => format!("{kind} {name:?}"),
        _ => kind.to_owned(),
    }
}
