//! An object's `SQLite`.

use worker::{Error, Result, SqlStorage, SqlStorageValue as Sql, Storage};

use crate::protocol::schema::{self, Migration, Schema};

/// The database of an object. What is written without a wait between is stored as a whole.
pub struct Database(SqlStorage);

impl Database {
    pub fn of(storage: &Storage) -> Self {
        Self(storage.sql())
    }

    /// Makes the tables of a group, or makes them of the version that this code knows.
    ///
    /// # Errors
    /// When storage fails, or newer code has changed what this code relies on.
    pub fn migrate(&self, schema: &Schema) -> Result<()> {
        self.run(schema::TABLE, vec![])?;
        let noted = self.rows(schema::READ, vec![schema.name.into()])?;
        let noted = noted.first().map(|row| (row.number(0), row.number(1)));
        let migration = schema.migration(noted).map_err(|error| Error::RustError(error.to_string()))?;
        let Some(Migration { statements, version, needs }) = migration else { return Ok(()) };
        for statement in statements {
            self.run(statement, vec![])?;
        }
        self.run(schema::WRITE, vec![schema.name.into(), number(version), number(needs)])
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
