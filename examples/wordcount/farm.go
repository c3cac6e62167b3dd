package main

import "github.com/p2pmpi/p2pmpi/mpj"

// The tags of this program's messages.
const (
	askTag   = iota + 1 // request from an idle rank
	dealTag             // number of the batch assigned to that rank
	wordsTag            // entries for the rank that owns their words
	tableTag            // entries for rank 0 to print
)

// noBatch tells a rank that no batches are left.
const noBatch = -1

// deal assigns the numbers 0..batches-1 to the ranks in the order of their requests, and then tells
// each rank that no numbers are left. The order of requests depends on timing. The master of rank 0
// decides the order, and the other replicas use the same order. So all replicas make the same
// assignments, and a new master continues where the last master stopped.
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

// ask requests work from rank 0 and calls do with each number that it gets.
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
