package policy

import (
	"fmt"
	"strings"
	"time"
)

// Hours are spans of the local time of day, each from one minute up to another, exclusive. A span that ends
// before it begins extends over midnight.
type Hours []span

type span struct{ from, to time.Duration } // since midnight, by wall-clock time

// ParseHours parses spans such as 08:00-18:30.
func ParseHours(texts []string) (Hours, error) {
	var h Hours
	for _, text := range texts {
		from, to, ok := strings.Cut(strings.TrimSpace(text), "-")
		begin, err1 := time.Parse("15:04", from)
		end, err2 := time.Parse("15:04", to)
		if !ok || err1 != nil || err2 != nil || begin.Equal(end) {
			return nil, fmt.Errorf("quiet-hours %.40q: want a span such as 08:00-18:30", text)
		}
		h = append(h, span{sinceMidnight(begin), sinceMidnight(end)})
	}
	return h, nil
}

// Contain reports whether now is in one of the spans.
func (h Hours) Contain(now time.Time) bool {
	at := sinceMidnight(now)
	for _, s := range h {
		in := at >= s.from && at < s.to
		if s.from > s.to {
			in = at >= s.from || at < s.to
		}
		if in {
			return true
		}
	}
	return false
}

func sinceMidnight(t time.Time) time.Duration {
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
}
