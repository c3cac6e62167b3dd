package npb

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrUsage is wrapped by the errors that the user can correct: wrong arguments, or a wrong number
// of ranks. They are the same at every rank.
var ErrUsage = errors.New("wrong usage")

// options are the values of the arguments.
type options struct {
	class      string
	times      bool
	sequential bool
}

// parse parses the arguments of k. The class may be given with or without -class.
func (k Kernel) parse(args []string) (options, error) {
	o := options{class: k.Classes[0]}
	set := flag.NewFlagSet(k.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&o.class, "class", o.class, "")
	set.BoolVar(&o.times, "times", false, "")
	if k.Sequential {
		set.BoolVar(&o.sequential, "sequential", false, "")
	}
	if err := set.Parse(args); err != nil {
		return o, k.usage(err.Error())
	}
	switch set.NArg() {
	case 0:
	case 1:
		o.class = set.Arg(0)
	default:
		return o, k.usage(fmt.Sprintf("want one class, not %q", set.Args()))
	}
	o.class = strings.ToUpper(o.class)
	if !slices.Contains(k.Classes, o.class) {
		return o, k.usage(fmt.Sprintf("unknown class %q", o.class))
	}
	return o, nil
}

func (k Kernel) usage(reason string) error {
	flags := "[-times]"
	if k.Sequential {
		flags += " [-sequential]"
	}
	return fmt.Errorf("%w: %s; usage: %s %s [-class %s]", ErrUsage, reason, k.Name, flags, strings.Join(k.Classes, "|"))
}
