package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/net/networks"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

const networkLong = `A private network admits only peers with an invitation from its owner. The owner
is the home that created the network. Other peers cannot connect.

Exit status: 0 done, 64 wrong usage, or an invitation that cannot be used,
73 the home cannot be created, read or written.`

const networkExamples = `  p2pboot network create lab                 then: p2pboot --network lab
  p2pboot network invite > lab.token         then: p2prun --token lab.token ...
  p2pboot network join - < lab.token         then: p2pboot --network lab
  p2pboot network show`

func networkCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	cfg := peer.DefaultConfig()
	c := command.New("network COMMAND [OPTION]...", "Create or join a private network.")
	c.Long, c.Example = networkLong, networkExamples
	cfg.AddHomeFlags(c.Flags())
	addJSONFlag(c)
	c.Args = command.NoArgs
	c.RunE = func(*cobra.Command, []string) error {
		return command.UsageError("COMMAND is missing: create NAME, invite, join TOKEN or show; see p2pboot network --help")
	}
	c.AddCommand(createCommand(stdout), inviteCommand(stdout), joinCommand(stdin, stdout), showCommand(stdout))
	return c
}

const createLong = `Creates a private network, and makes this home its owner and its first member.
Only the owner can invite other peers. --name is your own name. Use the same
name in the invitations for your other machines, which then count as machines of
one owner.

Exit status: 0 done, 64 wrong usage, 73 the home cannot be created or written.`

func createCommand(stdout io.Writer) *cobra.Command {
	c := command.New("create NAME [--name PERSON] [--for TIME] [--json]", "Create a private network.")
	c.Long, c.Example = createLong, "  p2pboot network create --name bob lab      then: p2pboot --network lab"
	o := newNetworkOptions(c)
	o.addLifetime(c)
	c.Flags().StringVar(&o.name, "name", "", "your name, the `PERSON` who owns these machines")
	create := func(name string) (networks.Membership, error) {
		return networks.Create(o.cfg.Home, name, o.name, o.lifetime)
	}
	return runNetwork(c, o, "the NAME of the network", stdout, create, func(m networks.Membership) string { return startWith("created", m) })
}

const inviteLong = `Prints an invitation to a network that this home owns: one line of text.

--name is the name of the invited person. Use the same name in every invitation
for one person: that person's peers then count as machines of one owner. The
replicas of a rank go to peers of different owners if possible. Without --name,
all peers with this invitation count as machines of one owner.

With --peer, only that peer can use the invitation. Without --peer, anyone who
has the invitation can use it, for instance in a lecture room. Keep such an
invitation secret like a password. An invitation cannot be revoked; it expires
after --for.

Exit status: 0 done, 64 wrong usage, 73 the home cannot be read.`

const inviteExamples = `  p2pboot network invite --name alice > alice.token
  p2pboot network invite --peer 12D3KooW... --for 2160h
  p2pboot network invite > lab.token         then: p2prun --token lab.token ...`

func inviteCommand(stdout io.Writer) *cobra.Command {
	c := command.New("invite [--name PERSON] [--peer ID] [OPTION]...", "Print an invitation.")
	c.Long, c.Example = inviteLong, inviteExamples
	o := newNetworkOptions(c)
	o.addLifetime(c)
	c.Flags().StringVar(&o.name, "name", "", "name of the invited `PERSON`")
	c.Flags().StringVar(&o.peer, "peer", "", "invite only the peer with this `ID`, which p2pboot network show prints on its machine")
	c.Flags().StringVar(&o.network, "network", "", "`NAME` of the network, if the home owns several")
	invite := func(string) (invitation, error) {
		text, err := networks.Invite(o.cfg.Home, o.network, networks.Invitee{Name: o.name, Peer: o.peer}, o.lifetime)
		return invitation{text}, err
	}
	return runNetwork(c, o, "", stdout, invite, func(i invitation) string { return i.Text + "\n" })
}

const joinLong = `Accepts a new or renewed invitation. The peer may be running. TOKEN is the line
that p2pboot network invite printed, or - to read that line from standard input.
An invitation without --peer must come from standard input, because other users
can read command lines.

Exit status: 0 done, 64 wrong usage, or an invitation that cannot be used,
73 the home cannot be created or written.`

const joinExamples = `  p2pboot network join p2pmpi1.CqUB...       then: p2pboot --network lab
  p2pboot network join - < lab.token         then: p2pboot --network lab`

func joinCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	c := command.New("join TOKEN [--json]", "Accept an invitation.")
	c.Long, c.Example = joinLong, joinExamples
	o := newNetworkOptions(c)
	join := func(token string) (networks.Membership, error) { return joinNetwork(o.cfg.Home, token, stdin) }
	return runNetwork(c, o, "the TOKEN, or - to read it from standard input", stdout, join, func(m networks.Membership) string { return startWith("joined", m) })
}

const showLong = `Lists the private networks of this home, and the ID of its peer.

Exit status: 0 shown, 64 wrong usage, 73 the home cannot be created or read.`

func showCommand(stdout io.Writer) *cobra.Command {
	c := command.New("show [--json]", "List the networks of this home and the ID of its peer.")
	c.Long, c.Example = showLong, "  p2pboot network show"
	o := newNetworkOptions(c)
	show := func(string) (networksOf, error) { return networksOfHome(o.cfg.Home) }
	return runNetwork(c, o, "", stdout, show, describeNetworks)
}

// networkOptions holds the options of all commands of p2pboot network. Each command has some of them.
type networkOptions struct {
	cfg      peer.Config
	home     *pflag.FlagSet // options of cfg, which the environment and the configuration file can set
	lifetime time.Duration
	name     string
	peer     string
	network  string
}

// newNetworkOptions adds the options to c that all commands of p2pboot network have.
func newNetworkOptions(c *cobra.Command) *networkOptions {
	o := &networkOptions{cfg: peer.DefaultConfig(), home: pflag.NewFlagSet("", pflag.ContinueOnError)}
	o.cfg.AddHomeFlags(o.home)
	c.Flags().AddFlagSet(o.home)
	return o
}

func (o *networkOptions) addLifetime(c *cobra.Command) {
	o.lifetime = 720 * time.Hour
	c.Flags().DurationVar(&o.lifetime, "for", o.lifetime, "`TIME` after which the invitation expires")
	c.Flags().Lookup("for").DefValue = "720h"
}

// runNetwork makes c print the result of do, which it calls with the command's one argument, or with "" if wants is
// empty and the command takes no argument.
func runNetwork[T any](c *cobra.Command, o *networkOptions, wants string, stdout io.Writer, do func(arg string) (T, error), text func(T) string) *cobra.Command {
	arg := ""
	c.Args = func(c *cobra.Command, args []string) error {
		if wants == "" {
			return command.NoArgs(c, args)
		}
		if len(args) != 1 {
			return command.UsageError("want %s; see %s --help", wants, c.CommandPath())
		}
		arg = args[0]
		return nil
	}
	get := func(context.Context) (result T, err error) {
		if c.Flags().Lookup("for") != nil && o.lifetime <= 0 {
			return result, command.UsageError("--for %v: want more than 0", o.lifetime)
		}
		result, err = do(arg)
		return result, command.FailHome(err)
	}
	return printing(c, o.home, stdout, get, text) // the other options are not in the environment or the file
}

func joinNetwork(home, text string, stdin io.Reader) (m networks.Membership, err error) {
	if text == "-" {
		if text, err = bufio.NewReaderSize(io.LimitReader(stdin, 4<<10), 4<<10).ReadString('\n'); err != nil && err != io.EOF {
			return m, fmt.Errorf("read the invitation: %w", err)
		}
	} else if networks.IsSecret(text) {
		return m, errors.New("this invitation is not bound to a peer, and other users can read command lines: use p2pboot network join - < FILE")
	}
	return networks.Join(home, text)
}

// startWith tells how to start a peer of the network that the home has created or joined.
func startWith(done string, m networks.Membership) string {
	return fmt.Sprintf("%s network %s, valid until %s: start with p2pboot --network %s\n", done, m.Network, m.Expires.Format(time.DateTime), m.Network)
}

// invitation is the JSON output of p2pboot network invite.
type invitation struct {
	Text string `json:"invitation"`
}

// networksOf is the JSON output of p2pboot network show.
type networksOf struct {
	Peer     string                `json:"peer"`
	Networks []networks.Membership `json:"networks"`
}

func networksOfHome(home string) (n networksOf, err error) {
	id, err := homedir.IDOf(home)
	if err != nil {
		return n, err
	}
	all, err := networks.Of(home)
	return networksOf{Peer: id.String(), Networks: append([]networks.Membership{}, all...)}, err // an empty list in JSON, not null
}

func describeNetworks(n networksOf) string {
	lines := []string{"peer " + n.Peer}
	for _, m := range n.Networks {
		lines = append(lines, describeNetwork(m, time.Now()))
	}
	return strings.Join(lines, "\n") + "\n"
}

func describeNetwork(m networks.Membership, now time.Time) string {
	owner := "of owner " + m.Owner
	if m.Owned {
		owner = "owned by this home"
	}
	holder := "for peer " + m.Holder
	if !m.Bound {
		holder = "for anyone who holds it"
	}
	if m.Name != "" {
		holder += ", in the name of " + m.Name
	}
	until := "until"
	if !now.Before(m.Expires) {
		until = "expired on"
	}
	return fmt.Sprintf("network %s, %s; token %s, %s %s", m.Network, owner, holder, until, m.Expires.Format(time.DateTime))
}
