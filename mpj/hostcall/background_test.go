package hostcall

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

func TestNextReturnsACallThatCompletesWithinTheTimeout(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := newBackground()
		defer b.close()
		failure := errors.New("failed")
		b.start(7, func() error {
			time.Sleep(time.Second)
			return failure
		}, nothing)
		if _, waited, ok := b.next(0); waited != 0 || ok {
			t.Errorf("before the call completes: waited %v, found a call: %v", waited, ok)
		}
		if _, waited, ok := b.next(time.Second / 2); waited != time.Second/2 || ok {
			t.Errorf("half the time: waited %v, found a call: %v", waited, ok)
		}
		f, waited, ok := b.next(time.Minute)
		if f.ticket != 7 || !errors.Is(f.err, failure) || waited != time.Second/2 || !ok {
			t.Errorf("got ticket %d, error %v after %v", f.ticket, f.err, waited)
		}
	})
}

func TestGiveUpEndsOnlyTheCallWithItsTicket(t *testing.T) {
	b := newBackground()
	defer b.close()
	one, endOne := b.bound(1)
	other, endOther := b.bound(2)
	defer endOne()
	defer endOther()
	b.giveUp(1)
	b.giveUp(3)
	if one.Err() == nil || other.Err() != nil {
		t.Errorf("contexts: %v, %v", one.Err(), other.Err())
	}
}

func TestCloseEndsBoundedCalls(t *testing.T) {
	b := newBackground()
	ctx, end := b.bound(1)
	b.start(1, func() error {
		defer end()
		<-ctx.Done()
		return context.Cause(ctx)
	}, nothing)
	b.close()
}
