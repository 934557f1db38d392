//! `vorrang completion` and `vorrang man`: made from the same definition as the flags.

use std::io;

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::{Shell as Known, generate};

use crate::Arguments;
use crate::failure::Outcome;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Which shell
    shell: Shell,
}

/// The shells we complete for.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    /// source <(vorrang completion bash)
    Bash,
    /// vorrang completion zsh > ~/.zfunc/_vorrang
    Zsh,
    /// vorrang completion fish > ~/.config/fish/completions/vorrang.fish
    Fish,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let shell = match options.shell {
        Shell::Bash => Known::Bash,
        Shell::Zsh => Known::Zsh,
        Shell::Fish => Known::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "vorrang", &mut script);
    write(&script)
}

/// One page for the command, then one part for each of its commands.
pub(crate) fn man() -> Outcome {
    let mut page = Vec::new();
    let mut command = Arguments::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
        clap_mangen::Man::new(command.clone()).render(&mut page)?;
    }
    write(&page)
}

/// A reader that has gone away has seen enough.
fn write(bytes: &[u8]) -> Outcome {
    match io::Write::write_all(&mut io::stdout().lock(), bytes) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
