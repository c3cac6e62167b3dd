package peer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/p2pmpi/p2pmpi/peer/owner/lending"
)

// fill parses args as a command does, with file as the configuration, and returns the results.
func fill(t *testing.T, file string, env map[string]string, args ...string) (Config, RunOptions, error) {
	t.Helper()
	t.Setenv("P2PMPI_HOME", t.TempDir())
	if file != "" {
		if err := os.WriteFile(filepath.Join(os.Getenv("P2PMPI_HOME"), "config.yaml"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for k, v := range env {
		t.Setenv(k, v)
	}
	c, o := DefaultConfig(), DefaultRunOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.AddHomeFlags(flags)
	c.AddNetworkFlags(flags)
	c.AddVolunteerFlags(flags)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return c, o, Fill(flags)
}

func TestFlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	const file = "slots: 3\nmax-jobs: 4\nnetwork: file\ngossip-period: 2s\nlisten: [/ip4/127.0.0.1/tcp/1, /ip4/127.0.0.1/tcp/2]\nreplicas: 2\n"
	env := map[string]string{"P2PMPI_SLOTS": "5", "P2PMPI_NETWORK": "env", "P2PMPI_DENY": "a,b", "P2PMPI_MDNS": "false"}
	c, o, err := fill(t, file, env, "--slots", "7")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ got, want any }{
		"flag over environment":    {c.Slots, 7},
		"environment over file":    {c.Network, "env"},
		"file over default":        {c.MaxJobs, 4},
		"default":                  {c.CacheLimit, int64(10 << 10)},
		"duration from file":       {c.GossipPeriod, 2 * time.Second},
		"list from file":           {fmt.Sprint(c.Listen), "[/ip4/127.0.0.1/tcp/1 /ip4/127.0.0.1/tcp/2]"},
		"list from environment":    {strings.Join(c.Deny, " "), "a b"},
		"bool from environment":    {c.MDNS, false},
		"p2prun's option in file":  {o.Replicas, Replicas(2)},
		"home from environment":    {c.Home, os.Getenv("P2PMPI_HOME")},
		"untouched run option":     {o.Strategy, "spread"},
		"untouched bool of config": {c.NAT, true},
	}
	for name, test := range tests {
		if test.got != test.want {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		}
	}
}

// TestPrecedenceHoldsForEveryOption sets every option of every command in the file, the environment and the
// command line, and removes the values one by one.
func TestPrecedenceHoldsForEveryOption(t *testing.T) {
	const peerPart = "/p2p/12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf"
	values := map[string][3]string{ // by type: in the file, the environment and the command line
		"string": {"file", "env", "flag"}, "int": {"1", "2", "3"}, "int64": {"1", "2", "3"},
		"duration": {"1s", "2s", "3s"}, "bool": {"true", "false", "true"},
		"stringSlice": {"[file]", "[env]", "[flag]"}, "stringArray": {"[file]", "[env]", "[flag]"},
		"float64": {"0.25", "0.5", "0.75"}, "number of replicas": {"2", "auto", "3"},
		"size of memory": {"1024", "2048", "4096"},
		"list of multiaddrs": {
			"/ip4/127.0.0.1/tcp/1" + peerPart, "/ip4/127.0.0.1/tcp/2" + peerPart, "/ip4/127.0.0.1/tcp/3" + peerPart,
		},
	}
	for _, key := range allKeys() {
		t.Run(key, func(t *testing.T) {
			flags := everyFlag()
			v, known := values[flags.Lookup(key).Value.Type()]
			if !known {
				t.Fatalf("no values for an option of type %s", flags.Lookup(key).Value.Type())
			}
			config := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(config, []byte(key+": "+v[0]+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			expect := func(want string, args ...string) {
				t.Helper()
				flags := everyFlag()
				if err := flags.Parse(append(args, "--config", config)); err != nil {
					t.Fatal(err)
				}
				if err := Fill(flags); err != nil {
					t.Fatal(err)
				}
				if got := flags.Lookup(key).Value.String(); got != want {
					t.Errorf("%v: got %s, want %s", args, got, want)
				}
			}
			expect(v[0])
			t.Setenv(envPrefix+"_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_")), strings.Trim(v[1], "[]"))
			expect(v[1])
			expect(v[2], "--"+key+"="+strings.Trim(v[2], "[]"))
		})
	}
}

func TestAddressesAreParsed(t *testing.T) {
	const first, second = "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf", "12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8"
	tests := map[string]struct {
		file   string
		args   []string
		listen string         // of DefaultConfig if empty
		met    map[string]int // number of addresses of each supernode
	}{
		"default":        {},
		"no port":        {args: []string{"--listen", "none"}, listen: "[]"},
		"no port, file":  {file: "listen: none\n", listen: "[]"},
		"empty list":     {file: "listen: []\n", listen: "[]"},
		"commas":         {args: []string{"--listen", "/ip4/127.0.0.1/tcp/1,/ip4/127.0.0.1/tcp/2"}, listen: "[/ip4/127.0.0.1/tcp/1 /ip4/127.0.0.1/tcp/2]"},
		"repeated":       {args: []string{"--listen", "/ip4/127.0.0.1/tcp/1", "--listen", "/ip4/127.0.0.1/tcp/2"}, listen: "[/ip4/127.0.0.1/tcp/1 /ip4/127.0.0.1/tcp/2]"},
		"flag over file": {file: "listen: none\n", args: []string{"--listen", "/ip4/127.0.0.1/tcp/1"}, listen: "[/ip4/127.0.0.1/tcp/1]"},
		"merged": {args: []string{"--supernode", "/ip4/127.0.0.1/tcp/1/p2p/" + first + ",/ip4/127.0.0.1/tcp/1/p2p/" + second,
			"--supernode", "/ip4/127.0.0.1/udp/1/quic-v1/p2p/" + first}, met: map[string]int{first: 2, second: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, _, err := fill(t, test.file, nil, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if test.listen == "" {
				test.listen = fmt.Sprint(DefaultConfig().Listen)
			}
			if got := fmt.Sprint(c.Listen); got != test.listen {
				t.Errorf("the peer listens on %s, want %s", got, test.listen)
			}
			met := make(map[string]int)
			for _, info := range c.Supernodes {
				met[info.ID.String()] += len(info.Addrs)
			}
			if len(c.Supernodes) != len(test.met) || !maps.Equal(met, test.met) {
				t.Errorf("got supernodes %v, want %v", c.Supernodes, test.met)
			}
		})
	}
}

func TestConfigurationErrorMessages(t *testing.T) {
	tests := map[string]struct {
		file string
		env  map[string]string
		args []string
		want []string
	}{
		"unknown key":                        {file: "slotz: 3\nother:\n  deep: 1\n", want: []string{"config.yaml", "unknown key other.deep, slotz (did you mean slots?)"}},
		"mistyped variable":                  {env: map[string]string{"P2PMPI_MAX_JOB": "3"}, want: []string{"P2PMPI_MAX_JOB:", "did you mean P2PMPI_MAX_JOBS?"}},
		"variable near two names":            {env: map[string]string{"P2PMPI_SLOT": "3"}, want: []string{"did you mean P2PMPI_SLOTS?"}},
		"variable of mpj":                    {env: map[string]string{"P2PMPI_CHEKC": "1"}, want: []string{"did you mean P2PMPI_CHECK?"}},
		"corrupt":                            {file: "slots: 3\nnetwork: [oops\n", want: []string{"config.yaml", "line "}},
		"not a YAML map":                     {file: "just words\n", want: []string{"config.yaml"}},
		"type in file":                       {file: "slots: many\n", want: []string{"config.yaml", "key slots", `"many"`}},
		"type in env":                        {env: map[string]string{"P2PMPI_MAX_JOBS": "x"}, want: []string{"P2PMPI_MAX_JOBS", `"x"`}},
		"address in file":                    {file: "listen: [/ip4/127.0.0.1/tcp/1, tcp://x]\n", want: []string{"config.yaml", "key listen", `"tcp://x" is not a multiaddr`}},
		"address in env":                     {env: map[string]string{"P2PMPI_SUPERNODE": "/ip4/127.0.0.1/tcp/1"}, want: []string{"P2PMPI_SUPERNODE", `"/ip4/127.0.0.1/tcp/1" is not`, "/p2p/"}},
		"key home in the configuration file": {file: "home: /elsewhere\n", want: []string{"config.yaml", "--home"}},
		"missing configuration file":         {args: []string{"--config", "/does/not/exist"}, want: []string{"/does/not/exist", "no such file"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := fill(t, test.file, test.env, test.args...)
			if err == nil {
				t.Fatal("got no error")
			}
			for _, w := range test.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("got %q, want it to contain %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("got several lines: %q", err)
			}
		})
	}
}

// TestUnrelatedEnvironmentVariablesAreIgnored checks that only variables whose names resemble those of options
// are errors.
func TestUnrelatedEnvironmentVariablesAreIgnored(t *testing.T) {
	if errs := checkVariables([]string{"P2PMPI_HOME=/x", "P2PMPI_CONFIG=x", "P2PMPI_COLL=x", "P2PMPI_CHECK=1", "P2PMPI_BUILD_SERVER=x", "P2PMPI_FD=3", "P2PMPI_LOCAL_PEER=1", "SLOTZ=3", "P2PMPI=x"}); len(errs) > 0 {
		t.Errorf("unrelated variables caused the errors %v", errs)
	}
}

func TestEveryOptionIsAConfigurationKey(t *testing.T) {
	keys := allKeys()
	for _, want := range []string{"home", "listen", "supernode", "network", "slots", "max-jobs", "http", "detach",
		"ranks", "replicas", "strategy", "files", "input", "output", "wait", "timeout", "local", "tag-output", "json", "drain", "now"} {
		if !slices.Contains(keys, want) {
			t.Errorf("%s is not a key", want)
		}
	}
}

func TestValidateReportsEveryWrongField(t *testing.T) {
	c := Config{
		Network: "a b", Settings: lending.Settings{Slots: -1, MaxJobs: -1, Allow: []string{"me"}},
		LogLevel: "loud", ToleratedHang: -1, Detector: "oracle",
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("the invalid configuration passed")
	}
	for _, option := range []string{"home", "network", "slots", "max-jobs", "allow", "gossip-period", "tolerated-hang", "detector", "cache-limit", "log-level"} {
		if !strings.Contains(err.Error(), option) {
			t.Errorf("no error mentions %s:\n%v", option, err)
		}
	}
	for name, good := range map[string]Config{"default": DefaultConfig(), "local": LocalConfig()} {
		if err := good.Validate(); err != nil {
			t.Errorf("the configuration %s is invalid: %v", name, err)
		}
	}
}

// TestUsagesContainNoLineBreaks checks that no usage text contains line breaks, which would be wrapped again.
func TestUsagesContainNoLineBreaks(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c, o := DefaultConfig(), RunOptions{}
	c.AddHomeFlags(flags)
	c.AddNetworkFlags(flags)
	c.AddVolunteerFlags(flags)
	o.AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if strings.Contains(f.Usage, "\n") {
			t.Errorf("the usage of --%s has several lines: %q", f.Name, f.Usage)
		}
	})
}

// TestConfigurationPageListsEveryOption checks that docs/configuration.md has a row for every option, with its
// default.
func TestConfigurationPageListsEveryOption(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]string) // default by key
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ") // option, key, default, meaning
		if len(cells) != 4 {
			continue
		}
		key := strings.Trim(cells[1], "`")
		if strings.Contains(cells[0], "--"+key+"`") || strings.Contains(cells[0], "--"+key+" ") {
			documented[key] = cells[2]
		}
	}
	c, o := DefaultConfig(), DefaultRunOptions()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.AddHomeFlags(flags)
	c.AddNetworkFlags(flags)
	c.AddVolunteerFlags(flags)
	AddHaltFlags(flags)
	o.AddFlags(flags)
	for _, key := range allKeys() {
		got, ok := documented[key]
		if !ok {
			t.Errorf("docs/configuration.md has no row for --%s", key)
			continue
		}
		f := flags.Lookup(key)
		want := f.DefValue
		if f.Value.Type() == "duration" {
			want = strings.TrimSuffix(strings.TrimSuffix(want, "0s"), "0m")
		}
		_, isList := f.Value.(pflag.SliceValue)
		if isList || want == "" || slices.Contains([]string{"ranks", "slots", "success"}, key) {
			continue // the page describes these defaults in words
		}
		if !strings.HasPrefix(got, "`"+want+"`") {
			t.Errorf("docs/configuration.md: default of --%s is %s, want `%s`", key, got, want)
		}
	}
}

// TestConfigurationWithoutPermission checks that a home without permission to enter counts as one
// without a configuration file, so that a request to its peer ends with ErrNotAllowed. An unreadable file
// in an accessible home is an error.
func TestConfigurationWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may enter every home: run it as another user")
	}
	home := t.TempDir()
	file := filepath.Join(home, "config.yaml")
	if err := os.WriteFile(file, []byte("slots: 1\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := readFile(viper.New(), "", home); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file that may not be read: got %v, want an error that names it", err)
	}
	if err := os.Chmod(home, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(home, 0o700)
	if err := readFile(viper.New(), "", home); err != nil {
		t.Errorf("a home that may not be entered: %v", err)
	}
}
