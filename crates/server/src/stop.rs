//! The wish to stop, told once and heard by everybody.

use tokio::sync::watch;

/// Tells everybody who holds a [`Stop`] to finish.
#[derive(Debug)]
pub struct StopSwitch(watch::Sender<bool>);

/// Hears the wish to stop. Cheap to clone; every task holds its own.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl StopSwitch {
    /// A switch and its first listener.
    #[must_use]
    pub fn new() -> (StopSwitch, Stop) {
        let (sender, receiver) = watch::channel(false);
        (StopSwitch(sender), Stop(receiver))
    }

    /// Tells everybody; telling twice changes nothing.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Whether stopping is wished for.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Ends when stopping is wished for, or when nobody is left who could.
    pub async fn requested(&mut self) {
        // An error means that the switch is gone, which is a wish to stop as well.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}
