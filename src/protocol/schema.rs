//! Tables of the objects: each group of them has a version, and numbered steps that make it of the one before.
//!
//! Old and new code use the same tables, during a deploy and after a rollback. Code that finds a newer version goes on
//! with it as long as nothing was changed that it relies on: who adds a table or a column with a default changes nothing.
//! So values are inserted by the names of their columns.

use std::fmt;

/// Makes the table that says the version of each group, and which version the code must know to use it.
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS anteroom_schema (name TEXT PRIMARY KEY, version INTEGER NOT NULL, \
                         needs INTEGER NOT NULL) WITHOUT ROWID";
/// Reads both numbers of a group.
pub const READ: &str = "SELECT version, needs FROM anteroom_schema WHERE name = ?";
/// Writes them.
pub const WRITE: &str = "INSERT OR REPLACE INTO anteroom_schema (name, version, needs) VALUES (?, ?, ?)";

/// Tables that change together.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// What the group is called.
    pub name: &'static str,
    /// The first one makes version 1, the next one version 2 of it, and so on. The first one may find tables of 0.1.0,
    /// which has noted no version.
    pub steps: &'static [SchemaStep],
}

/// Makes a version of the one before.
#[derive(Debug, Clone, Copy)]
pub struct SchemaStep {
    /// What to run, in this order.
    pub statements: &'static [&'static str],
    /// Whether code of the version before can go on with the tables as they are then.
    pub older_code_goes_on: bool,
}

/// What is to be done with the tables at an object's start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// What to run, in this order.
    pub statements: Vec<&'static str>,
    /// The version to note then.
    pub version: u64,
    /// The version that code must know then.
    pub needs: u64,
}

/// Newer code has changed what this code relies on: it must not touch the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewerTables {
    /// The group's name.
    pub name: &'static str,
    /// The version that code must know.
    pub needs: u64,
}

impl fmt::Display for NewerTables {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the tables of {} need code that knows version {} of them", self.name, self.needs)
    }
}

impl std::error::Error for NewerTables {}

impl Schema {
    /// What is to be done, by the version and the needs that are noted, if any are; `None`: nothing.
    ///
    /// # Errors
    /// When newer code has changed what this code relies on.
    pub fn migration(&self, noted: Option<(u64, u64)>) -> Result<Option<Migration>, NewerTables> {
        let (version, needs) = noted.unwrap_or((0, 0));
        let known = self.steps.len() as u64;
        if needs > known {
            return Err(NewerTables { name: self.name, needs });
        }
        if version >= known {
            return Ok(None);
        }
        let missing = self.steps.iter().skip(version as usize);
        let breaks = self.steps.iter().rposition(|step| !step.older_code_goes_on);
        Ok(Some(Migration {
            statements: missing.flat_map(|step| step.statements).copied().collect(),
            version: known,
            needs: breaks.map_or(1, |step| step as u64 + 1),
        }))
    }
}
