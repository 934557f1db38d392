//! A terminal for a command: what it draws, what is typed, and how it leaves the terminal behind.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// A command on a terminal of its own; killed when dropped.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    /// The command's side of the terminal, kept open so that what it left behind can be looked at.
    line: File,
    drawn: Arc<Mutex<Vec<u8>>>,
    reading: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts a command on a terminal of 30 lines and 160 columns.
    pub(crate) fn start(mut command: Command) -> Terminal {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap();
        let line = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        tcsetwinsize(&line, Winsize { ws_row: 30, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let end = || line.try_clone().unwrap();
        let child = command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm").spawn().unwrap();
        let keyboard = File::from(screen);
        let drawn = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, seen) = (keyboard.try_clone().unwrap(), Arc::clone(&drawn));
        let reading = std::thread::spawn(move || {
            let mut piece = [0; 4_096];
            // A terminal nobody has open any more ends with an error.
            while let Ok(read @ 1..) = screen.read(&mut piece) {
                seen.lock().unwrap().extend_from_slice(&piece[..read]);
            }
        });
        Terminal { child, keyboard, line, drawn, reading: Some(reading) }
    }

    /// Everything that was drawn so far.
    pub(crate) fn drawn(&self) -> String {
        String::from_utf8_lossy(&self.drawn.lock().unwrap()).into_owned()
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
    }

    /// Whether lines are gathered and echoed, as a shell finds them.
    pub(crate) fn is_clean(&self) -> bool {
        let modes = tcgetattr(&self.line).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits until the command has ended by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The reader ends when the last one who could write is gone; that is us.
        drop(self.reading.take());
    }
}
