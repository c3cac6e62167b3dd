package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pmpi/p2pmpi/internal/spelling"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// Exit statuses of commands, as in sysexits.h where it defines one. The exit statuses of a job are in package
// peer/job.
const (
	OK           = 0
	Usage        = 64  // wrong usage, configuration or input, or a home that is in use
	Unavailable  = 69  // not enough peers, or no peer where one is needed
	HomeUnusable = 73  // the home cannot be created, read or written
	Cancelled    = 130 // by the user
)

// hintNotAllowed is the hint for a user who has no access to a running peer (control.ErrNotAllowed).
const hintNotAllowed = "run this as that user, for example with sudo -u, or name a home of your own with --home"

// A Failure is an error with the exit status of the command.
type Failure struct {
	Status int
	Err    error
	Hint   string // advice for the user; may be empty
}

// Error returns the text of the cause.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Fail returns err as a Failure with the given status and hint, or nil if err is nil.
func Fail(status int, err error, hint string) error {
	if err == nil {
		return nil
	}
	return &Failure{status, err, hint}
}

// FailHome returns err as a Failure with status HomeUnusable if it reports an unusable home, and with
// status Usage otherwise.
func FailHome(err error) error {
	home, ok := errors.AsType[*homedir.Error](err)
	switch {
	case !ok:
		return Fail(Usage, err, "")
	case errors.Is(err, control.ErrNotAllowed):
		return Fail(HomeUnusable, home, hintNotAllowed)
	}
	return Fail(HomeUnusable, home, "choose another folder with --home or P2PMPI_HOME")
}

// FailDial converts an error of control.Dial for a command that needs a running peer. The hint is used if no
// peer is running.
func FailDial(err error, hint string) error {
	_, unusable := errors.AsType[*homedir.Error](err)
	switch {
	case errors.Is(err, control.ErrNotAllowed):
		return Fail(Unavailable, err, hintNotAllowed)
	case errors.Is(err, control.ErrNoPeer) && !unusable:
		return Fail(Unavailable, err, hint)
	}
	return FailHome(err)
}

// UsageError returns a Failure with status Usage.
func UsageError(format string, args ...any) error {
	return &Failure{Status: Usage, Err: fmt.Errorf(format, args...)}
}

// NoArgs is the Args function of a command without arguments.
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

// New returns a command with this package's form of errors and help.
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

// flagHint returns a hint that names the option that was probably meant and the command that lists all options.
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

// plainFlagError returns an error of pflag in the commands' words: options, and no text of package strconv.
func plainFlagError(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return errors.New(strings.Replace(err.Error(), "flag", "option", 1))
	}
	f := invalid.GetFlag()
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand
	}
	kind, known := kinds[f.Value.Type()]
	if !known {
		return fmt.Errorf("%s %w", name, errors.Unwrap(invalid))
	}
	return fmt.Errorf("%s %q: want %s", name, invalid.GetValue(), kind)
}

// kinds maps the types of options to descriptions. Options of other types have errors of their own.
var kinds = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number",
	"duration": "a time such as 500ms, 10s or 2m", "stringSlice": "a comma-separated list",
	"float64": "a number", "number of replicas": "a whole number or auto", "size of memory": "a size such as 512MiB",
}

// helpTemplate is cobra's template, with options wrapped at 80 columns and examples last.
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
{{.}}
{{end}}`

// Run executes c with args, reports an error on stderr, and returns the exit status.
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

// Print writes a result, as indented JSON if asJSON is true, and otherwise as text.
func Print[T any](w io.Writer, asJSON bool, result T, text func(T) string) error {
	if !asJSON {
		_, err := io.WriteString(w, text(result))
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(result)
}

// Report writes a failure in the commands' form. Each line of an error of several lines becomes an error
// of its own. A failure with empty text is not reported, because it has been reported before.
func Report(stderr io.Writer, name string, f *Failure) {
	width := Width(stderr)
	for line := range strings.Lines(f.Error()) {
		io.WriteString(stderr, Sentence(name+": error", strings.TrimSuffix(line, "\n"), width))
	}
	if f.Hint != "" {
		io.WriteString(stderr, Sentence(name+": hint", f.Hint, width))
	}
}

// Cause strips the operation and the file name from err, for a message that already names the file.
func Cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
