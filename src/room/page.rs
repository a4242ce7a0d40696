//! The waiting page's part of a room.

/// The languages of the waiting page, the default first.
pub const LANGUAGES: [&str; 39] = [
    "en-US", "es-ES", "de-DE", "fr-FR", "it-IT", "ja-JP", "ko-KR", "pt-BR", "zh-CN", "zh-TW", "nl-NL",
    "pl-PL", "id-ID", "tr-TR", "ar-EG", "ru-RU", "fa-IR", "bg-BG", "hr-HR", "cs-CZ", "da-DK", "fi-FI",
    "lt-LT", "lv-LV", "ms-MY", "nb-NO", "ro-RO", "el-GR", "he-IL", "hi-IN", "hu-HU", "sr-BA", "sk-SK",
    "sl-SI", "sv-SE", "tl-PH", "th-TH", "uk-UA", "vi-VN",
];

/// What a waiting visitor is shown, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "the owner's switches, each of its own")]
pub struct PageSettings {
    /// Name of the owner's template, `static/pages/<name>.html`; empty: the page of our own (`custom_page_html`).
    pub template: String,
    /// One of [`LANGUAGES`] (`default_template_language`).
    pub language: &'static str,
    /// The visitor's languages come before the owner's (`visitor_languages`).
    pub visitor_languages: bool,
    /// JSON for exactly `Accept: application/json` (`json_response_enabled`).
    pub exact_json: bool,
    /// JSON for every client that prefers it (`json_response`).
    pub preferred_json: bool,
    /// The owner's message to everybody who waits; may be empty (`message`).
    pub message: String,
    /// Visitors are told how many people are ahead (`show_position`).
    pub position: bool,
    /// Visitors are told how long they will wait (`show_wait`).
    pub wait: bool,
    /// Visitors are told how far they have come (`show_progress`).
    pub progress: bool,
}
