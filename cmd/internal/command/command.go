package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pmpi/p2pmpi/internal/spelling"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/peer"
)

// Exit statuses of commands, those of sysexits.h where it has one. A job's own
// are in package peer/job.
const (
	OK           = 0
	Usage        = 64  // wrong usage, configuration or input, or a home that is in use
	Unavailable  = 69  // not enough peers, or no peer where one was needed
	HomeUnusable = 73  // a home that cannot be made, read or written
	Cancelled    = 130 // by the user
)

// HintNotAllowed is the hint for a user who may not ask a running peer (peer.ErrNotAllowed).
const HintNotAllowed = "run this as that user, for example with sudo -u, or name a home of your own with --home"

// A Failure is an error that knows how the command ends.
type Failure struct {
	Status int
	Err    error
	Hint   string // what the user can do; may be empty
}

// Error is the error's own text.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Fail makes err end the command with status.
func Fail(status int, err error, hint string) error {
	if err == nil {
		return nil
	}
	return &Failure{status, err, hint}
}

// FailHome makes the command end with HomeUnusable if err says that a home cannot be used, and with Usage
// otherwise.
func FailHome(err error) error {
	home, ok := errors.AsType[*peer.HomeError](err)
	switch {
	case !ok:
		return Fail(Usage, err, "")
	case errors.Is(err, peer.ErrNotAllowed):
		return Fail(HomeUnusable, home, HintNotAllowed)
	}
	return Fail(HomeUnusable, home, "choose another folder with --home or P2PMPI_HOME")
}

// FailDial turns an error of peer.Dial into the failure of a command that needs a running peer. The hint says
// what to do if no peer is running.
func FailDial(err error, hint string) error {
	_, unusable := errors.AsType[*peer.HomeError](err)
	switch {
	case errors.Is(err, peer.ErrNotAllowed):
		return Fail(Unavailable, err, HintNotAllowed)
	case errors.Is(err, peer.ErrNoPeer) && !unusable:
		return Fail(Unavailable, err, hint)
	}
	return FailHome(err)
}

// Misused makes a wrong usage of a sentence.
func Misused(format string, args ...any) error {
	return &Failure{Status: Usage, Err: fmt.Errorf(format, args...)}
}

// NoArgs is Args of a command that takes options only.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	f := &Failure{Status: Usage, Err: fmt.Errorf("unexpected argument %q", args[0])}
	names := []string{}
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	if near := spelling.Nearest(args[0], names); near != "" {
		f.Hint = fmt.Sprintf("did you mean %s %s?", c.CommandPath(), near)
	} else if c.Flags().Lookup(args[0]) != nil {
		f.Hint = fmt.Sprintf("did you mean %s --%s?", c.CommandPath(), args[0])
	}
	return f
}

// New returns a command that takes its errors and its help from here.
func New(use, short string) *cobra.Command {
	c := &cobra.Command{
		Use:                   use,
		Short:                 short,
		Version:               version.Release,
		SilenceUsage:          true,
		SilenceErrors:         true,
		DisableFlagsInUseLine: true,
	}
	c.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	c.SetHelpTemplate(helpTemplate)
	c.CompletionOptions.DisableDefaultCmd = true
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &Failure{Usage, plainFlagError(err), flagHint(c, err)}
	})
	c.Flags().SortFlags = false
	return c
}

// flagHint says which option was probably meant, and where all are listed.
func flagHint(c *cobra.Command, err error) string {
	all := c.CommandPath() + " --help lists the options"
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return all
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	name := unknown.GetSpecifiedName()
	if near := spelling.Nearest(name, names); near != "" {
		return "did you mean --" + near + "? " + all
	}
	if other := strings.ToLower(name); len(name) == 1 && c.Flags().ShorthandLookup(other) != nil {
		return "did you mean -" + other + "? " + all
	}
	return all
}

// plainFlagError leaves strconv's words out of pflag's error.
func plainFlagError(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	f := invalid.GetFlag()
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand
	}
	return fmt.Errorf("%s %q: want %s", name, invalid.GetValue(), kinds[f.Value.Type()])
}

// kinds names the types of options for people.
var kinds = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number",
	"duration": "a time such as 500ms, 10s or 2m", "stringSlice": "a list with commas between",
	"float64": "a number", "number of replicas": "a whole number or auto", "size of memory": "a size such as 512MiB",
}

// helpTemplate is cobra's, with options wrapped at 80 columns and examples last.
const helpTemplate = `{{.Short}}

Usage:
  {{.UseLine}}

{{.Long}}
{{if .HasAvailableSubCommands}}
Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}
Options:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}
{{with .Example}}

Examples:
{{.}}{{end}}
`

// Run carries out c with args, says on stderr what went wrong, and returns the
// exit status.
func Run(ctx context.Context, c *cobra.Command, args []string, stdout, stderr io.Writer) int {
	c.SetArgs(args)
	c.SetOut(stdout)
	c.SetErr(stderr)
	err := c.ExecuteContext(ctx)
	if err == nil {
		return OK
	}
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		f = &Failure{Status: Usage, Err: err}
	}
	Report(stderr, c.Name(), f)
	return f.Status
}

// Report writes a failure in the commands' form. An error of several lines, one
// for each thing wrong, becomes several errors; a failure with an empty text
// says nothing, since it was said before.
func Report(stderr io.Writer, name string, f *Failure) {
	width := Width(stderr)
	for line := range strings.Lines(f.Error()) {
		io.WriteString(stderr, Sentence(name+": error", strings.TrimSuffix(line, "\n"), width))
	}
	if f.Hint != "" {
		io.WriteString(stderr, Sentence(name+": hint", f.Hint, width))
	}
}

// Cause leaves the operation and the file's name out of err, for a sentence
// that names the file already.
func Cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
