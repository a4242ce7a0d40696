// The object `CONFIG`: it keeps the rooms that are made at run time, and is the only one that changes them. All of it is in
// SQLite, a row for each room, event and list of rules; what a request changes is stored as a whole, with its entry of the
// log, before the answer leaves.
import { checked, ordered } from "../../../build/rust/index.js";
import { mistakeIn } from "../made-pages.js";
import { envelope, handle, objectsOf, readBook, refusal } from "./api.js";
import { CODE, problem } from "./fields.js";
import { nextOf, orderOf, shownPlan } from "./plans.js";
import { MOST, Rates } from "./rates.js";
import { drawToken } from "./tokens.js";
import { documentOf, liveRooms, pageOf, readDeployed } from "./written.js";

/** Of the tables: whoever changes what older code relies on, makes it another one. */
const SCHEMA = 1;
const TABLES = [
  "CREATE TABLE IF NOT EXISTS anteroom_schema (name TEXT PRIMARY KEY, version INTEGER NOT NULL, needs INTEGER NOT NULL) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS book (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, by TEXT NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL)",
];
/** How many entries of the log are kept, and how many one answer has. */
const LOGGED = 10_000;
const SHOWN = 100;
/** After so many milliseconds a room's object is told again that could not be reached. */
const AGAIN = 2_000;
/** A longer text is told by its length in the log. */
const LONGEST_LOGGED = 1_000;
/** Likewise of what several changes are of. */
const LONGEST_ENTRY = 400_000;

export class Config {
  #ctx;
  #env;
  #sql;
  /** @type {import("./api.js").Book | undefined} */
  #book;
  #deployed;
  #rates = new Rates();

  constructor(ctx, env) {
    this.#ctx = ctx;
    this.#env = env;
    this.#sql = ctx.storage.sql;
  }

  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const [, route, name] = pathname.split("/");
    if (route === "document") {
      const book = this.#read();
      if (Number(searchParams.get("known")) === book.version) return new Response(null, { status: 204 });
      return Response.json(documentOf(book));
    }
    if (route === "client") return Response.json(await this.#client(await request.json()));
    const html = route === "page" ? this.#page(name) : route === "preview" ? this.#preview(name) : undefined;
    return html === undefined ? new Response("there is no such thing", { status: 404 }) : new Response(html);
  }

  /** The book, of storage where it is not in memory. */
  #read() {
    if (this.#book) return this.#book;
    for (const statement of TABLES) this.#sql.exec(statement);
    const [noted] = this.#sql.exec("SELECT needs FROM anteroom_schema WHERE name = 'config'");
    if (noted?.needs > SCHEMA) throw new Error("newer code has written the configuration");
    if (!noted) this.#sql.exec("INSERT INTO anteroom_schema (name, version, needs) VALUES ('config', 1, 1)");
    const rows = [...this.#sql.exec("SELECT key, value FROM book")];
    this.#book = readBook(rows.map(({ key, value }) => [key, JSON.parse(value)]));
    return this.#book;
  }

  /** What the deploy describes: it does not change while this object lives. */
  #readDeployed() {
    const broken = () => this.#check({ version: 0 }).map(({ name }) => name);
    this.#deployed ??= readDeployed(this.#env, broken());
    return this.#deployed;
  }

  #check(document) {
    return JSON.parse(checked(this.#env, JSON.stringify(document)));
  }

  #page(name) {
    const { rooms, events } = this.#read();
    return [...rooms, ...events].map(pageOf).find((page) => page?.name === name)?.html;
  }

  #preview(id) {
    this.#read();
    const [row] = this.#sql.exec("SELECT value FROM book WHERE key = ?", `preview/${id}`);
    return row && JSON.parse(row.value).html;
  }

  /** Answers a request of the API. @param {import("./api.js").Ask} asked all but the time and new ids */
  async #client(asked) {
    const deployed = await this.#readDeployed();
    const newToken = await drawToken();
    const now = Date.now();
    const againSeconds = this.#rates.count(asked.by, now);
    if (againSeconds > 0) {
      const message = `A token may send ${MOST} requests in five minutes`;
      return { ...refusal(429, [problem(CODE.rate, message)]), againSeconds };
    }
    const newId = () => crypto.randomUUID().replaceAll("-", "");
    const check = (document) => this.#check(document);
    const answer = (judged) =>
      handle(this.#read(), deployed, check, { ...asked, now, newId, newToken, judged });
    let told = answer();
    if (told.order) told = answer(await this.#order(told.order));
    const { written, entries, pages = [], ...outcome } = told;
    if (entries) return this.#log(entries.before);
    const mistakes = pages
      .map(({ html, pointer }) => [mistakeIn(html), pointer])
      .filter(([mistake]) => mistake)
      .map(([mistake, pointer]) => problem(CODE.value, `The page ${mistake}`, pointer));
    if (mistakes.length > 0) return refusal(400, mistakes);
    if (!written) return outcome;
    this.#ctx.storage.transactionSync(() => {
      this.#store(written.rows);
      this.#note(now, asked, written);
    });
    this.#book = written.book;
    if (Object.keys(written.rows).some((key) => key.startsWith("plan/"))) this.#wake();
    return outcome;
  }

  #store(rows) {
    for (const [key, row] of Object.entries(rows)) {
      if (row === undefined) this.#sql.exec("DELETE FROM book WHERE key = ?", key);
      else this.#sql.exec("INSERT OR REPLACE INTO book (key, value) VALUES (?, ?)", key, JSON.stringify(row));
    }
  }

  /** An entry of the log. */
  #note(at, { by, method, path }, { before, after }) {
    const values = [before, after].map((value) => {
      const text = JSON.stringify(value, shortened);
      return text.length > LONGEST_ENTRY ? JSON.stringify(`(${text.length} characters)`) : text;
    });
    this.#sql.exec(
      "INSERT INTO log (at, by, method, path, before, after) VALUES (?, ?, ?, ?, ?, ?)",
      ...[at, by, method, path, ...values],
    );
    this.#sql.exec("DELETE FROM log WHERE id <= (SELECT max(id) FROM log) - ?", LOGGED);
  }

  /** Is woken when the next plan begins; one that is due has just failed to. */
  #wake() {
    const [next, now] = [Math.min(...this.#read().plans.map(({ from }) => from)), Date.now()];
    if (Number.isFinite(next)) this.#ctx.storage.setAlarm(next > now ? next : now + AGAIN);
    else this.#ctx.storage.deleteAlarm();
  }

  /** What a room's object says of an order. */
  async #order({ room, by, order }) {
    return JSON.parse(await ordered(room, by, JSON.stringify(order), this.#env));
  }

  /** Plans begin. */
  async alarm() {
    const deployed = await this.#readDeployed();
    const due = Object.groupBy(
      this.#read().plans.filter(({ from }) => from <= Date.now()),
      ({ room }) => room,
    );
    // Those of a room in their order, whatever another room does.
    const begin = async (plans) => {
      for (const plan of plans.sort((one, other) => one.from - other.from)) await this.#begin(plan, deployed);
    };
    await Promise.all(Object.values(due).map((plans) => begin(plans).catch(logAway)));
    this.#wake();
  }

  /** Tells a room's object what was planned, and keeps what comes a week later. An order that comes twice changes nothing. */
  async #begin(plan, deployed) {
    const room = [...liveRooms(this.#read()), ...deployed.rooms].find(({ id }) => id === plan.room);
    const isOver = plan.until !== null && plan.until <= Date.now();
    const told =
      room && !isOver
        ? await this.#order({ room: objectsOf(room), by: plan.by, order: orderOf(plan) })
        : { body: { error: room ? "its time is over" : "the room is gone" } };
    // It was dropped meanwhile.
    if (!this.#read().plans.some(({ id }) => id === plan.id)) return;
    const next = nextOf(plan, Date.now());
    this.#ctx.storage.transactionSync(() => {
      this.#store({ [`plan/${plan.id}`]: next });
      const after = told.status === 200 ? "begun" : { missed: told.body };
      const path = `plans/${plan.id}`;
      this.#note(Date.now(), { by: plan.by, method: "BEGIN", path }, { before: shownPlan(plan), after });
    });
    const book = this.#read();
    book.plans = [...book.plans.filter(({ id }) => id !== plan.id), ...(next ? [next] : [])];
  }

  /** The log, the latest first: what stands before an entry. */
  #log(before) {
    const rows = this.#sql.exec("SELECT * FROM log WHERE id < ? ORDER BY id DESC LIMIT ?", before, SHOWN);
    const entries = [...rows].map(({ at, before, after, ...row }) => ({
      ...row,
      at: new Date(at).toISOString(),
      before: JSON.parse(before),
      after: JSON.parse(after),
    }));
    return { status: 200, body: envelope(entries) };
  }
}

const logAway = (error) => console.error(`anteroom: a plan cannot begin yet: ${error}`);

const shortened = (_, value) =>
  typeof value === "string" && value.length > LONGEST_LOGGED ? `(${value.length} characters)` : value;
