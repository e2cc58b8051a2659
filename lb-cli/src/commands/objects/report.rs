//! Answers about objects as they are printed.

use lb_config::document;
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::Value;

use super::{
    calls,
    kind::{Kind, ListColumn, cell},
};
use crate::{
    client::DaemonClient,
    commands::changes::Changes,
    failure::{Exit, Failure},
    output::{Grid, Report},
};

/// An object in its file form with its etag.
#[derive(Serialize)]
pub(super) struct ObjectForm<F> {
    #[serde(skip_serializing_if = "String::is_empty")]
    pool: String,
    #[serde(flatten)]
    object: F,
    etag: String,
}

/// The daemon's answer holds values that this version does not know.
fn unreadable(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Failure, format!("the daemon's answer: {error}"))
        .hint("use the same version of spillway and spillwayd")
}

fn to_file_form<K: Kind>(answer: calls::ObjectAnswer<K>) -> Result<ObjectForm<K::File>, Failure> {
    let calls::ObjectAnswer { pool, object, etag } = answer;
    let object = K::File::try_from(object).map_err(|error| unreadable(&error))?;
    Ok(ObjectForm { pool, object, etag })
}

pub(super) struct ListReport<K: Kind> {
    generation: u64,
    objects: Vec<ObjectForm<K::File>>,
    /// The objects as JSON, for the cells of a table.
    rows: Vec<Value>,
    warnings: Vec<String>,
}

impl<K: Kind> ListReport<K> {
    pub(super) fn new(
        generation: u64,
        answers: Vec<calls::ObjectAnswer<K>>,
    ) -> Result<Self, Failure> {
        let objects: Vec<_> = answers.into_iter().map(to_file_form).collect::<Result<_, _>>()?;
        let rows = objects.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        let rows = rows.map_err(|error| unreadable(&error))?;
        Ok(Self { generation, rows, objects, warnings: Vec::new() })
    }

    /// Asks for what tables show beside the configuration. Without it they show the rest.
    pub(super) async fn complete(&mut self, daemon: &mut DaemonClient) {
        if let Err(failure) = K::complete_rows(daemon, &mut self.rows).await {
            self.warnings.push(format!("only the configuration is known: {}", failure.message));
        }
    }

    #[cfg(test)]
    pub(super) fn change_rows(&mut self, change: impl FnOnce(&mut [Value])) {
        change(&mut self.rows);
    }

    fn grid(&self, mut grid: Grid, columns: &[ListColumn]) -> String {
        for object in &self.rows {
            grid.row(columns.iter().map(|(_, cell)| cell(object)));
        }
        grid.lines()
    }
}

fn headings(columns: &[ListColumn]) -> impl Iterator<Item = &'static str> {
    columns.iter().map(|(heading, _)| *heading)
}

impl<K: Kind> Serialize for ListReport<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("generation", &self.generation)?;
        map.serialize_entry(K::KEYS.1, &self.objects)?;
        map.end()
    }
}

impl<K: Kind> Report for ListReport<K> {
    fn table(&self) -> String {
        self.grid(Grid::new(headings(K::COLUMNS)), K::COLUMNS)
    }

    fn wide(&self) -> String {
        let etag: ListColumn = ("ETAG", |object| cell(&object["etag"]));
        let columns: Vec<_> =
            K::COLUMNS.iter().chain(K::WIDE_COLUMNS).copied().chain([etag]).collect();
        self.grid(Grid::new(headings(&columns)).wide(), &columns)
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

#[derive(Serialize)]
pub(super) struct ObjectReport<F> {
    #[serde(flatten)]
    object: ObjectForm<F>,
    #[serde(skip)]
    file: String,
}

impl<F: Serialize> ObjectReport<F> {
    pub(super) fn new<K: Kind<File = F>>(answer: calls::ObjectAnswer<K>) -> Result<Self, Failure> {
        let object = to_file_form(answer)?;
        let in_pool = match &*object.pool {
            "" => String::new(),
            pool => format!(" of pool {pool}"),
        };
        let head = format!("# {}{in_pool}, etag {}\n", K::NAME, object.etag);
        let text = document::object_to_toml(&object.object).map_err(|error| unreadable(&error))?;
        Ok(Self { object, file: head + &text })
    }
}

impl<F: Serialize> Report for ObjectReport<F> {
    fn table(&self) -> String {
        self.file.clone()
    }
}

/// The changes and the object after them.
pub(super) struct ChangeReport<K: Kind> {
    pub(super) changes: Changes,
    object: ObjectForm<K::File>,
}

impl<K: Kind> ChangeReport<K> {
    pub(super) fn new((answer, result): calls::Changed<K>, dry_run: bool) -> Result<Self, Failure> {
        Ok(Self { changes: Changes::new(result, dry_run), object: to_file_form(answer)? })
    }
}

impl<K: Kind> Serialize for ChangeReport<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a, M> {
            #[serde(flatten)]
            changes: &'a Changes,
            #[serde(flatten)]
            object: M,
        }
        let object = std::collections::BTreeMap::from([(K::KEYS.0, &self.object)]);
        Flat { changes: &self.changes, object }.serialize(serializer)
    }
}

impl<K: Kind> Report for ChangeReport<K> {
    fn table(&self) -> String {
        self.changes.table()
    }

    fn wide(&self) -> String {
        self.changes.wide()
    }

    fn warnings(&self) -> Vec<String> {
        self.changes.warnings()
    }
}
