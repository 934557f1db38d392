// Package conformance lets the Go SDK for Service Bus talk to the broker.
//
// It is the strictest of the clients in what it accepts: it compares settle modes, wants described
// filters where it sent described ones, and checks the exact type of every annotation.
package conformance

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const patience = 20 * time.Second

// bus is a client that ends with its test.
type bus struct {
	*testing.T
	ctx    context.Context
	client *azservicebus.Client
}

// connectionString is the emulator's, with the port the runner told us.
func connectionString(key string) string {
	return fmt.Sprintf("Endpoint=sb://localhost:%s;SharedAccessKeyName=RootManageSharedAccessKey;"+
		"SharedAccessKey=%s;UseDevelopmentEmulator=true;", os.Getenv("VORRANG_AMQP_PORT"), key)
}

func connect(t *testing.T) bus {
	return connectWith(t, connectionString("SAS_KEY_VALUE"))
}

func connectWith(t *testing.T, text string) bus {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	// A retry would wait for seconds and hide the broker's first answer.
	options := &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}}
	client, err := azservicebus.NewClientFromConnectionString(text, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close(ctx)
		cancel()
	})
	return bus{T: t, ctx: ctx, client: client}
}

func (b bus) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b bus) sender(entity string) *azservicebus.Sender {
	b.Helper()
	sender, err := b.client.NewSender(entity, nil)
	b.check(err)
	return sender
}

// send stores one message per body.
func (b bus) send(entity string, bodies ...string) {
	b.Helper()
	sender := b.sender(entity)
	for _, body := range bodies {
		b.check(sender.SendMessage(b.ctx, &azservicebus.Message{Body: []byte(body)}, nil))
	}
	b.check(sender.Close(b.ctx))
}

func (b bus) receiver(queue string, options *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	b.Helper()
	receiver, err := b.client.NewReceiverForQueue(queue, options)
	b.check(err)
	return receiver
}

// messageReceiver is what plain and session receivers have in common.
type messageReceiver interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	CompleteMessage(context.Context, *azservicebus.ReceivedMessage, *azservicebus.CompleteMessageOptions) error
}

// receive waits for exactly count messages, in as many calls as it takes.
func (b bus) receive(receiver messageReceiver, count int) []*azservicebus.ReceivedMessage {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	var received []*azservicebus.ReceivedMessage
	for len(received) < count {
		messages, err := receiver.ReceiveMessages(ctx, count-len(received), nil)
		b.check(err)
		received = append(received, messages...)
	}
	return received
}

// take receives and completes exactly count messages and returns their bodies.
func (b bus) take(receiver messageReceiver, count int) []string {
	b.Helper()
	var bodies []string
	for _, message := range b.receive(receiver, count) {
		b.check(receiver.CompleteMessage(b.ctx, message, nil))
		bodies = append(bodies, string(message.Body))
	}
	return bodies
}

// nothingWithin checks that a receiver gets no message in that time.
func (b bus) nothingWithin(receiver messageReceiver, wait time.Duration) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait)
	defer cancel()
	if messages, err := receiver.ReceiveMessages(ctx, 1, nil); err == nil {
		b.Fatalf("received %q", messages[0].Body)
	}
}

func (b bus) empty(receiver *azservicebus.Receiver) {
	b.Helper()
	from := int64(0)
	left, err := receiver.PeekMessages(b.ctx, 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &from})
	b.check(err)
	if len(left) > 0 {
		b.Fatalf("%q is left", left[0].Body)
	}
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}
