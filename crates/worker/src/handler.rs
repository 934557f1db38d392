//! What a user of this crate writes: code that handles one message.

use std::future::Future;

use vorrang_client::Received;

use crate::context::Context;
use crate::outcome::Outcome;

/// Handles messages, several at once.
///
/// Every function of a context and a message that returns something like an [`Outcome`] is a handler:
///
/// ```
/// use vorrang_worker::{Context, Handler, Outcome};
/// use vorrang_client::Received;
///
/// async fn greet(_context: Context, message: Received) -> Result<(), String> {
///     let name = message.text().ok_or("not text")?;
///     println!("hello, {name}");
///     Ok(())
/// }
///
/// fn takes(_handler: impl Handler) {}
/// takes(greet);
/// takes(|_context: Context, _message: Received| async { Outcome::Retry(None) });
/// ```
pub trait Handler: Send + Sync + 'static {
    /// Handles one message. A panic counts as a failure, and hurts nobody else.
    fn handle(&self, context: Context, message: Received) -> impl Future<Output = Outcome> + Send;
}

impl<F, Work, Said> Handler for F
where
    F: Fn(Context, Received) -> Work + Send + Sync + 'static,
    Work: Future<Output = Said> + Send,
    Said: Into<Outcome>,
{
    async fn handle(&self, context: Context, message: Received) -> Outcome {
        self(context, message).await.into()
    }
}
