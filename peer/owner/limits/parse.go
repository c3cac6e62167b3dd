package limits

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// leastOf is the lowest value of each limit; with less, no program starts.
var leastOf = map[Kind]int64{
	Memory: 16 << 20, CPU: 1, Disk: 1 << 20, Processes: 16, Files: 32, Time: int64(time.Second), Upload: 16 << 10,
}

// None are settings without any limit.
var None = []string{"memory=none", "cpu=none", "disk=none", "processes=none", "files=none", "time=none", "upload=none"}

// Parse parses the limits of a slot in the owner's configuration, such as memory=512MiB or time=none. The
// error names every invalid one.
func Parse(settings []string) (Limits, error) {
	return Limits{}.With(settings)
}

// ParseJob parses the limits of a job. The limit of files applies to a single process, so a job has none.
func ParseJob(settings []string) (Limits, error) {
	l, err := Parse(settings)
	if l.Files != 0 {
		err = errors.Join(err, errors.New("files: limits a slot, not a job"))
	}
	return l, err
}

// With returns l with the limits in settings replaced.
func (l Limits) With(settings []string) (Limits, error) {
	err := l.set(settings)
	return l, err
}

// With returns g with the limits in slot and job replaced.
func (g Grant) With(slot, job []string) (Grant, error) {
	err := errors.Join(g.Slot.set(slot), g.Job.set(job))
	return g, err
}

func (l *Limits) set(settings []string) error {
	var errs []error
	for _, s := range settings {
		name, value, _ := strings.Cut(strings.TrimSpace(s), "=")
		k := Kind(strings.TrimSpace(name))
		if !slices.Contains(kinds, k) {
			errs = append(errs, fmt.Errorf("%q: want memory=, cpu=, disk=, processes=, files=, time= or upload=", s))
			continue
		}
		n, err := parse(k, strings.TrimSpace(value))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", k, value, err))
			continue
		}
		*l.field(k) = n
	}
	return errors.Join(errs...)
}

// none means no limit.
const none = "none"

func parse(k Kind, text string) (int64, error) {
	if text == none {
		return 0, nil
	}
	n, err := parseNumber(k, text)
	if err == nil && n < leastOf[k] {
		return 0, fmt.Errorf("want %s or more, or none", format(k, leastOf[k]))
	}
	return n, err
}

func parseNumber(k Kind, text string) (int64, error) {
	switch k {
	case CPU:
		percent, isPercent := strings.CutSuffix(text, "%")
		n, err := strconv.ParseInt(percent, 10, 32)
		if err != nil || !isPercent {
			return 0, errors.New("want a part of one processor such as 50%, or none")
		}
		return n, nil
	case Processes, Files:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return 0, errors.New("want a number, or none")
		}
		return n, nil
	case Time:
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, errors.New("want a time such as 12h, or none")
		}
		return int64(d), nil
	case Upload:
		text = strings.TrimSuffix(text, "/s")
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n > math.MaxInt64 {
		return 0, errors.New("want a size such as 512MiB, or none")
	}
	return int64(n), nil
}

// format formats a limit for users, such as "512 MiB" or "50 % of a processor".
func format(k Kind, n int64) string {
	switch k {
	case CPU:
		return fmt.Sprintf("%d %% of a processor", n)
	case Processes, Files:
		return strconv.FormatInt(n, 10)
	case Time:
		return time.Duration(n).Round(time.Second).String()
	case Upload:
		return humanize.IBytes(uint64(n)) + "/s"
	}
	return humanize.IBytes(uint64(max(0, n)))
}
