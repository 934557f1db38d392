//! Makes a queue and a topic with a subscription for each priority, sends, and looks at the counts.
//!
//! ```text
//! vorrang serve --dev &
//! cargo run -p vorrang-client --example administration
//! ```
//!
//! With `CONNECTION_STRING ADMIN_URL` it talks to any other broker, also to Service Bus.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use vorrang_client::admin::{Admin, QueueProperties, SubscriptionProperties, TopicProperties};
use vorrang_client::{Client, Error, Message, Rule, Sql};

const EMULATOR: &str = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;\
                        SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true";

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let connection = arguments.next().unwrap_or_else(|| EMULATOR.to_owned());
    let admin = match arguments.next() {
        Some(url) => Admin::new(&connection)?.with_endpoint(&url)?,
        None => Admin::new(&connection)?,
    };

    let queue =
        admin.create_queue_if_missing(&QueueProperties::new("invoices").with_max_delivery_count(3)).await?;
    let queue = admin.update_queue(&queue.with_user_metadata("owned by accounting")).await?;
    println!("{}: {:?} deliveries at most", queue.name(), queue.max_delivery_count());

    admin.create_topic_if_missing(&TopicProperties::new("orders-by-priority")).await?;
    for priority in ["High", "Low"] {
        let only = Rule::sql("only", Sql::from("Priority = @priority").with_parameter("@priority", priority));
        let subscription = SubscriptionProperties::new("orders-by-priority", priority).with_first_rule(&only);
        admin.create_subscription_if_missing(&subscription).await?;
    }

    let client = Client::connect(&connection).await?;
    let sender = client.sender("orders-by-priority").await?;
    for priority in ["High", "Low", "Low"] {
        sender.send(Message::text("an order").with_property("Priority", priority)).await?;
    }
    for subscription in admin.subscriptions("orders-by-priority").await? {
        println!("{}: {} messages wait", subscription.name(), subscription.runtime().active);
    }
    admin.delete_topic("orders-by-priority").await?;
    admin.delete_queue("invoices").await?;
    client.close().await
}
