//! `CONFIG`: the book of the rooms that are made at run time, in `SQLite`. Routes: `POST /document`, `/client`, and `GET
//! /page/<name>`, `/preview/<id>`.
//!
//! All that one request changes is written without a wait between, with its entry of the log, and stored before the answer
//! leaves.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Function, JsString, Reflect};
use serde_json::{Value, json};
use wasm_bindgen::{JsCast, JsValue};
use worker::{DurableObject, Env, Error, Request, Response, Result, SqlStorageValue as Sql, State, durable_object};

use super::no_such_route;
use super::sql::{Database, number};
use crate::edge::calls::answer;
use crate::edge::clock::now;
use crate::edge::configuration::{CLIENT, DOCUMENT};
use crate::edge::platform::log_error;
use crate::edge::settings::{Settings, vars};
use crate::managed::{Ask, Book, Code, Deployed, Document, Outcome, Problem, Rates, Reply, Written, handle};
use crate::operator::Role;
use crate::protocol::messages::{ClientAnswer, ClientAsk, ConfigAnswer, ConfigAsk, VERSION};
use crate::protocol::schema::{Schema, SchemaStep};
use crate::protocol::wire;
use crate::time::rfc3339;

/// The longest message, in bytes: a body of 1.2 MiB and what goes with it.
const MAX_MESSAGE: usize = 1_400_000;
/// How many entries of the log are kept.
const LOGGED: u64 = 10_000;
/// How many entries of the log one answer has.
const SHOWN: u64 = 100;

const TABLES: Schema =
    Schema { name: "config", steps: &[SchemaStep { statements: &TABLES_1, older_code_goes_on: false }] };
const TABLES_1: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS book (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, by TEXT NOT NULL, \
     method TEXT NOT NULL, path TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL)",
];

/// Keeps the configuration.
#[durable_object(fetch)]
pub struct Config {
    env: Env,
    sql: Database,
    book: RefCell<Option<Rc<Book>>>,
    deployed: RefCell<Option<Rc<Deployed>>>,
    rates: RefCell<Rates>,
}

/// A panic in one request leaves the book as it was: it is replaced as a whole, once its rows are written.
impl std::panic::RefUnwindSafe for Config {}

impl DurableObject for Config {
    fn new(state: State, env: Env) -> Self {
        let sql = Database::of(&state.storage());
        Self { env, sql, book: RefCell::default(), deployed: RefCell::default(), rates: RefCell::default() }
    }

    async fn fetch(&self, mut request: Request) -> Result<Response> {
        let path = request.path();
        let bytes = request.bytes().await?;
        if bytes.len() > MAX_MESSAGE {
            return Response::error("the message is too long", 413);
        }
        if path == DOCUMENT {
            let ask: ConfigAsk = wire::decode(&bytes).map_err(crate::edge::calls::unreadable)?;
            let book = self.book()?;
            let body = if ask.known == Some(book.version) {
                String::new()
            } else {
                serde_json::to_string(&Document::of(&book))?
            };
            return answer(&ConfigAnswer { v: VERSION, body });
        }
        if path == CLIENT {
            let ask: ClientAsk = wire::decode(&bytes).map_err(crate::edge::calls::unreadable)?;
            return answer(&self.client(&ask)?);
        }
        if let Some(name) = path.strip_prefix("/page/") {
            return match self.book()?.page(name) {
                Some(html) => Response::ok(html),
                None => Response::error("there is no such page", 404),
            };
        }
        if let Some(id) = path.strip_prefix("/preview/") {
            let rows = self.sql.rows("SELECT value FROM book WHERE key = ?", vec![format!("preview/{id}").into()])?;
            let row: Option<Value> = rows.first().and_then(|row| serde_json::from_str(row.text(0)).ok());
            let html = row.as_ref().and_then(|row| row.get("html")).and_then(Value::as_str);
            return match html {
                Some(html) => Response::ok(html),
                None => Response::error("there is no such page", 404),
            };
        }
        no_such_route(&path)
    }
}

impl Config {
    /// The book, read from storage where it is not in memory.
    fn book(&self) -> Result<Rc<Book>> {
        if let Some(book) = self.book.borrow().as_ref() {
            return Ok(Rc::clone(book));
        }
        self.sql.migrate(&TABLES)?;
        let rows = self.sql.rows("SELECT key, value FROM book", vec![])?;
        let (book, unread) = Book::read(rows.iter().map(|row| (row.text(0), row.text(1))));
        for key in unread {
            log_error(&format!("the configuration's row {key} cannot be read"));
        }
        let book = Rc::new(book);
        self.book.replace(Some(Rc::clone(&book)));
        Ok(book)
    }

    /// What the deploy describes: it does not change while this object lives.
    fn deployed(&self) -> Rc<Deployed> {
        let mut known = self.deployed.borrow_mut();
        let read = || {
            let mut deployed = Deployed::new(vars(&self.env));
            deployed.crawlers_bypass = Settings::of(&self.env).crawlers_bypass_deployed;
            Rc::new(deployed)
        };
        Rc::clone(known.get_or_insert_with(read))
    }

    /// Answers a request of the API.
    fn client(&self, sent: &ClientAsk) -> Result<ClientAnswer> {
        let time = now();
        if let Some(seconds) = self.rates.borrow_mut().count(&sent.by, time) {
            let problem = Problem::new(Code::Rate, "A token may send 1,200 requests in five minutes");
            return Ok(ClientAnswer { again_seconds: seconds, ..told(Reply::refusal(429, &[problem])) });
        }
        let book = self.book()?;
        if sent.method == "GET" && sent.path.ends_with("/waiting_rooms/log") {
            return self.log(&sent.query);
        }
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| Error::RustError(error.to_string()))?;
        let ask = Ask {
            by: &sent.by,
            role: Role::of(&sent.role).unwrap_or(Role::View),
            method: &sent.method,
            path: &sent.path,
            query: &sent.query,
            body: &sent.body,
            base: &sent.base,
            now: time,
            seed,
        };
        let Outcome { reply, written, look } = handle(&book, &self.deployed(), &ask);
        if let Some(Written { book, changes, before, after, pages }) = written {
            let mistakes = pages.iter().filter_map(|page| mistake_in(page).transpose());
            let problems = mistakes
                .map(|mistake| mistake.map(|mistake| Problem::page(&mistake)))
                .collect::<Result<Vec<_>>>()?;
            if !problems.is_empty() {
                return Ok(told(Reply::refusal(400, &problems)));
            }
            // Whatever fails on the way: what is in storage counts.
            self.book.replace(None);
            for change in changes {
                match change.value {
                    Some(value) => {
                        let query = "INSERT OR REPLACE INTO book (key, value) VALUES (?, ?)";
                        self.sql.run(query, vec![change.key.into(), value.into()])?;
                    }
                    None => self.sql.run("DELETE FROM book WHERE key = ?", vec![change.key.into()])?,
                }
            }
            self.sql.run(
                "INSERT INTO log (at, by, method, path, before, after) VALUES (?, ?, ?, ?, ?, ?)",
                vec![
                    number(time),
                    sent.by.as_str().into(),
                    sent.method.as_str().into(),
                    sent.path.as_str().into(),
                    before.to_string().into(),
                    after.to_string().into(),
                ],
            )?;
            self.sql.run("DELETE FROM log WHERE id <= (SELECT max(id) FROM log) - ?", vec![number(LOGGED)])?;
            self.book.replace(Some(Rc::new(book)));
        }
        Ok(ClientAnswer { look: look.unwrap_or_default(), ..told(reply) })
    }

    /// The last entries of the log, the latest first; `before=ID` in the query: those before one.
    fn log(&self, query: &str) -> Result<ClientAnswer> {
        let before = query.split('&').find_map(|pair| pair.strip_prefix("before=")?.parse().ok());
        let rows = self.sql.rows(
            "SELECT id, at, by, method, path, before, after FROM log WHERE id < ? ORDER BY id DESC LIMIT ?",
            vec![number(before.unwrap_or(u64::MAX)), number(SHOWN)],
        )?;
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let entries = rows.iter().map(|row| {
            json!({
                "id": row.number(0), "at": rfc3339(row.number(1)), "by": row.text(2), "method": row.text(3),
                "path": row.text(4), "before": json(row.text(5)), "after": json(row.text(6)),
            })
        });
        Ok(told(Reply::of(&Value::Array(entries.collect()))))
    }
}

fn told(reply: Reply) -> ClientAnswer {
    let Reply { status, body, again_seconds } = reply;
    ClientAnswer { v: VERSION, status, body, again_seconds, look: String::new() }
}

/// What is wrong with a template; `None`: nothing. `entry.js` puts the reader of templates where this finds it.
fn mistake_in(page: &str) -> Result<Option<String>> {
    let pages = Reflect::get(&js_sys::global(), &JsString::from("anteroomPages"))?;
    let mistake: Function = Reflect::get(&pages, &JsString::from("mistake"))?
        .dyn_into()
        .map_err(|_| Error::from("the reader of templates is not there"))?;
    Ok(mistake.call1(&JsValue::UNDEFINED, &JsValue::from_str(page))?.as_string())
}
