package conformance

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// N1
func TestACompletedMessageLeavesTheQueueEmpty(t *testing.T) {
	b := connect(t)
	b.send("send-receive", "hello")
	receiver := b.receiver("send-receive", nil)
	equal(t, b.take(receiver, 1), []string{"hello"})
	b.empty(receiver)
}

// N2
func TestABatchOf100ArrivesInOrder(t *testing.T) {
	b := connect(t)
	sender := b.sender("batch")
	batch, err := sender.NewMessageBatch(b.ctx, nil)
	b.check(err)
	for number := range 100 {
		b.check(batch.AddMessage(&azservicebus.Message{Body: []byte(strconv.Itoa(number))}, nil))
	}
	b.check(sender.SendMessageBatch(b.ctx, batch, nil))
	receiver := b.receiver("batch", nil)
	for number, body := range b.take(receiver, 100) {
		equal(t, body, strconv.Itoa(number))
	}
	b.empty(receiver)
}

// N3: the leftover credit of a cancelled call stays with the link, and what arrives on it is given back uncounted.
func TestAMessageThatArrivesBetweenCallsIsNotLost(t *testing.T) {
	b := connect(t)
	receiver := b.receiver("empty-receive", nil)
	b.nothingWithin(receiver, time.Second)
	b.send("empty-receive", "late")
	message := b.receive(receiver, 1)[0]
	equal(t, message.DeliveryCount, 1) // this SDK counts the delivery at hand too
	b.check(receiver.CompleteMessage(b.ctx, message, nil))
}

// N4
func TestAnAbandonedMessageComesBackWithNewProperties(t *testing.T) {
	b := connect(t)
	b.send("abandon", "first", "second")
	receiver := b.receiver("abandon", nil)
	message := b.receive(receiver, 1)[0]
	properties := map[string]any{"tried": true}
	b.check(receiver.AbandonMessage(b.ctx, message, &azservicebus.AbandonMessageOptions{PropertiesToModify: properties}))
	again := b.receive(receiver, 1)[0]
	equal(t, string(again.Body), "first")
	equal(t, again.DeliveryCount, 2)
	equal(t, again.ApplicationProperties["tried"], any(true))
	b.check(receiver.CompleteMessage(b.ctx, again, nil))
	equal(t, b.take(receiver, 1), []string{"second"})
}

// N4
func TestADeferredMessageIsReceivedByItsNumber(t *testing.T) {
	b := connect(t)
	b.send("defer", "later")
	receiver := b.receiver("defer", nil)
	message := b.receive(receiver, 1)[0]
	b.check(receiver.DeferMessage(b.ctx, message, nil))
	deferred, err := receiver.ReceiveDeferredMessages(b.ctx, []int64{*message.SequenceNumber}, nil)
	b.check(err)
	equal(t, string(deferred[0].Body), "later")
	b.check(receiver.CompleteMessage(b.ctx, deferred[0], nil))
	b.empty(receiver)
}

// N4
func TestADeadLetteredMessageKeepsItsReason(t *testing.T) {
	b := connect(t)
	b.send("dead-letter", "broken")
	receiver := b.receiver("dead-letter", nil)
	reason, description := "bad form", "no total"
	b.check(receiver.DeadLetterMessage(b.ctx, b.receive(receiver, 1)[0],
		&azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: &description}))
	deadLetters := b.receiver("dead-letter", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	dead := b.receive(deadLetters, 1)[0]
	equal(t, []string{*dead.DeadLetterReason, *dead.DeadLetterErrorDescription, *dead.DeadLetterSource},
		[]string{reason, description, "dead-letter"})
	b.check(deadLetters.CompleteMessage(b.ctx, dead, nil))
}

// N5
func TestARenewedLockOutlivesItsFirstExpiry(t *testing.T) {
	b := connect(t)
	b.send("lock-renewal", "slow work")
	receiver, rival := b.receiver("lock-renewal", nil), b.receiver("lock-renewal", nil)
	message := b.receive(receiver, 1)[0]
	first := *message.LockedUntil
	b.nothingWithin(rival, time.Until(first)/2)
	b.check(receiver.RenewMessageLock(b.ctx, message, nil))
	if !message.LockedUntil.After(first) {
		t.Fatal("the lock was not renewed")
	}
	b.nothingWithin(rival, time.Until(first)+500*time.Millisecond)
	b.check(receiver.CompleteMessage(b.ctx, message, nil))
}

// N6
func TestCompletingAfterTheLockRanOutIsRefused(t *testing.T) {
	b := connect(t)
	b.send("lock-lost", "too slow")
	slow, next := b.receiver("lock-lost", nil), b.receiver("lock-lost", nil)
	message := b.receive(slow, 1)[0]
	redelivered := b.receive(next, 1)[0]
	var failure *azservicebus.Error
	err := slow.CompleteMessage(b.ctx, message, nil)
	if !errors.As(err, &failure) || failure.Code != azservicebus.CodeLockLost {
		t.Fatalf("got %v", err)
	}
	b.check(next.CompleteMessage(b.ctx, redelivered, nil))
}

// N7
func TestPeekingStartsAnywhere(t *testing.T) {
	b := connect(t)
	b.send("peek", "0", "1", "2", "3")
	receiver := b.receiver("peek", nil)
	from := int64(0)
	first, err := receiver.PeekMessages(b.ctx, 2, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &from})
	b.check(err)
	from = *first[1].SequenceNumber + 1
	rest, err := receiver.PeekMessages(b.ctx, 10, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &from})
	b.check(err)
	equal(t, len(rest), 2)
	equal(t, string(rest[0].Body), "2")
	equal(t, b.take(receiver, 4), []string{"0", "1", "2", "3"})
}

// N8
func TestScheduledMessagesArriveAtTheirTimeUnlessCancelled(t *testing.T) {
	b := connect(t)
	sender := b.sender("schedule")
	due := time.Now().Add(2 * time.Second)
	numbers, err := sender.ScheduleMessages(b.ctx, []*azservicebus.Message{{Body: []byte("kept")}, {Body: []byte("cancelled")}}, due, nil)
	b.check(err)
	b.check(sender.CancelScheduledMessages(b.ctx, numbers[1:], nil))
	receiver := b.receiver("schedule", nil)
	message := b.receive(receiver, 1)[0]
	equal(t, string(message.Body), "kept")
	if message.EnqueuedTime.Before(due.Add(-100 * time.Millisecond)) {
		t.Fatalf("enqueued at %v, due at %v", message.EnqueuedTime, due)
	}
	b.check(receiver.CompleteMessage(b.ctx, message, nil))
	b.empty(receiver)
}

// N12
func TestReceivedAndDeletedMessagesAreGone(t *testing.T) {
	b := connect(t)
	b.send("receive-and-delete", "a", "b", "c")
	mode := &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete}
	receiver := b.receiver("receive-and-delete", mode)
	equal(t, len(b.receive(receiver, 3)), 3)
	b.empty(receiver)
}

// N11
func TestEverySubscriptionGetsItsOwnCopy(t *testing.T) {
	b := connect(t)
	b.send("fan-out", "news")
	for _, subscription := range []string{"first", "second"} {
		receiver, err := b.client.NewReceiverForSubscription("fan-out", subscription, nil)
		b.check(err)
		equal(t, b.take(receiver, 1), []string{"news"})
	}
}

// N15: a refused link surfaces as the error of the wire, not as one of the SDK's codes.
func TestAMissingQueueIsNamed(t *testing.T) {
	b := connect(t)
	err := b.sender("no-such-queue").SendMessage(b.ctx, &azservicebus.Message{Body: []byte("lost")}, nil)
	if err == nil || !strings.Contains(err.Error(), "amqp:not-found") {
		t.Fatalf("got %v", err)
	}
}

// N16
func TestAWrongKeyIsRefused(t *testing.T) {
	b := connectWith(t, connectionString("not-the-key"))
	err := b.sender("send-receive").SendMessage(b.ctx, &azservicebus.Message{Body: []byte("sneaked in")}, nil)
	var failure *azservicebus.Error
	if !errors.As(err, &failure) || failure.Code != azservicebus.CodeUnauthorizedAccess {
		t.Fatalf("got %v", err)
	}
}

// N17
func TestLargeMessagesArriveWholeAndTooLargeOnesAreRefused(t *testing.T) {
	b := connect(t)
	body := bytes.Repeat([]byte("0123456789"), 25*1024)
	b.send("sizes", string(body))
	equal(t, b.take(b.receiver("sizes", nil), 1), []string{string(body)})
	err := b.sender("sizes").SendMessage(b.ctx, &azservicebus.Message{Body: bytes.Repeat(body, 20)}, nil)
	if !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t.Fatalf("got %v", err)
	}
}

// N20: closing releases what was not taken, without counting a delivery.
func TestWhatAClosingReceiverLeavesIsForTheNext(t *testing.T) {
	b := connect(t)
	b.send("prefetch-left", "0", "1", "2")
	first := b.receiver("prefetch-left", nil)
	equal(t, b.take(first, 1), []string{"0"})
	b.check(first.Close(context.Background()))
	second := b.receiver("prefetch-left", nil)
	for _, message := range b.receive(second, 2) {
		equal(t, message.DeliveryCount, 1)
		b.check(second.CompleteMessage(b.ctx, message, nil))
	}
}
