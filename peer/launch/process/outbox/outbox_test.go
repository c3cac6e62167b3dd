package outbox

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// texts returns a batch's records as strings.
func texts(b Batch) []string {
	var ts []string
	for data := b.Data; len(data) > 0; {
		n := job.RecordLen(data)
		ts = append(ts, string(data[:n]))
		data = data[n:]
	}
	return ts
}

func TestRecordBoundaries(t *testing.T) {
	long := strings.Repeat("x", job.MaxRecord)
	cases := map[string]struct {
		in    []string
		whole bool
		want  []string
	}{
		"lines":                    {in: []string{"a\nb\n"}, want: []string{"a\n", "b\n"}},
		"line in three reads":      {in: []string{"a", "b", "c\nd\n"}, want: []string{"abc\n", "d\n"}},
		"empty lines":              {in: []string{"\n\n"}, want: []string{"\n", "\n"}},
		"unfinished, ended itself": {in: []string{"a\nb"}, whole: true, want: []string{"a\n", "b"}},
		"unfinished, killed":       {in: []string{"a\nb"}, want: []string{"a\n"}},
		"long line":                {in: []string{long + "yz\n"}, want: []string{long, "yz\n"}},
		"piece ends at newline":    {in: []string{long[1:], "\n", "b\n"}, want: []string{long[1:] + "\n", "b\n"}},
		"newline after a piece":    {in: []string{long, "\n"}, want: []string{long, "\n"}},
		"nothing":                  {in: nil, want: nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var b Box
			for _, s := range c.in {
				b.Append([]byte(s))
			}
			b.Close(c.whole)
			var got []string
			end := false
			for batch, ok := b.Next(); ok; batch, ok = b.Next() {
				if batch.First != uint64(len(got)) || end {
					t.Errorf("record %d follows %d records, end %v", batch.First, len(got), end)
				}
				got, end = append(got, texts(batch)...), batch.End
			}
			if !end || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %d records %.40q, end %v; want %.40q", len(got), got, end, c.want)
			}
			if again, ok := b.Next(); ok {
				t.Errorf("handed out twice: %+v", again)
			}
		})
	}
}

func TestR6TakeoverBeginsAtTheFirstUnacknowledgedRecord(t *testing.T) {
	var b Box
	b.Append([]byte("0\n1\n2\n3\n"))
	b.Next()
	b.Acknowledge(2)
	b.Rewind()
	got, _ := b.Next()
	if want := []string{"2\n", "3\n"}; got.First != 2 || !reflect.DeepEqual(texts(got), want) {
		t.Errorf("got %d: %q, want 2: %q", got.First, texts(got), want)
	}
}

func TestR6SlowReplicaDropsAcknowledgedRecords(t *testing.T) {
	var b Box
	b.Append([]byte("0\n1"))
	b.Acknowledge(3)
	b.Append([]byte("\n2\n3\n"))
	b.Close(true)
	b.Rewind()
	got, ok := b.Next()
	if !ok || got.First != 3 || !reflect.DeepEqual(texts(got), []string{"3\n"}) || !got.End {
		t.Errorf("got %+v %q, %v; want record 3 and the end", got, texts(got), ok)
	}
}

func TestEndIsSentAloneWithoutPendingRecords(t *testing.T) {
	var b Box
	b.Append([]byte("0\n"))
	b.Next()
	if _, ok := b.Next(); ok {
		t.Error("got an end before Close")
	}
	b.Close(true)
	got, ok := b.Next()
	if !ok || !got.End || len(texts(got)) != 0 || got.First != 1 {
		t.Errorf("got %+v, %v; want the end alone", got, ok)
	}
}

func TestFullUntilAcknowledged(t *testing.T) {
	var b Box
	lines := 0
	for ; !b.Full(); lines++ {
		b.Append([]byte("\n"))
	}
	for _, ok := b.Next(); ok; _, ok = b.Next() {
	}
	if !b.Full() {
		t.Error("sending made room; only an acknowledgment may")
	}
	b.Acknowledge(uint64(lines))
	if b.Full() || b.size != 0 {
		t.Errorf("size %d after everything was acknowledged", b.size)
	}
}

// TestShortSegmentsCountWithTheirOverhead checks that single lines count with their overhead: they take
// more memory than their bytes.
func TestShortSegmentsCountWithTheirOverhead(t *testing.T) {
	var b Box
	lines := 0
	for ; !b.Full(); lines++ {
		b.Append([]byte("\n"))
		b.Next()
	}
	if lines > Limit/overhead {
		t.Errorf("%d empty lines went in", lines)
	}
	b.Acknowledge(uint64(lines))
	if b.size != 0 {
		t.Errorf("size %d after everything was acknowledged", b.size)
	}
}

// TestR6NeverTornNeverLostNeverTwice simulates a user that counts records. Replicas of one rank write the
// same bytes in different chunks, the output leader changes at random moments, and acknowledgements lag.
func TestR6NeverTornNeverLostNeverTwice(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for round := range 200 {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		if err := fuzzOnce(r); err != nil {
			t.Fatalf("seed %d round %d: %v", seed, round, err)
		}
	}
}

// replica is a Box with the bytes that its program has yet to write.
type replica struct {
	Box
	left []byte
}

func fuzzOnce(r *rand.Rand) error {
	written := randomOutput(r)
	replicas := make([]replica, 3)
	for i := range replicas {
		replicas[i].left = written
	}
	var got []byte
	var count uint64
	for leader := 0; ; {
		w := &replicas[r.IntN(len(replicas))]
		n := r.IntN(len(w.left) + 1)
		w.Append(w.left[:n])
		if w.left = w.left[n:]; len(w.left) == 0 {
			w.Close(true)
		}
		batch, ok := replicas[leader].Next()
		if ok && batch.First > count {
			return fmt.Errorf("records %d..%d were lost", count, batch.First-1)
		}
		for i, record := range texts(batch) {
			if batch.First+uint64(i) == count {
				got = append(got, record...)
				count++
			}
		}
		if batch.End {
			break
		}
		if leader < 2 && r.IntN(10) == 0 {
			leader++ // the previous output leader has failed
			replicas[leader].Rewind()
		}
		replicas[r.IntN(len(replicas))].Acknowledge(count)
	}
	if !bytes.Equal(got, written) {
		return fmt.Errorf("the user got %d bytes, want the %d written ones", len(got), len(written))
	}
	return nil
}

// randomOutput returns lines of all lengths, some longer than a record.
func randomOutput(r *rand.Rand) []byte {
	var out []byte
	for range r.IntN(60) {
		n := r.IntN(30)
		if r.IntN(20) == 0 {
			n = job.MaxRecord - 2 + r.IntN(5)
		}
		out = append(out, bytes.Repeat([]byte{byte('a' + r.IntN(26))}, n)...)
		out = append(out, '\n')
	}
	return append(out, "unfinished"[:r.IntN(10)]...)
}

func FuzzBox(f *testing.F) {
	f.Add([]byte("a\nb"), 3)
	f.Add([]byte("\n\n\n"), 1)
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		step = max(1, step)
		var b Box
		for rest := in; len(rest) > 0; {
			n := min(step, len(rest))
			b.Append(rest[:n])
			rest = rest[n:]
		}
		b.Close(true)
		var out []byte
		var count uint64
		for batch, ok := b.Next(); ok; batch, ok = b.Next() {
			if records := uint64(len(texts(batch))); batch.First != count {
				t.Fatalf("got record %d, want %d", batch.First, count)
			} else {
				count += records
			}
			out = append(out, batch.Data...)
		}
		if !bytes.Equal(out, in) {
			t.Fatalf("got %q, want %q", out, in)
		}
	})
}

func TestSkipContinuesAfterAcknowledgedRecords(t *testing.T) {
	var b Box
	b.Append([]byte("a\nb\n"))
	if n, all := b.Shown(); n != 2 || all {
		t.Errorf("%d records, all shown %v", n, all)
	}
	if b.Skip(1) {
		t.Error("Skip to fewer records than were written succeeded")
	}
	if b.Append([]byte("c")); !b.Unfinished() || b.Skip(5) {
		t.Error("Skip within a line succeeded")
	}
	b.Append([]byte("\n"))
	if b.Unfinished() || !b.Skip(5) {
		t.Fatal("Skip failed")
	}
	if n, all := b.Shown(); n != 5 || !all {
		t.Errorf("%d records, all shown %v", n, all)
	}
	b.Append([]byte("f\n"))
	b.Rewind()
	if batch, _ := b.Next(); batch.First != 5 || !reflect.DeepEqual(texts(batch), []string{"f\n"}) {
		t.Errorf("after Skip: got record %d, %v", batch.First, texts(batch))
	}
}
