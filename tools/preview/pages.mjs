/** The preview's own pages. */
import Mustache from "mustache";
import { PAGES } from "../pages.mjs";

const FRAME = (title, body) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; }
td, th { padding: 0.25rem 1.5rem 0.25rem 0; text-align: start; vertical-align: top; }
</style>
<main>
<h1>${title}</h1>
${body}
</main>
`;

const INDEX = `<form>
<p><label>Language <select name="language">
<option value="">as the browser asks</option>
{{#languages}}<option value="{{tag}}"{{#chosen}} selected{{/chosen}}>{{tag}} ({{name}})</option>
{{/languages}}</select></label>
<label>Page <select name="page">
<option value="">Anteroom's own</option>
{{#pages}}<option{{#chosen}} selected{{/chosen}}>{{name}}</option>
{{/pages}}</select></label>
<noscript>Write language and page into the addresses below.</noscript></p>
</form>
<table>
<tr><th scope="col">State<th scope="col">Page<th scope="col">JSON
{{#states}}<tr><td>{{text}}<td><a href="/preview?state={{name}}">{{name}}</a><td>{{#json}}<a href="/preview?state={{name}}&amp;format=json">JSON</a>{{/json}}
{{/states}}</table>
<p>Other addresses: <code>/preview?force_queue=true</code>, <code>queue_is_full=true</code>,
<code>queueing_method=random</code>, <code>event=prequeueing</code> or <code>started</code>,
<code>shuffle_at_event_start=true</code>, <code>waitTime=30</code>, <code>message=…</code>,
<code>language=de-DE</code>, <code>page=name</code>.</p>
<script>
const links = [...document.querySelectorAll("a")];
const choose = () => {
  for (const link of links)
    for (const { name, value } of document.forms[0].elements) {
      const address = new URL(link.href);
      if (value) address.searchParams.set(name, value);
      else address.searchParams.delete(name);
      link.href = address;
    }
};
document.forms[0].addEventListener("change", choose);
choose();
</script>`;

/** Links to every state. */
export function indexPage(states, moments, { languages, templates, brands }) {
  const names = new Intl.DisplayNames("en", { type: "language" });
  return FRAME(
    "The waiting page",
    Mustache.render(INDEX, {
      languages: Object.keys(languages).map((tag) => ({ tag, name: names.of(tag) })),
      pages: Object.keys({ ...templates, ...brands }).map((name) => ({ name })),
      states: [
        ...Object.entries(states).map(([name, [text]]) => ({ name, text, json: true })),
        ...Object.entries(moments).map(([name, text]) => ({ name, text, json: false })),
      ],
    }),
  );
}

/** What is wrong with a template or branding. @param {{ line: number, message: string }[]} problems */
export const problemPage = (file, problems) =>
  FRAME(
    "This page has mistakes",
    Mustache.render("<ul>{{#problems}}<li>{{folder}}/{{file}}:{{line}}: {{message}}</li>{{/problems}}</ul>", {
      folder: PAGES,
      file,
      problems,
    }),
  );

/** What stands for the origin. */
export const welcomePage = () => FRAME("Welcome", "<p>Nobody waits here: this is the site itself.</p>");
