package main

import "github.com/p2pmpi/p2pmpi/mpj"

// The tags of this program's messages.
const (
	askTag   = iota + 1 // a rank has nothing to do
	dealTag             // the number of the batch for it
	wordsTag            // entries for the rank that owns their words
	tableTag            // entries for rank 0 to print
)

// noBatch says that there is nothing left to do.
const noBatch = -1

// deal gives the numbers 0..batches-1 to the ranks that ask, whoever asks
// first, and then tells each that there are no more. Who is first depends on
// timing: the master of rank 0 decides, and its replicas follow, so that all
// of them deal alike and a new master goes on where the last one was.
func deal(c *mpj.Comm, batches int) error {
	next := int64(0)
	for asking := c.Size() - 1; asking > 0; {
		s, err := mpj.Recv(c, []byte{}, mpj.AnySource, askTag)
		if err != nil {
			return err
		}
		answer := int64(noBatch)
		if next < int64(batches) {
			answer = next
			next++
		} else {
			asking--
		}
		if err := mpj.Send(c, []int64{answer}, s.Source, dealTag); err != nil {
			return err
		}
	}
	return nil
}

// ask asks rank 0 for work and calls do for each number that it is given.
func ask(c *mpj.Comm, do func(batch int) error) error {
	answer := make([]int64, 1)
	for {
		if err := mpj.Send(c, []byte{}, 0, askTag); err != nil {
			return err
		}
		if _, err := mpj.Recv(c, answer, 0, dealTag); err != nil {
			return err
		}
		if answer[0] == noBatch {
			return nil
		}
		if err := do(int(answer[0])); err != nil {
			return err
		}
	}
}
