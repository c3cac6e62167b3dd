package core

import (
	"cmp"
	"errors"
	"slices"
)

// A proposal is what a rank of an intercommunicator states about the new one: the numbers that
// exchangeProposals sends.
type proposal struct {
	color, key int64
	outside    int64 // number of members of its group that are not in the local group
	digest     int64 // of its group
}

// proposalSize is the count of numbers of a proposal.
const proposalSize = 4

// SplitInter is Split of an intercommunicator c. d becomes the intercommunicator of the ranks of both
// groups that pass the same color, and local the communicator of its local group. If no rank of the
// remote group passes the color of this rank, this rank is in no communicator.
func SplitInter(c, d, local *Comm, color, key int) (member bool, err error) {
	if err := c.CheckInter(); err != nil {
		return false, err
	}
	return formInter(c, d, local, proposal{color: int64(color), key: int64(key)}, func(group string, all []proposal) error {
		for i, p := range all {
			if p.color < 0 && p.color != Undefined {
				return c.Failf(ErrArg, "rank %d of the %s group passes color %d: colors are at least 0, or Undefined", i, group, p.color)
			}
		}
		return nil
	})
}

// CreateInter is Create of an intercommunicator c: d becomes the intercommunicator of the members of g,
// which are ranks of the local group, and of the group that the remote ranks pass. All ranks of a group
// pass the same g. If either is empty, no rank is in a communicator.
func CreateInter(c, d, local *Comm, g Group) (member bool, err error) {
	if err := c.CheckInter(); err != nil {
		return false, err
	}
	p := proposal{color: Undefined, digest: g.digest()}
	for _, m := range g.Members {
		if c.local.RankOf(m) == Undefined {
			p.outside++
		}
	}
	if at := g.Rank(); at != Undefined {
		p.color, p.key = 0, int64(at)
	}
	return formInter(c, d, local, p, func(group string, all []proposal) error {
		for i, p := range all {
			if p.outside > 0 {
				return c.Failf(ErrGroup, "the group of rank %d of the %s group has %d members that are not in it", i, group, p.outside)
			}
			if p.digest != all[0].digest {
				return c.Failf(ErrGroup, "ranks 0 and %d of the %s group pass different groups", i, group)
			}
		}
		return nil
	})
}

// formInter makes d an intercommunicator of the ranks of both groups of c with the color of mine,
// ordered by key. judge returns an error for invalid proposals of a group, so that all ranks fail.
func formInter(c *Comm, d, local *Comm, mine proposal, judge func(group string, all []proposal) error) (member bool, err error) {
	c.startMaking()
	defer c.making.Unlock()
	l := c.descend()
	ours, theirs, err := exchangeProposals(c, mine)
	if err != nil {
		return false, c.wrap(err)
	}
	if err := cmp.Or(judge("local", ours), judge("remote", theirs)); err != nil {
		return false, err
	}
	id, err := c.identify(l, agreementOf(c))
	if err != nil {
		return false, c.wrap(err)
	}
	near, far := chosen(c.local, ours, mine.color), chosen(c, theirs, mine.color)
	if mine.color == Undefined || len(far) == 0 {
		return false, nil
	}
	makeInter(c, d, local, id, l, near, far)
	return true, nil
}

// chosen returns the world ranks of the ranks of c whose proposals have the color, ordered by key.
func chosen(c *Comm, all []proposal, color int64) []int {
	var ranks []int
	for i, p := range all {
		if p.color == color {
			ranks = append(ranks, i)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[a].key, all[b].key) })
	for i, r := range ranks {
		ranks[i] = c.WorldRank(r)
	}
	return ranks
}

// exchangeProposals returns the proposals of all ranks of the local and of the remote group.
func exchangeProposals(c *Comm, mine proposal) (ours, theirs []proposal, err error) {
	all, err := c.local.gatherAll(mine.color, mine.key, mine.outside, mine.digest)
	if err != nil {
		return nil, nil, err
	}
	remote := make([]int64, proposalSize*c.named)
	var failed error
	if c.rank == 0 {
		if failed = c.swap(bytesOf(all), 0, bytesOf(remote), 0); failed != nil {
			remote = nil // tells the local ranks of the failure
		}
	}
	remote, err = share(c.local, remote, 0)
	if err != nil || failed != nil {
		return nil, nil, errors.Join(failed, err)
	}
	if len(remote) != proposalSize*c.named {
		return nil, nil, errDifferentOrder
	}
	return proposalsOf(all), proposalsOf(remote), nil
}

// proposalsOf returns the proposals that numbers contain.
func proposalsOf(numbers []int64) []proposal {
	all := make([]proposal, 0, len(numbers)/proposalSize)
	for p := range slices.Chunk(numbers, proposalSize) {
		all = append(all, proposal{color: p[0], key: p[1], outside: p[2], digest: p[3]})
	}
	return all
}
