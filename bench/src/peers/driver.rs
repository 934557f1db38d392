//! One small client for each protocol, as lean as the protocol allows.

pub(crate) mod amqp_0_9_1;
pub(crate) mod amqp_1_0;
pub(crate) mod beanstalk;
pub(crate) mod nats;
pub(crate) mod postgres;
pub(crate) mod resp;
pub(crate) mod stomp;
