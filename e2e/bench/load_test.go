package main

import (
	"runtime"
	"testing"
	"time"
)

func TestLoadIsMeasuredOnLinux(t *testing.T) {
	part, ok := settle(t.Context(), 0)
	if runtime.GOOS == "linux" && !ok {
		t.Error("Linux reports no processor load")
	}
	if part < 0 || part > 1 {
		t.Errorf("part %v of the processors", part)
	}
	busy, all, _ := processorTime()
	if busy > all {
		t.Errorf("the processors were busy for %v of %v", busy, all)
	}
	if _, ok := settle(t.Context(), time.Nanosecond); runtime.GOOS == "linux" && !ok {
		t.Error("the second measurement reports nothing")
	}
}
