//! An object's `SQLite`.

use worker::{Result, SqlStorage, SqlStorageValue as Sql, Storage};

/// The database of an object. What is written without a wait between is stored as a whole.
pub struct Database(SqlStorage);

impl Database {
    pub fn of(storage: &Storage) -> Self {
        Self(storage.sql())
    }

    pub fn run(&self, query: &str, values: Vec<Sql>) -> Result<()> {
        self.0.exec(query, values).map(|_| ())
    }

    pub fn rows(&self, query: &str, values: Vec<Sql>) -> Result<Vec<Row>> {
        self.0.exec(query, values)?.raw().map(|row| row.map(Row)).collect()
    }
}

/// A row; what is not there or of another type reads as nothing.
#[derive(Default)]
pub struct Row(Vec<Sql>);

impl Row {
    pub fn text(&self, column: usize) -> &str {
        if let Some(Sql::String(text)) = self.0.get(column) { text } else { "" }
    }

    pub fn maybe(&self, column: usize) -> Option<u64> {
        if let Some(Sql::Integer(number)) = self.0.get(column) { u64::try_from(*number).ok() } else { None }
    }

    pub fn number(&self, column: usize) -> u64 {
        self.maybe(column).unwrap_or(0)
    }

    pub fn bytes(&self, column: usize) -> &[u8] {
        if let Some(Sql::Blob(bytes)) = self.0.get(column) { bytes } else { &[] }
    }
}

/// The largest whole number that JavaScript's numbers hold.
const LARGEST: u64 = (1 << 53) - 1;

/// A number for `SQLite`: times and counts are far below its largest one.
pub fn number(number: u64) -> Sql {
    Sql::Integer(number.min(LARGEST) as i64)
}
