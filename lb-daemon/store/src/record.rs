//! The content of the database, protected against damage and against other formats.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::SystemTime,
};

use prost::DecodeError;
use redb::{Database, ReadableDatabase, ReadableTable, Table, TableError};

use super::{
    Generation, Revision, Series, TABLE, begin_write,
    earlier::{self, Earlier},
    error::Cause,
    history::{self, History, HistoryEntry, Kept},
    pieces::{Contents, PieceList},
    rows::{
        self, CHECKSUM, CURRENT, Description, FORMAT, HASH_KEY, Key, Rows, fixed, generation_key,
        is_summed, piece_key, row_hash,
    },
};
use lb_config::StoredMessage;
use lb_model::{Configuration, ids::Ids};
use lb_pieces::Digest;

pub(super) const CURRENT_FORMAT: u32 = 3;

pub(super) struct Record {
    pub(super) hash_key: [u64; 2],
    pub(super) stored: Option<Result<Generation, Box<Unusable>>>,
    pub(super) disk: Disk,
}

/// What is certainly on disk: a commit writes what differs from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    history: History,
    ids: Arc<Ids>,
    /// The current generation, if it is known.
    generation: Option<Arc<Generation>>,
    /// Pieces that are missing or damaged, with the cause.
    broken: BTreeMap<Digest, String>,
    /// Rows that nothing refers to.
    strays: Vec<String>,
    /// Whether all rows must be written anew, and the pieces of the generations for that.
    replace: Option<Contents>,
}

impl Disk {
    /// A file whose content is to be replaced.
    pub(super) fn replaced() -> Self {
        Self { replace: Some(Contents::new()), ..Self::default() }
    }

    /// The generations, by number, after those from before the fleet.
    pub(super) fn history(&self) -> Arc<[HistoryEntry]> {
        self.history.entries(&self.broken).into()
    }

    pub(super) fn know(&mut self, generation: &Arc<Generation>) {
        self.generation = Some(Arc::clone(generation));
    }
}

/// Reads a store; `None` if nothing was ever written.
pub(super) fn read(database: &Database) -> Result<Option<Record>, Cause> {
    let transaction = database.begin_read().map_err(Cause::read)?;
    let table = match transaction.open_table(TABLE) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => {
            return match transaction.list_tables().map_err(Cause::read)?.next() {
                None => Ok(None),
                Some(_) => Err(Cause::Foreign("it is the database of another program".into())),
            };
        }
        Err(error) => return Err(Cause::read(error)),
    };
    let mut rows: Rows<Vec<u8>> = Rows::new();
    let (mut history, mut strays) = (History::default(), Vec::new());
    let mut pieces: BTreeMap<Digest, bool> = BTreeMap::new();
    for row in table.iter().map_err(Cause::read)? {
        let (key, value) = row.map_err(Cause::read)?;
        match Key::parse(key.value()) {
            Key::Generation(number) => {
                let description = Description::read(key.value(), number, value.value());
                history.generations.push(Kept { number, description });
            }
            Key::BeforeFleet(number) => {
                let description = Description::read(key.value(), number, value.value());
                history.before_fleet.push(Kept { number, description });
            }
            Key::Piece(digest) => {
                pieces.insert(digest, Digest::new(value.value()) == digest);
            }
            Key::Unknown => strays.push(key.value().to_owned()),
            Key::Summed => drop(rows.insert(key.value().into(), value.value().to_vec())),
        }
    }
    let value =
        |name: &str| rows.get(name).ok_or_else(|| Cause::Damaged(format!("{name} is missing")));
    let damaged = |what: &str| Cause::Damaged(what.into());
    let format = fixed(value(FORMAT)?).map(u32::from_le_bytes);
    let expected = match format {
        Some(CURRENT_FORMAT) => rows::sum(&rows),
        Some(earlier @ (earlier::ONE_ROW | earlier::ROW_EACH)) => {
            earlier::checksum(earlier, &rows)?
        }
        Some(newer) if newer > CURRENT_FORMAT => return Err(Cause::Newer(newer)),
        _ => return Err(damaged("its format number is unknown")),
    };
    if fixed(value(CHECKSUM)?).map(u64::from_le_bytes) != Some(expected) {
        return Err(damaged("its checksum does not match"));
    }
    let hash_key = fixed(value(HASH_KEY)?).map(u128::from_le_bytes);
    let hash_key = hash_key.ok_or_else(|| damaged("its hash_key has the wrong length"))?;
    let hash_key = [hash_key as u64, (hash_key >> 64) as u64];
    if format != Some(CURRENT_FORMAT) {
        let Some(Earlier { description, ids, contents }) = earlier::read(&rows)? else {
            return Ok(Some(Record { hash_key, stored: None, disk: Disk::replaced() }));
        };
        let bytes: Vec<u8> = description
            .pieces
            .digests()
            .filter_map(|it| contents.get(it))
            .flatten()
            .copied()
            .collect();
        let stored = generation(&description, ids.clone(), &bytes);
        let kept = Kept { number: description.number, description: Ok(description) };
        let history = History { generations: vec![kept], ..History::default() };
        let disk = Disk { history, ids: ids.into(), replace: Some(contents), ..Disk::default() };
        return Ok(Some(Record { hash_key, stored: Some(stored), disk }));
    }
    let current = fixed(value(CURRENT)?).map(u64::from_le_bytes);
    let current = current.ok_or_else(|| damaged("its current has the wrong length"))?;
    // Only generations up to the current one were ever acknowledged.
    let more = history.generations.extract_if(.., |kept| kept.number > current);
    strays.extend(more.map(|kept| generation_key(kept.number)));
    for kept in [&mut history.generations, &mut history.before_fleet] {
        kept.sort_by_key(|kept| kept.number);
    }
    let used = history.pieces();
    let unused = pieces.keys().filter(|digest| !used.contains(digest));
    strays.extend(unused.map(piece_key));
    let broken = used.iter().filter_map(|digest| match pieces.get(digest) {
        Some(true) => None,
        Some(false) => Some((*digest, format!("piece {digest} is damaged"))),
        None => Some((*digest, format!("piece {digest} is missing"))),
    });
    let broken = broken.collect();
    let ids = rows::ids(&rows)?;
    let stored = match current {
        0 => None,
        number => {
            let damaged = |cause: &str| Cause::Damaged(format!("generation {number}: {cause}"));
            let kept = history.generations.last().filter(|kept| kept.number == number);
            let kept = kept.ok_or_else(|| damaged("its description is missing"))?;
            let description = kept.description.as_ref().map_err(|cause| damaged(cause))?;
            let bytes = join_pieces(&table, &description.pieces)?;
            let bytes = bytes.map_err(|cause| damaged(&cause))?;
            Some(generation(description, ids.clone(), &bytes))
        }
    };
    let disk = Disk { history, ids: ids.into(), generation: None, broken, strays, replace: None };
    Ok(Some(Record { hash_key, stored, disk }))
}

/// The bytes of a configuration.
///
/// # Errors
/// The file cannot be read; inside: a piece is missing or damaged.
pub(super) fn join_pieces(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
    pieces: &PieceList,
) -> Result<Result<Vec<u8>, String>, Cause> {
    let mut bytes = Vec::new();
    for digest in pieces.digests() {
        let piece = table.get(&*piece_key(digest)).map_err(Cause::read)?;
        match piece {
            None => return Ok(Err(format!("piece {digest} is missing"))),
            Some(piece) if Digest::new(piece.value()) != *digest => {
                return Ok(Err(format!("piece {digest} is damaged")));
            }
            Some(piece) => bytes.extend_from_slice(piece.value()),
        }
    }
    Ok(Ok(bytes))
}

/// The message of a configuration, as if its pools had never been in groups.
pub(super) fn read_message(bytes: &[u8]) -> Result<StoredMessage, DecodeError> {
    let mut message = StoredMessage::read(bytes)?;
    // Pieces have the pools by groups.
    message.0.pools.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(message)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unreadable(error: DecodeError) -> String {
    format!("it cannot be read: {error}")
}

fn validate(message: &StoredMessage) -> Result<Configuration, String> {
    message.configuration().map_err(|invalid| format!("this version refuses it: {invalid}"))
}

/// The configuration in stored bytes.
///
/// # Errors
/// Why this version cannot use it.
pub(super) fn decode(bytes: &[u8]) -> Result<Configuration, String> {
    validate(&read_message(bytes).map_err(unreadable)?)
}

/// Decodes the current generation, if this version can use it.
fn generation(
    description: &Description,
    ids: Ids,
    bytes: &[u8],
) -> Result<Generation, Box<Unusable>> {
    let Description { number, applied_at, schema, series, .. } = *description;
    let message = read_message(bytes).map_err(unreadable);
    let used = match (&message, history::newer(schema)) {
        (Err(cause), _) => Err(cause.clone()),
        (Ok(_), Some(newer)) => Err(newer),
        (Ok(message), None) => validate(message),
    };
    match used {
        Ok(configuration) => Ok(Generation {
            number,
            applied_at,
            configuration: Arc::new(configuration),
            ids: Arc::new(ids),
            schema,
            who: description.who.clone(),
            why: description.why.clone(),
            changes: description.changes,
            series,
        }),
        Err(cause) => {
            let message = message.ok();
            Err(Box::new(Unusable { number, applied_at, ids, schema, series, cause, message }))
        }
    }
}

/// Initializes a store with a random hash key.
pub(super) fn create(database: &Database) -> Result<Record, Cause> {
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|error| Cause::Inaccessible(error.into()))?;
    let key = u128::from_le_bytes(key);
    let hash_key = [key as u64, (key >> 64) as u64];
    let rows = Rows::from([(CURRENT.to_owned(), Some(0u64.to_le_bytes().to_vec()))]);
    replace(database, &hash_key, rows)?;
    Ok(Record { hash_key, stored: None, disk: Disk::default() })
}

/// Writes a generation in one transaction, and removes those that are too old or of another series, with the pieces that only
/// they had. Returns what is on disk then.
pub(super) fn write(
    database: &Database,
    hash_key: &[u64; 2],
    disk: Disk,
    generation: &Arc<Generation>,
) -> Result<Disk, Cause> {
    let Disk { history, ids, generation: before, mut broken, strays, replace: anew } = disk;
    let current = history.generations.last().and_then(|kept| kept.description.as_ref().ok());
    let before = before.as_ref().zip(current);
    let before = before.filter(|(before, current)| before.number == current.number);
    let before = before.map(|(before, current)| (&*before.configuration, &current.pieces));
    let mut contents = Contents::new();
    let pieces = PieceList::new(before, &generation.configuration, &mut contents);
    let is_anew = anew.is_some();
    let on_disk = match &anew {
        None => history.pieces(),
        Some(_) => BTreeSet::new(),
    };
    let number = generation.number;
    let description = Description {
        number,
        applied_at: generation.applied_at,
        schema: generation.schema,
        who: generation.who.clone(),
        why: generation.why.clone(),
        changes: generation.changes,
        series: generation.series,
        pieces,
    };
    let stored: BTreeSet<_> = history.keys().collect();
    let before_fleet = history.before_fleet.len();
    let mut history = history.retain(number, generation.series);
    history.generations.push(Kept { number, description: Ok(description) });
    let kept: BTreeSet<_> = history.keys().collect();
    let gone = stored.difference(&kept).cloned();
    let mut rows: Rows<_> = strays.into_iter().chain(gone).map(|key| (key, None)).collect();
    // Those that stay have their rows. Where a fleet is joined or left, a key is that of another generation than before.
    let are_others = is_anew || history.before_fleet.len() != before_fleet;
    let is_written =
        |key: &str| are_others || key == generation_key(number) || !stored.contains(key);
    let written = history.rows(is_written)?.into_iter();
    rows.extend(written.map(|(key, row)| (key, Some(row))));
    contents.extend(anew.unwrap_or_default());
    let used = history.pieces();
    rows.extend(on_disk.difference(&used).map(|digest| (piece_key(digest), None)));
    for (digest, content) in contents.into_iter().filter(|(digest, _)| used.contains(digest)) {
        if broken.remove(&digest).is_some() || !on_disk.contains(&digest) {
            rows.insert(piece_key(&digest), Some(content));
        }
    }
    broken.retain(|digest, _| used.contains(digest));
    rows.insert(CURRENT.into(), Some(number.to_le_bytes().to_vec()));
    let stored_ids = if is_anew { &Ids::default() } else { &*ids };
    rows.extend(rows::changed_ids(stored_ids, &generation.ids)?);
    match is_anew {
        true => replace(database, hash_key, rows)?,
        false => change(database, rows)?,
    }
    Ok(Disk {
        history,
        ids: Arc::clone(&generation.ids),
        generation: Some(Arc::clone(generation)),
        broken,
        strays: Vec::new(),
        replace: None,
    })
}

/// Replaces all rows.
fn replace(
    database: &Database,
    hash_key: &[u64; 2],
    mut rows: Rows<Option<Vec<u8>>>,
) -> Result<(), Cause> {
    let hash_key = u128::from(hash_key[0]) | u128::from(hash_key[1]) << 64;
    rows.insert(FORMAT.into(), Some(CURRENT_FORMAT.to_le_bytes().to_vec()));
    rows.insert(HASH_KEY.into(), Some(hash_key.to_le_bytes().to_vec()));
    let transaction = begin_write(database)?;
    transaction.delete_table(TABLE).map_err(Cause::write)?;
    {
        let mut table = transaction.open_table(TABLE).map_err(Cause::write)?;
        let sum = put(&mut table, 0, rows)?;
        table.insert(CHECKSUM, &sum.to_le_bytes()[..]).map_err(Cause::write)?;
    }
    transaction.commit().map_err(Cause::write)
}

/// Changes some rows.
fn change(database: &Database, rows: Rows<Option<Vec<u8>>>) -> Result<(), Cause> {
    let transaction = begin_write(database)?;
    {
        let mut table = transaction.open_table(TABLE).map_err(Cause::write)?;
        let sum = table.get(CHECKSUM).map_err(Cause::write)?;
        let sum = sum.and_then(|sum| fixed(sum.value())).map(u64::from_le_bytes);
        let sum = sum.ok_or_else(|| Cause::Damaged(format!("{CHECKSUM} is missing")))?;
        let sum = put(&mut table, sum, rows)?;
        table.insert(CHECKSUM, &sum.to_le_bytes()[..]).map_err(Cause::write)?;
    }
    transaction.commit().map_err(Cause::write)
}

/// Writes and removes rows. Returns the checksum, which was `sum`.
fn put(
    table: &mut Table<'_, &'static str, &'static [u8]>,
    mut sum: u64,
    rows: Rows<Option<Vec<u8>>>,
) -> Result<u64, Cause> {
    for (key, value) in rows {
        let former = match &value {
            Some(value) => table.insert(&*key, &value[..]),
            None => table.remove(&*key),
        };
        let former = former.map_err(Cause::write)?;
        if is_summed(&key) {
            sum = sum.wrapping_sub(former.map_or(0, |former| row_hash(&key, former.value())));
            sum = sum.wrapping_add(value.map_or(0, |value| row_hash(&key, &value)));
        }
    }
    Ok(sum)
}

/// A stored generation that this version cannot use. The packet path may still be at it.
#[derive(Clone, Debug, PartialEq)]
pub struct Unusable {
    pub number: u64,
    pub applied_at: SystemTime,
    /// The numbers of its objects in the maps.
    pub ids: Ids,
    /// Schema revision that it needs.
    pub schema: Revision,
    pub series: Series,
    /// Why it cannot be used.
    pub cause: String,
    /// The fields that this version knows; `None` if it cannot be read at all.
    pub message: Option<StoredMessage>,
}

impl Unusable {
    pub(super) fn from_generation(generation: &Generation, cause: String) -> Self {
        let Generation { number, applied_at, configuration, ids, schema, series, .. } = generation;
        let message = Some(StoredMessage::from(&**configuration));
        let (number, applied_at, ids) = (*number, *applied_at, (**ids).clone());
        Self { number, applied_at, ids, schema: *schema, series: *series, cause, message }
    }

    /// Whether `message` contains everything that is stored.
    pub fn is_whole(&self) -> bool {
        self.message.is_some() && self.schema <= Revision::CURRENT
    }
}
