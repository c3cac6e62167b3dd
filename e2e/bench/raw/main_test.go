package main

import (
	"bytes"
	"encoding/json"
	"net"
	"testing"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
)

// TestTwoEndsAgreeOnEveryTest runs each test over a pipe. If the ends did not agree on lengths, the test would
// hang.
func TestTwoEndsAgreeOnEveryTest(t *testing.T) {
	var items []plan.Item
	for _, test := range []string{plan.Latency, plan.Rate, plan.Bandwidth, plan.Bidirectional} {
		items = append(items, plan.Item{Test: test, Bytes: 1000, Count: 7})
	}
	a, b := net.Pipe()
	second := make(chan error, 1)
	go func() { // ends with the items
		e := &end{conn: b}
		err := measureAll(e, items, new(bytes.Buffer))
		if err == nil {
			err = e.part()
		}
		second <- err
	}()
	var out bytes.Buffer
	e := &end{conn: a, first: true}
	if err := measureAll(e, items, &out); err != nil {
		t.Fatal(err)
	}
	if err := e.part(); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if err := <-second; err != nil {
		t.Error(err)
	}
	lines := json.NewDecoder(&out)
	for _, item := range items {
		var got plan.Result
		if err := lines.Decode(&got); err != nil || got.Test != item.Test || got.Seconds <= 0 {
			t.Errorf("%s returned %+v, %v", item, got, err)
		}
	}
}

func TestConnectionsRefuseCollectives(t *testing.T) {
	if _, _, err := new(end).operation(plan.Item{Test: plan.Bcast, Bytes: 1, Count: 1}); err == nil {
		t.Error("a broadcast over one connection was accepted")
	}
}
