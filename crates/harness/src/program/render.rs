use std::path::Path;

use super::check::load;
use super::output::write_whole;
use crate::Render;

/// Writes the pages of a report anew.
pub(crate) fn run(options: &Render) -> Result<(), String> {
    let (_, report) = load(&options.report)?;
    let beside = options.report.parent().unwrap_or(Path::new("."));
    let folder = options.out.as_deref().unwrap_or(beside);
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    write_whole(&folder.join("report.md"), report.to_markdown().as_bytes())?;
    write_whole(&folder.join("report.html"), report.to_html().as_bytes())
}
