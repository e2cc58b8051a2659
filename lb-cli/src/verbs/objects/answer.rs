//! Objects as they are printed.

use lb_daemon::document;
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::Value;

use super::{
    calls,
    kind::{Column, Kind, cell},
};
use crate::{
    exit::Exit,
    failure::Failure,
    output::{Grid, Report},
    verbs::change::Changes,
};

/// An object in its file form, with what goes with it.
#[derive(Serialize)]
pub(super) struct Shown<F> {
    #[serde(skip_serializing_if = "String::is_empty")]
    pool: String,
    #[serde(flatten)]
    object: F,
    etag: String,
}

/// What the daemon's answer holds that this version has no word for.
fn unreadable(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Failure, format!("the daemon's answer: {error}"))
        .hint("spillway and spillwayd should be of one version")
}

/// An object as JSON and YAML have it.
fn shown<K: Kind>(answer: calls::Answer<K>) -> Result<Shown<K::File>, Failure> {
    let calls::Answer { pool, object, etag, .. } = answer;
    let object = K::File::try_from(object).map_err(|error| unreadable(&error))?;
    Ok(Shown { pool, object, etag })
}

/// Answer of `list`.
pub(super) struct Listed<K: Kind> {
    generation: u64,
    objects: Vec<Shown<K::File>>,
    /// The same for the cells of a table.
    rows: Vec<Value>,
}

impl<K: Kind> Listed<K> {
    pub(super) fn new(generation: u64, answers: Vec<calls::Answer<K>>) -> Result<Self, Failure> {
        let objects: Vec<_> = answers.into_iter().map(shown).collect::<Result<_, _>>()?;
        let rows = objects.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        Ok(Self { generation, rows: rows.map_err(|error| unreadable(&error))?, objects })
    }

    fn grid(&self, mut grid: Grid, columns: &[Column]) -> String {
        for object in &self.rows {
            grid.row(columns.iter().map(|(_, cell)| cell(object)));
        }
        grid.lines()
    }
}

/// Headings of columns.
fn headings(columns: &[Column]) -> impl Iterator<Item = &'static str> {
    columns.iter().map(|(heading, _)| *heading)
}

impl<K: Kind> Serialize for Listed<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("generation", &self.generation)?;
        map.serialize_entry(K::KEYS.1, &self.objects)?;
        map.end()
    }
}

impl<K: Kind> Report for Listed<K> {
    fn table(&self) -> String {
        self.grid(Grid::new(headings(K::COLUMNS)), K::COLUMNS)
    }

    fn wide(&self) -> String {
        let etag: Column = ("ETAG", |object| cell(&object["etag"]));
        let columns: Vec<_> = K::COLUMNS.iter().chain(K::MORE).copied().chain([etag]).collect();
        self.grid(Grid::new(headings(&columns)).wide(), &columns)
    }
}

/// Answer of `get`.
#[derive(Serialize)]
pub(super) struct Got<F> {
    #[serde(flatten)]
    object: Shown<F>,
    generation: u64,
    #[serde(skip)]
    file: String,
}

impl<F: Serialize> Got<F> {
    pub(super) fn new<K: Kind<File = F>>(answer: calls::Answer<K>) -> Result<Self, Failure> {
        let generation = answer.applied.generation;
        let object = shown(answer)?;
        let of = match &*object.pool {
            "" => String::new(),
            pool => format!(" of pool {pool}"),
        };
        let head = format!("# {}{of}, generation {generation}, etag {}\n", K::WORD, object.etag);
        let text = document::object_to_toml(&object.object).map_err(|error| unreadable(&error))?;
        Ok(Self { object, generation, file: head + &text })
    }
}

impl<F: Serialize> Report for Got<F> {
    fn table(&self) -> String {
        self.file.clone()
    }
}

/// Answer of what changes an object: the changes, and the object as it is then.
pub(super) struct Done<K: Kind> {
    changes: Changes,
    object: Shown<K::File>,
}

impl<K: Kind> Done<K> {
    pub(super) fn new(mut answer: calls::Answer<K>, dry_run: bool) -> Result<Self, Failure> {
        let changes = Changes::new(std::mem::take(&mut answer.applied), dry_run);
        Ok(Self { changes, object: shown(answer)? })
    }
}

impl<K: Kind> Serialize for Done<K> {
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

impl<K: Kind> Report for Done<K> {
    fn table(&self) -> String {
        self.changes.table()
    }

    fn wide(&self) -> String {
        self.changes.wide()
    }

    fn warnings(&self) -> &[String] {
        self.changes.warnings()
    }
}
