package background

import (
	"context"
	"testing"
)

// A resettable counts the calls of Reset.
type resettable struct{ resets chan struct{} }

func (r resettable) Reset() error {
	r.resets <- struct{}{}
	return nil
}

func TestStopEndsTheWork(t *testing.T) {
	w := New(t.Context())
	ended := false
	w.Go(func(ctx context.Context) {
		<-ctx.Done()
		ended = true
	})
	if !w.Stop() || w.Stop() {
		t.Error("Stop did not report whether it was the first call")
	}
	w.Wait()
	if !ended {
		t.Error("Wait returned before the work ended")
	}
	if w.Enter() {
		t.Error("a call was accepted after Stop")
	}
	w.Go(func(context.Context) { t.Error("work was started after Stop") })
}

func TestStopResetsStreams(t *testing.T) {
	w := New(t.Context())
	stream, serving := resettable{make(chan struct{})}, make(chan struct{})
	w.Go(func(context.Context) {
		w.Serve(stream, func() {
			close(serving)
			<-stream.resets
		})
	})
	<-serving
	w.Stop()
	w.Wait()
	late := resettable{make(chan struct{}, 1)}
	w.Serve(late, func() { t.Error("a stream was handled after Stop") })
	if len(late.resets) != 1 {
		t.Error("a stream that was opened after Stop was not reset")
	}
}
