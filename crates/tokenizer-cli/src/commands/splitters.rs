//! `tok splitters`.

use std::fmt::Write;

use clap::Args;
use serde_json::json;

use crate::Mode;
use crate::failure::Failure;
use crate::output;

#[derive(Args)]
#[command(
    after_help = "Example:\n  tok splitters\n\nA list with commas between cuts in turn, as in \
    --pretok digits3,gpt2."
)]
pub(crate) struct Splitters {}

impl Splitters {
    pub(crate) fn run(self, mode: Mode) -> Result<(), Failure> {
        let (splitters, normalizers) = (pretok::names(), tokenizer::lift::normalizers());
        if mode.json {
            let list = |names: &[(&str, &str)]| -> Vec<serde_json::Value> {
                names.iter().map(|(name, what)| json!({"name": name, "what": what})).collect()
            };
            return output::print_json(
                &json!({"splitters": list(splitters), "normalizers": list(normalizers)}),
            );
        }
        let mut text = String::new();
        for (title, names) in
            [("Splitters (--pretok)", splitters), ("\nNormalizers (--normalizer)", normalizers)]
        {
            let _ = writeln!(text, "{title}");
            for (name, what) in names {
                let _ = writeln!(text, "  {name:<34}{what}");
            }
        }
        output::print(text.as_bytes())
    }
}
