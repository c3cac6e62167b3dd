package mpj

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// TestCheckReportsNoFalseDeadlock checks that no deadlock is reported while a goroutine can still
// end the wait of the others, however long they have waited.
func TestCheckReportsNoFalseDeadlock(t *testing.T) {
	t.Setenv(checkVariable, "1")
	const long = 3 * askPause // several rounds
	later := func(w *World, wait func()) error {
		one := []int{1}
		if w.Rank() == 1 {
			_, err := Recv(w.Comm, one, AnySource, AnyTag)
			return err
		}
		wait()
		return Ssend(w.Comm, one, 1, 0)
	}
	for name, wait := range map[string]func(){
		"a timer": func() { <-time.After(long) },
		"computation": func() {
			for start := time.Now(); time.Since(start) < long; {
			}
		},
		"a goroutine": func() {
			done := make(chan struct{})
			time.AfterFunc(long, func() { close(done) })
			<-done
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := runIn(localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: 1}), func(w *World) error {
				return later(w, wait)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a context", func(t *testing.T) {
		t.Parallel()
		err := runIn(localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: 1}), func(w *World) error {
			ctx, cancel := context.WithTimeout(context.Background(), long)
			defer cancel()
			_, err := RecvContext(ctx, w.Comm, []int{0}, 1-w.Rank(), 0)
			if !errors.Is(err, ErrContext) {
				return err
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestCheckIsOneOrZero(t *testing.T) {
	t.Setenv(checkVariable, "yes")
	run := RunLocal(context.Background(), 1, func(*World) error { return nil })
	_, initialize := Init(context.Background())
	for name, err := range map[string]error{"RunLocal": run, "Init": initialize} {
		if !errors.Is(err, ErrArg) || !strings.Contains(err.Error(), `P2PMPI_CHECK="yes"`) {
			t.Errorf("%s with an invalid P2PMPI_CHECK returned %v", name, err)
		}
	}
}

// FuzzParseState checks that arbitrary states from another rank are harmless.
func FuzzParseState(f *testing.F) {
	f.Add([]byte(`{"Idle":true,"Waits":[{"Number":1,"For":[1],"Text":"Recv"}],"Sent":{"1":2}}`))
	f.Add([]byte(`{"Ended":true}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseState(b)
		if err != nil {
			return
		}
		if _, err := json.Marshal(s); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	})
}
