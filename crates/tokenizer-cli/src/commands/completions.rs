//! `tok completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

#[derive(Args)]
#[command(
    after_help = "Example:\n  tok completions bash > ~/.local/share/bash-completion/completions/tok"
)]
pub(crate) struct Completions {
    /// For which shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run<C: CommandFactory>(self) -> Result<(), Failure> {
        // Written at once: the generator panics where its output closes.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut C::command(), "tok", &mut script);
        output::print(&script)
    }
}
