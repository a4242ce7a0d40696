//! Tables as HTML, written cell by cell: in a template, each place of each table would add its own code to the Worker.

use askama::filters::{Escaper, Html};

use super::view::{Status, time};

/// A page's tables, one after another.
#[derive(Default)]
pub(super) struct Tables {
    html: String,
    /// How many columns of the table hold texts; numbers follow.
    texts: usize,
    /// The columns of the table.
    columns: usize,
    /// The cells of the row so far.
    cells: usize,
    /// Whether the table has a row.
    has_rows: bool,
}

impl Tables {
    pub(super) fn into_html(self) -> String {
        self.html
    }

    /// HTML as it is.
    pub(super) fn put(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// A text, whatever is in it.
    pub(super) fn write(&mut self, text: &str) {
        // Writing to a text does not fail.
        let _ = Html.write_escaped_str(&mut self.html, text);
    }

    /// The beginning of a section; `before` is HTML that stands before its table. [`Self::column`] follows.
    pub(super) fn open(&mut self, id: &str, title: &str, before: &str) {
        (self.texts, self.columns, self.has_rows) = (0, 0, false);
        self.put("<section><h2 id=\"");
        self.put(id);
        self.put("-title\">");
        self.write(title);
        self.put("</h2>");
        self.put(before);
        self.put("<div id=\"");
        self.put(id);
        self.put("\" class=\"wide\" tabindex=\"0\" role=\"region\" aria-labelledby=\"");
        self.put(id);
        self.put("-title\" data-live><table><thead><tr>");
    }

    /// The title of a column of texts, or of numbers.
    pub(super) fn column(&mut self, title: &str, is_number: bool) {
        self.put("<th scope=\"col\"");
        if is_number {
            self.put(" class=\"number\"");
        } else {
            self.texts += 1;
        }
        self.columns += 1;
        self.put(">");
        self.write(title);
        self.put("</th>");
    }

    /// The titles of all columns: first those of texts, then those of numbers. [`Self::row`] or [`Self::close`] follows.
    pub(super) fn head(&mut self, texts: &[&str], numbers: &[&str]) {
        for title in texts {
            self.column(title, false);
        }
        for title in numbers {
            self.column(title, true);
        }
    }

    /// The beginning of a row. Its cells follow.
    pub(super) fn row(&mut self) {
        self.put(if self.has_rows { "</tr><tr>" } else { "</tr></thead><tbody><tr>" });
        (self.cells, self.has_rows) = (0, true);
    }

    /// A cell; of an empty text, a dash.
    pub(super) fn cell(&mut self, text: &str) {
        self.put(if self.cells < self.texts { "<td>" } else { "<td class=\"number\">" });
        self.write(if text.is_empty() { "–" } else { text });
        self.put("</td>");
        self.cells += 1;
    }

    /// A cell with a number, or a dash.
    pub(super) fn number(&mut self, number: Option<u64>) {
        self.cell(&number.map_or_else(String::new, |number| number.to_string()));
    }

    /// A cell with a time, or a dash for 0.
    pub(super) fn time(&mut self, at: u64) {
        self.cell(&if at == 0 { String::new() } else { time(at) });
    }

    /// A cell with a status.
    pub(super) fn status(&mut self, status: Status) {
        self.put("<td><b class=\"status ");
        self.put(status.class());
        self.put("\">");
        self.put(status.text());
        self.put("</b></td>");
        self.cells += 1;
    }

    /// A cell that is the title of its row.
    pub(super) fn title(&mut self, text: &str) {
        self.put("<th scope=\"row\">");
        self.write(text);
        self.put("</th>");
        self.cells += 1;
    }

    /// The same with a link.
    pub(super) fn title_link(&mut self, text: &str, address: &str) {
        self.put("<th scope=\"row\">");
        self.link(text, address, "");
        self.put("</th>");
        self.cells += 1;
    }

    /// A link; `attributes` are HTML.
    pub(super) fn link(&mut self, text: &str, address: &str, attributes: &str) {
        self.put("<a href=\"");
        self.write(address);
        self.put("\"");
        self.put(attributes);
        self.put(">");
        self.write(text);
        self.put("</a> ");
    }

    /// The end of a section; `after` is HTML that stands behind its table.
    pub(super) fn close(&mut self, after: &str) {
        if !self.has_rows {
            self.row();
            self.put("<td colspan=\"");
            self.put(&self.columns.to_string());
            self.put("\">None.</td>");
        }
        self.put("</tr></tbody></table></div>");
        self.put(after);
        self.put("</section>");
    }
}
