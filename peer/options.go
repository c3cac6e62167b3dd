package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/spelling"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
)

// An option has the same name everywhere: --cache-limit on the command line, P2PMPI_CACHE_LIMIT in the
// environment, cache-limit in the file.
const envPrefix = "P2PMPI"

// AddHomeFlags adds to flags the options that all commands have in common.
func (c *Config) AddHomeFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Home, "home", c.Home, "home `DIR` of the peer: its identity, settings and files (default ~/.p2pmpi)")
	flags.String("config", "", "configuration `FILE` (default config.yaml in the home)")
	flags.StringVar(&c.LogLevel, "log-level", c.LogLevel, "least severe `LEVEL` of messages to log: trace, debug, info, warn or error")
	flags.Lookup("home").DefValue = "" // differs between users; the usage text describes it
}

// plainDefaults makes the usage text show defaults as a user writes them: 1h and not 1h0m0s, a,b and not [a,b].
func plainDefaults(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		_, isList := f.Value.(pflag.SliceValue)
		switch {
		case strings.HasSuffix(f.DefValue, "h0m0s"):
			f.DefValue = strings.TrimSuffix(f.DefValue, "0m0s")
		case isList && f.DefValue != "[]":
			f.DefValue = strings.Trim(f.DefValue, "[]")
		}
	})
}

// AddNetworkFlags adds to flags the options of commands that join a network.
func (c *Config) AddNetworkFlags(flags *pflag.FlagSet) {
	flags.Var(&addressList{parse: c.setSupernodes}, "supernode", "join the network through the peer at the multiaddr `ADDR`; may be repeated")
	flags.StringVar(&c.Network, "network", c.Network, "`NAME` of the network to join")
	flags.BoolVar(&c.Open, "open", c.Open, "do not warn that --network names an open network, which anyone can join")
	flags.StringVar(&c.Token, "token", c.Token, "`FILE` with an invitation to a private network (default the one that p2pboot network join accepted)")
	flags.Var(&addressList{parse: c.setListen}, "listen", "multiaddr `ADDR` to listen on, or none; may be repeated (default TCP and QUIC on all interfaces, free ports)")
	flags.StringSliceVar(&c.Channels, "channels", c.Channels, "`KINDS` of channels between processes, best first (default shm,tcp,stream)")
	flags.BoolVar(&c.MDNS, "mdns", c.MDNS, "find peers on the local network by mDNS")
	flags.BoolVar(&c.NAT, "nat", c.NAT, "map router ports, and use relays and hole punching")
	flags.StringVar((*string)(&c.Reachability), "reachability", string(c.Reachability), "`STATE` public if other peers can connect to this one, private if they cannot, or auto to detect it")
	flags.DurationVar(&c.GossipPeriod, "gossip-period", c.GossipPeriod, "`TIME` between two heartbeats of a job's peers")
	flags.DurationVar(&c.ToleratedHang, "tolerated-hang", c.ToleratedHang, "`TIME` of silence after which a peer of a job fails; unless you set it, a job without replicas (-r 1) waits as long as it has run, 30s to 10m")
	flags.StringVar(&c.Detector, "detector", c.Detector, "`KIND` of failure detector: fast, or gossip as in the original P2P-MPI")
	flags.StringVar(&c.Site, "site", c.Site, "`NAME` of this machine's site: replicas of a rank go to different sites if possible, and a file enters each site about once")
	flags.Int64Var(&c.CacheLimit, "cache-limit", c.CacheLimit, "keep at most `MIB` MiB of staged files")
	plainDefaults(flags)
}

// AddVolunteerFlags adds to flags the options of a peer that donates slots.
func (c *Config) AddVolunteerFlags(flags *pflag.FlagSet) {
	flags.IntVar(&c.Slots, "slots", c.Slots, "run at most `N` processes of jobs at a time (default one per processor)")
	flags.Lookup("slots").DefValue = "0" // differs between machines
	flags.IntVar(&c.MaxJobs, "max-jobs", c.MaxJobs, "run at most `N` jobs at a time; 0: no limit")
	flags.StringSliceVar(&c.Allow, "allow", c.Allow, "let the submitters with these peer `IDS` run native programs; this does not exclude others (see --accept)")
	flags.StringSliceVar(&c.Accept, "accept", c.Accept, "`RULES` for submitters: KIND for everyone, or CLASS=KIND. KIND is none, wasm or native. CLASS is mine, allowed, members (of a private network) or everyone. A rule can end with \" slots=N\" and with limits on each process, such as \" memory=256MiB\" (default wasm for everyone, native for the other classes)")
	flags.StringSliceVar(&c.SlotLimits, "slot-limits", c.SlotLimits, "`LIMITS` on each process, separated by commas: memory=512MiB, cpu=50%, disk=1GiB, processes=64, files=1024, time=12h or upload=1MiB (per second); NAME=none: no limit (p2pboot status shows the defaults)")
	flags.StringSliceVar(&c.JobLimits, "job-limits", c.JobLimits, "`LIMITS` on all processes of a job together, in the form of --slot-limits")
	flags.IntVar(&c.Niceness, "niceness", c.Niceness, "niceness `N` of programs, 1 to 19")
	flags.StringSliceVar(&c.Deny, "deny", c.Deny, "give no slots to the submitters with these peer `IDS`")
	flags.StringSliceVar(&c.PauseWhen, "pause-when", c.PauseWhen, "`RULES` that pause this peer: active (a user works at the machine), battery, load (other programs are busy), metered (the connection is); or none")
	flags.StringVar(&c.PauseJobs, "pause-jobs", c.PauseJobs, "`ACTION` during a pause for jobs that cannot be migrated: go-on, end, or a TIME such as 1h to suspend them before they end")
	flags.StringSliceVar(&c.QuietHours, "quiet-hours", c.QuietHours, "pause this peer every day during `FROM-TO`, local time, such as 08:00-18:30")
	flags.StringSliceVar(&c.Readable, "readable", c.Readable, "absolute `PATHS` that native programs may also read, such as /opt/lib")
	flags.BoolVar(&c.RequireConfinement, "require-confinement", c.RequireConfinement, "refuse native programs of members and strangers if they cannot be sandboxed")
	flags.StringVar(&c.Owner, "owner", c.Owner, "`NAME` of this machine's owner, the same on all machines of the owner: replicas of a rank go to different owners if possible")
	flags.StringVar(&c.WasmEngine, "wasm-engine", c.WasmEngine, "run WebAssembly modules in the engine at `PATH`, whose compiler you trust (default the built-in wazero)")
	flags.StringVar(&c.Machine, "machine", c.Machine, "`NAME` of the physical machine, if it hosts several virtual machines with peers: replicas of a rank never share a machine; auto: this system is the machine; none: no name")
	flags.StringVar(&c.DataListen, "data-listen", c.DataListen, "`ADDR` (host:port) for direct connections between processes, or none (default a free port)")
	flags.BoolVar(&c.Relay, "relay", c.Relay, "relay connections between other peers")
	flags.IntVar(&c.RelayPeers, "relay-peers", c.RelayPeers, "relay for at most `N` peers, 1 to 512")
	flags.Int64Var(&c.RelayData, "relay-data", c.RelayData, "relay at most `MIB` MiB in each direction of a connection; 0: no limit")
	flags.DurationVar(&c.RelayTime, "relay-time", c.RelayTime, "relay a connection for at most `TIME`; 0: no limit")
	flags.StringVar(&c.HTTP, "http", c.HTTP, "serve the status page and metrics on `ADDR` (host:port)")
	flags.Bool("detach", false, "run in the background, and return when the peer is ready")
	plainDefaults(flags)
}

// AddHaltFlags adds to flags the options that only p2phalt has.
func AddHaltFlags(flags *pflag.FlagSet) {
	flags.Bool("drain", false, "wait for jobs that cannot be migrated")
	flags.Bool("now", false, "end at once, without a handover")
}

// RunOptions are the options that only p2prun has. They are defined here because the commands share one
// configuration file, so each command must know all keys.
type RunOptions struct {
	Ranks        int           // -n
	Replicas     Replicas      // -r, number of replicas of each rank
	Success      float64       // with AutoReplicas: required probability of success; 0 if none is given
	Expect       time.Duration // with AutoReplicas: expected duration of the job; 0 if not known
	Strategy     string        // -a
	As           string        // kind of program that a Go package is built as: AsAuto, AsNative or AsWasm
	Files        string        // -l, file that lists inputs
	Inputs       []string      // -i, input files, folders and URLs
	Outputs      []string      // -o, patterns of output files to collect
	OutputDir    string        // folder for the outputs, empty or new; "" is results-<job>, or the current one for one named file
	Executable   bool          // keep the executable bits of collected files
	Wait         int           // -w, seconds to wait for enough peers
	MinMemory    Bytes         // least memory for each process; 0 for any
	OS, Arch     string        // platform of the peers, as GOOS and GOARCH; empty for any
	Peers        []string      // IDs of the only peers to use; empty for any
	NotPeers     []string      // IDs of peers not to use
	Mine         []string      // IDs of the user's own peers, for OnlyMine
	OnlyMine     bool          // use only the user's own peers
	DryRun       bool          // only print where the job would run
	Timeout      time.Duration // bound on the whole job; 0 for none
	Local        int           // number of temporary peers to start on this machine; 0 for none
	Lose         time.Duration // time after which one of those peers is killed; 0 for never
	Verbose      bool          // print how any two processes reach each other, and why
	OnDivergence string        // action when the replicas of a rank diverge: stop or warn
	Away         time.Duration // how long the job continues without a connection to this machine, or without a p2prun
	Heal         string        // On or Off: whether lost replicas are replaced
	Attach       bool          // resume a job of another p2prun
	Cancel       bool          // with Attach: end the job
	TagOutput    bool          // write "[rank] " before each line of output
	JSON         bool          // write events as JSON lines to standard error
}

// Replicas is a number of replicas.
type Replicas int

// Values of RunOptions.As.
const (
	AsAuto   = "auto"   // native, or a module if too few peers accept native programs
	AsNative = "native" // executables for the platforms of the peers
	AsWasm   = "wasm"   // a WebAssembly module, which runs on all platforms
)

// AutoReplicas lets p2prun choose the number of replicas from the reliability of the peers that it finds.
const AutoReplicas Replicas = math.MinInt

// Set parses a number, or auto.
func (r *Replicas) Set(text string) error {
	if text == "auto" {
		*r = AutoReplicas
		return nil
	}
	n, err := strconv.Atoi(text)
	*r = Replicas(n)
	return err
}

// String returns the text that Set parses.
func (r *Replicas) String() string {
	if *r == AutoReplicas {
		return "auto"
	}
	return strconv.Itoa(int(*r))
}

// Type returns the name of the value's type in error messages.
func (r *Replicas) Type() string { return "number of replicas" }

// Bytes is an amount of memory.
type Bytes uint64

// Set parses a size with its unit, such as 512MiB.
func (b *Bytes) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	*b = Bytes(n)
	return err
}

// String returns a text that Set parses.
func (b *Bytes) String() string { return strconv.FormatUint(uint64(*b), 10) }

// Type returns the name of the value's type in error messages.
func (b *Bytes) Type() string { return "size of memory" }

// Values of Heal.
const (
	On  = "on"
	Off = "off"
)

// DefaultRunOptions returns the options of p2prun that apply if only -n is given.
func DefaultRunOptions() RunOptions {
	return RunOptions{Replicas: 1, Strategy: "spread", As: AsAuto, Wait: 10, OnDivergence: submit.Stop, Heal: On, Away: submit.MaxAway}
}

// Filter returns the filter for peers that these options ask for. Every error is a user error.
func (o *RunOptions) Filter() (discovery.Filter, error) {
	wanted, list := "peer", o.Peers
	if o.OnlyMine {
		wanted, list = "mine", o.Mine
	}
	only, err1 := policy.ParseIDs(wanted, list)
	not, err2 := policy.ParseIDs("not-peer", o.NotPeers)
	var err3 error
	if o.OnlyMine && len(o.Peers) > 0 {
		err3 = errors.New("--only-mine and --peer cannot be combined")
	}
	return discovery.Filter{
		MinMemory: uint64(o.MinMemory), OS: o.OS, Arch: o.Arch, Only: only, Not: not,
	}, errors.Join(err1, err2, err3)
}

// AddFlags adds to flags the options that only p2prun has.
func (o *RunOptions) AddFlags(flags *pflag.FlagSet) {
	flags.IntVarP(&o.Ranks, "ranks", "n", o.Ranks, "number `N` of ranks (required)")
	flags.VarP(&o.Replicas, "replicas", "r", "number `R` of replicas of each rank, or auto; with 2, the job survives the loss of a peer")
	flags.Float64Var(&o.Success, "success", o.Success, "with -r auto: required probability `P` that the job succeeds, such as 0.99")
	flags.DurationVar(&o.Expect, "expect", o.Expect, "with -r auto: expected run `TIME` of the job (default --timeout)")
	flags.StringVarP(&o.Strategy, "strategy", "a", o.Strategy, "allocation `STRATEGY`: spread (many near peers, few processes on each), concentrate (few near peers), or dataspread or dataconcentrate, which prefer peers that cache the inputs")
	flags.StringVar(&o.As, "as", o.As, "build a Go package as `KIND`: native, wasm, or auto, which is wasm if too few peers accept native programs")
	flags.StringVarP(&o.Files, "files", "l", o.Files, "stage the inputs that `FILE` lists, one on each line")
	flags.StringArrayVarP(&o.Inputs, "input", "i", o.Inputs, "stage the input `FILE`, folder or URL; may be repeated")
	flags.StringArrayVarP(&o.Outputs, "output", "o", o.Outputs, "collect the output files that match `PATTERN`; may be repeated")
	flags.StringVar(&o.OutputDir, "output-dir", o.OutputDir, "put the output files into `FOLDER`, which is new or empty (default results-JOB, or the current folder for one named file)")
	flags.BoolVar(&o.Executable, "output-executable", o.Executable, "keep the executable bits of output files")
	flags.IntVarP(&o.Wait, "wait", "w", o.Wait, "wait at most `SECONDS` for enough peers")
	flags.Var(&o.MinMemory, "min-memory", "use only peers with at least `SIZE` of memory for each process, such as 2GiB")
	flags.StringVar(&o.OS, "os", o.OS, "use only peers with this operating `SYSTEM`, such as linux")
	flags.StringVar(&o.Arch, "arch", o.Arch, "use only peers with this type of `PROCESSOR`, such as arm64")
	flags.StringSliceVar(&o.Peers, "peer", o.Peers, "use only the peers with these `IDS`")
	flags.StringSliceVar(&o.NotPeers, "not-peer", o.NotPeers, "do not use the peers with these `IDS`")
	flags.StringSliceVar(&o.Mine, "mine", o.Mine, "peer `IDS` of your machines, for --only-mine; the peer on the home is always included")
	flags.BoolVar(&o.OnlyMine, "only-mine", o.OnlyMine, "use only your own peers")
	flags.BoolVar(&o.DryRun, "dry-run", o.DryRun, "show where the job would run, and do not run it")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "end the job after `TIME`, such as 90s or 10m (default no limit)")
	flags.DurationVar(&o.Away, "away", o.Away, "with -r 2 or more: let the job continue for `TIME`, at most 1h, after it has lost its submitter; p2prun tries to reconnect for the same time")
	flags.IntVar(&o.Local, "local", o.Local, "start `P` temporary peers on this machine, 1 to 256, and run the job there")
	flags.DurationVar(&o.Lose, "lose", o.Lose, "with --local: kill one of these peers `TIME` after the ranks have started")
	flags.BoolVar(&o.Verbose, "verbose", o.Verbose, "show how each pair of processes is connected, the round-trip time, and why there is no better connection")
	flags.StringVar(&o.OnDivergence, "on-divergence", o.OnDivergence, "`ACTION` if the replicas of a rank diverge: stop (end the job) or warn")
	flags.StringVar(&o.Heal, "heal", o.Heal, "with -r 2 or more: replace lost replicas while the job runs (`on|off`)")
	flags.BoolVar(&o.Attach, "attach", o.Attach, "resume a job whose p2prun was killed")
	flags.BoolVar(&o.Cancel, "cancel", o.Cancel, "with --attach: end the job")
	flags.BoolVar(&o.TagOutput, "tag-output", o.TagOutput, `write "[rank] " before each line of output`)
	flags.BoolVar(&o.JSON, "json", o.JSON, "print events as JSON lines on standard error")
	plainDefaults(flags)
}

// Fill sets every flag that the command line does not set, from the environment or else from the
// configuration file. It must be called after flags are parsed. Every error is a user error: it names the
// option and the source of its value.
func Fill(flags *pflag.FlagSet) error {
	v := viper.New()
	v.SetEnvPrefix(envPrefix)
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if err := v.BindPFlags(flags); err != nil {
		return fmt.Errorf("bind options: %w", err)
	}
	early := func(name string) string { // value of an option that locates the file
		if v.IsSet(name) {
			return v.GetString(name)
		}
		return flags.Lookup(name).Value.String()
	}
	if err := readFile(v, early("config"), early("home")); err != nil {
		return err
	}
	errs := checkVariables(os.Environ())
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || !v.IsSet(f.Name) || f.Name == "help" || f.Name == "version" {
			return
		}
		if err := set(f, v.Get(f.Name)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", origin(v, f.Name), err))
		}
	})
	return errors.Join(errs...)
}

// readFile reads the configuration file into v. The default file need not exist.
func readFile(v *viper.Viper, file, home string) error {
	asked := file != ""
	if !asked {
		if home == "" {
			return nil
		}
		file = filepath.Join(home, "config.yaml")
	}
	if _, err := os.Stat(file); !asked && errors.Is(err, fs.ErrPermission) {
		return nil // another user's home; reported when it is used
	}
	read := viper.New()
	read.SetConfigFile(file)
	read.SetConfigType("yaml")
	err := read.ReadInConfig()
	switch {
	case !asked && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)):
		return nil
	case err != nil:
		return fmt.Errorf("configuration file %s: %s", file, plainCause(err))
	}
	if err := checkKeys(read.AllKeys(), asked); err != nil {
		return fmt.Errorf("configuration file %s: %w", file, err)
	}
	v.SetConfigFile(file) // for error messages
	return v.MergeConfigMap(read.AllSettings())
}

// plainCause returns the cause of an error in a configuration file, on one line.
func plainCause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	text := err.Error()
	if parse, ok := errors.AsType[viper.ConfigParseError](err); ok {
		text = strings.TrimPrefix(parse.Unwrap().Error(), "yaml: ")
	}
	return strings.Join(strings.Fields(text), " ")
}

// checkKeys rejects keys that match no option. Ignoring a misspelt limit would leave the machine
// unprotected. It also rejects the key home, unless the user has named the file.
func checkKeys(keys []string, asked bool) error {
	known := allKeys()
	unknown := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return slices.Contains(known, k) })
	if len(unknown) > 0 {
		slices.Sort(unknown)
		err := fmt.Errorf("unknown key %s", strings.Join(unknown, ", "))
		for _, k := range unknown {
			if near := spelling.Nearest(k, known); near != "" {
				return fmt.Errorf("%w (did you mean %s?)", err, near)
			}
		}
		return err
	}
	if slices.Contains(keys, "home") && !asked {
		return errors.New("the configuration file in a home cannot set the home; use --home")
	}
	return nil
}

// checkVariables rejects environment variables whose names are misspelt names of options. Other unknown
// variables may belong to another program.
func checkVariables(environment []string) (errs []error) {
	known := []string{proclink.CheckVariable, proclink.CollectiveVariable, variableOf("config")}
	for _, key := range allKeys() {
		known = append(known, variableOf(key))
	}
	for _, setting := range environment {
		name, _, _ := strings.Cut(setting, "=")
		if !strings.HasPrefix(name, envPrefix+"_") || slices.Contains(known, name) {
			continue
		}
		if near := nearestVariable(name, known); near != "" {
			errs = append(errs, fmt.Errorf("environment variable %s: no option has that name (did you mean %s?)", name, near))
		}
	}
	return errs
}

// nearestVariable returns the known variable whose name is nearest to name, or "". It ignores the common
// prefix.
func nearestVariable(name string, known []string) string {
	ends := make([]string, len(known))
	for i, k := range known {
		ends[i] = strings.TrimPrefix(k, envPrefix+"_")
	}
	if near := spelling.Nearest(strings.TrimPrefix(name, envPrefix+"_"), ends); near != "" {
		return envPrefix + "_" + near
	}
	return ""
}

// variableOf returns the name of the environment variable that sets an option.
func variableOf(option string) string {
	return envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))
}

// allKeys returns the names of the options of all commands.
func allKeys() []string {
	var keys []string
	everyFlag().VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" {
			keys = append(keys, f.Name)
		}
	})
	return keys
}

// everyFlag returns the options of all commands, with zero values.
func everyFlag() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c := new(Config)
	c.AddHomeFlags(flags)
	c.AddNetworkFlags(flags)
	c.AddVolunteerFlags(flags)
	AddHaltFlags(flags)
	new(RunOptions).AddFlags(flags)
	return flags
}

// set sets f to the value that viper found. A list is a YAML list, or text with commas between its
// elements.
func set(f *pflag.Flag, value any) error {
	list, isList := f.Value.(pflag.SliceValue)
	elements, given := value.([]any)
	switch {
	case isList && given:
		texts := make([]string, len(elements))
		for i, e := range elements {
			texts[i] = fmt.Sprint(e)
		}
		return list.Replace(texts)
	case isList:
		return list.Replace(splitList(fmt.Sprint(value)))
	}
	if err := f.Value.Set(fmt.Sprint(value)); err != nil {
		return fmt.Errorf("%q is not a valid %s", fmt.Sprint(value), f.Value.Type())
	}
	return nil
}

// origin describes the source of an option's value, for an error message.
func origin(v *viper.Viper, name string) string {
	env := variableOf(name)
	if _, ok := os.LookupEnv(env); ok {
		return "environment variable " + env
	}
	return fmt.Sprintf("configuration file %s: key %s", v.ConfigFileUsed(), name)
}
