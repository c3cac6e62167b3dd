package traffic

import (
	"fmt"
	"testing"
)

// TestOutputIsOfAllRanks checks that each rank has its lines in the output, and the format of the lines.
func TestOutputIsOfAllRanks(t *testing.T) {
	lines := Output(1, 20, 10, 3, 1000)
	if len(lines) != 2*3 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for i, line := range lines {
		var rank, rounds int
		var sum uint64
		n, err := fmt.Sscanf(line, "rank %d rounds %d checksum %x", &rank, &rounds, &sum)
		if n != 3 || err != nil || rank != i%3 || rounds != 10*(i/3+1) {
			t.Errorf("line %d is %q", i, line)
		}
	}
}

func TestMessagesAreWithinBounds(t *testing.T) {
	lengths := make(map[bool]int)
	for round := range 1000 {
		for _, m := range Round(1, round, 4, 5000) {
			length := len(m.Payload())
			if m.From < 0 || m.From > 3 || m.To < 0 || m.To > 3 || length > 5000 {
				t.Errorf("%d bytes from %d to %d", length, m.From, m.To)
			}
			lengths[length > 100]++
		}
	}
	if lengths[true] == 0 || lengths[false] == 0 {
		t.Errorf("long and short messages: %v", lengths)
	}
}
