package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func (b bus) sendTo(queue, session string, bodies ...string) {
	b.Helper()
	sender := b.sender(queue)
	for _, body := range bodies {
		b.check(sender.SendMessage(b.ctx, &azservicebus.Message{Body: []byte(body), SessionID: &session}, nil))
	}
}

// N9
func TestSessionsKeepTheirMessagesApartAndInOrder(t *testing.T) {
	b := connect(t)
	for _, number := range []string{"1", "2"} {
		b.sendTo("session-by-id", "a", "a"+number)
		b.sendTo("session-by-id", "b", "b"+number)
	}
	for _, id := range []string{"b", "a"} {
		session, err := b.client.AcceptSessionForQueue(b.ctx, "session-by-id", id, nil)
		b.check(err)
		equal(t, session.SessionID(), id)
		equal(t, b.take(session, 2), []string{id + "1", id + "2"})
		b.check(session.Close(b.ctx))
	}
}

// N9
func TestTheNextSessionIsOneThatWaits(t *testing.T) {
	b := connect(t)
	b.sendTo("session-next", "waiting", "only")
	session, err := b.client.AcceptNextSessionForQueue(b.ctx, "session-next", nil)
	b.check(err)
	equal(t, session.SessionID(), "waiting")
	equal(t, b.take(session, 1), []string{"only"})
	b.check(session.Close(b.ctx))
}

// N10: this SDK waits as long as its caller lets it.
func TestWaitingForASessionCanBeGivenUp(t *testing.T) {
	b := connect(t)
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Second)
	defer cancel()
	_, err := b.client.AcceptNextSessionForQueue(ctx, "session-none", nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	// The waiter that was given up must not take the session that comes now.
	b.sendTo("session-none", "late", "x")
	session, err := b.client.AcceptNextSessionForQueue(b.ctx, "session-none", nil)
	b.check(err)
	equal(t, b.take(session, 1), []string{"x"})
	b.check(session.Close(b.ctx))
}

// N9
func TestSessionStateOutlivesItsHolder(t *testing.T) {
	b := connect(t)
	accept := func() *azservicebus.SessionReceiver {
		session, err := b.client.AcceptSessionForQueue(b.ctx, "session-state", "remembering", nil)
		b.check(err)
		return session
	}
	first := accept()
	b.check(first.SetSessionState(b.ctx, []byte("step 3"), nil))
	if _, err := b.client.AcceptSessionForQueue(b.ctx, "session-state", "remembering", nil); err == nil {
		t.Fatal("a held session was given away")
	}
	before := first.LockedUntil()
	b.check(first.RenewSessionLock(b.ctx, nil))
	if first.LockedUntil().Before(before) {
		t.Fatal("the session lock was not renewed")
	}
	b.check(first.Close(b.ctx))
	second := accept()
	state, err := second.GetSessionState(b.ctx, nil)
	b.check(err)
	equal(t, string(state), "step 3")
	b.check(second.SetSessionState(b.ctx, nil, nil))
	b.check(second.Close(b.ctx))
}
