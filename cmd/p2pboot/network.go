package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/peer"
)

const networkLong = `A private network admits only peers that have an invitation of its owner: the
home that has created it. Others get no connection, whatever they know.

  create NAME     makes a network, and takes the peer of this home in
  invite          prints an invitation: one line of text
  join TOKEN      takes an invitation in, or a newer one; - reads standard input
  show            lists the networks of this home, and the peer's ID

--name says who is invited, as you know him: give it with each invitation of the
same person. Peers of one person are those of one owner, and the replicas of a
rank go to peers of different owners where there is a choice. Without a name,
peers with the same invitation are.

An invitation with --peer is that peer's alone. One without is for whoever has
it, such as a lecture room, or p2prun --token FILE: keep it as you would keep a
password, and join with it by standard input. It cannot be taken back, so let it
expire.

Exit status: 0 done, 64 wrong usage, or a home or an invitation that cannot be
used.`

const networkExamples = `  p2pboot network create lab                 then: p2pboot --network lab
  p2pboot network invite --peer 12D3KooW... --for 2160h
  p2pboot network join p2pmpi1.CqUB...       then: p2pboot --network lab
  p2pboot network invite --name alice > alice.token
  p2pboot network invite > lab.token         then: p2prun --token lab.token ...
  p2pboot network join - < lab.token         then: p2pboot --network lab`

// networkOptions are those of p2pboot network's commands.
type networkOptions struct {
	home     string
	lifetime time.Duration
	name     string
	peer     string
	network  string
	json     bool
}

// networkCommand is p2pboot network.
func networkCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	cfg := peer.DefaultConfig()
	var o networkOptions
	c := command.New("network create|invite|join|show [OPTION]...", "Make or join a private network.")
	c.Long, c.Example = networkLong, networkExamples
	home := pflag.NewFlagSet("", pflag.ContinueOnError)
	cfg.AddHomeFlags(home)
	c.Flags().AddFlagSet(home)
	c.Flags().DurationVar(&o.lifetime, "for", 720*time.Hour, "`TIME` after which the token expires")
	c.Flags().StringVar(&o.name, "name", "", "`NAME` of who is invited, or creates the network")
	c.Flags().StringVar(&o.peer, "peer", "", "`ID` of the only peer that is invited")
	c.Flags().StringVar(&o.network, "network", "", "`NAME` to invite to, if the home owns several")
	asJSON := addJSONFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := peer.Fill(home); err != nil { // the other options are this command's alone
			return command.Fail(command.Usage, err, "")
		}
		o.home, o.json = cfg.Home, *asJSON
		return command.Fail(command.Usage, o.run(args, stdin, stdout), "")
	}
	return c
}

func (o networkOptions) run(args []string, stdin io.Reader, stdout io.Writer) error {
	if o.lifetime <= 0 {
		return command.Misused("--for %v: want more than 0", o.lifetime)
	}
	switch {
	case len(args) == 2 && args[0] == "create":
		return o.create(args[1], stdout)
	case len(args) == 2 && args[0] == "join":
		return o.join(args[1], stdin, stdout)
	case len(args) == 1 && args[0] == "invite":
		return o.invite(stdout)
	case len(args) == 1 && args[0] == "show":
		return o.show(stdout)
	}
	return command.Misused("want create NAME, invite, join TOKEN or show; p2pboot network --help tells more")
}

func (o networkOptions) create(name string, stdout io.Writer) error {
	m, err := peer.CreateNetwork(o.home, name, o.name, o.lifetime)
	if err != nil {
		return err
	}
	return o.say(stdout, m, "created")
}

func (o networkOptions) join(text string, stdin io.Reader, stdout io.Writer) error {
	if text == "-" {
		var err error
		if text, err = bufio.NewReaderSize(io.LimitReader(stdin, 4<<10), 4<<10).ReadString('\n'); err != nil && err != io.EOF {
			return fmt.Errorf("read the invitation: %w", err)
		}
	} else if peer.IsSecret(text) {
		return errors.New("this invitation is for whoever has it, and others can read command lines: give it as p2pboot network join - < FILE")
	}
	m, err := peer.JoinNetwork(o.home, text)
	if err != nil {
		return err
	}
	return o.say(stdout, m, "joined")
}

func (o networkOptions) say(stdout io.Writer, m peer.Membership, done string) error {
	if o.json {
		return writeJSON(stdout, m)
	}
	_, err := fmt.Fprintf(stdout, "%s %s, until %s: start with p2pboot --network %s\n", done, m.Network, m.Expires.Format(time.DateTime), m.Network)
	return err
}

func (o networkOptions) invite(stdout io.Writer) error {
	text, err := peer.Invite(o.home, o.network, peer.Invitee{Name: o.name, Peer: o.peer}, o.lifetime)
	if err != nil {
		return err
	}
	if o.json {
		return writeJSON(stdout, map[string]string{"invitation": text})
	}
	_, err = fmt.Fprintln(stdout, text)
	return err
}

// networksOf is what show tells.
type networksOf struct {
	Peer     string            `json:"peer"`
	Networks []peer.Membership `json:"networks"`
}

func (o networkOptions) show(stdout io.Writer) error {
	id, err := peer.IDOf(o.home)
	if err != nil {
		return err
	}
	n := networksOf{Peer: id.String(), Networks: []peer.Membership{}}
	all, err := peer.Memberships(o.home)
	if err != nil {
		return err
	}
	n.Networks = append(n.Networks, all...)
	if o.json {
		return writeJSON(stdout, n)
	}
	fmt.Fprintln(stdout, "peer", n.Peer)
	for _, m := range n.Networks {
		fmt.Fprintln(stdout, describeNetwork(m, time.Now()))
	}
	return nil
}

func describeNetwork(m peer.Membership, now time.Time) string {
	owner := "of owner " + m.Owner
	if m.Owned {
		owner = "owned by this home"
	}
	holder := "for peer " + m.Holder
	if !m.Bound {
		holder = "for whoever has it"
	}
	if m.Name != "" {
		holder += ", as one of " + m.Name
	}
	until := "until"
	if !now.Before(m.Expires) {
		until = "expired on"
	}
	return fmt.Sprintf("network %s, %s; token %s, %s %s", m.Network, owner, holder, until, m.Expires.Format(time.DateTime))
}
