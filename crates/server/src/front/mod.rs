//! The Service Bus front: what AMQP says, in the words of the broker, and back.

pub mod message;
