package discovery

import (
	"context"
	"testing"
)

func TestStopEndsTheBackgroundWork(t *testing.T) {
	b := newBackground(t.Context())
	ended := false
	b.run(func(ctx context.Context) {
		<-ctx.Done()
		ended = true
	})
	if !b.stop() || b.stop() {
		t.Error("stop did not report whether it was the first call")
	}
	b.wait()
	if !ended {
		t.Error("wait returned before the work ended")
	}
	if b.enter() {
		t.Error("a call was accepted after stop")
	}
	b.run(func(context.Context) { t.Error("work was started after stop") })
}
