// Package match matches the messages of a communication context with its receives. It is pure: it starts no
// goroutine, takes no lock and reads no clock, and it imports nothing but the standard library.
//
//	receive --Post--> +--------------------------+ <--Arrive-- message
//	                  | Box: posted receives     |             (or Claim, at its header, and Keep)
//	       Matched <--|      unexpected messages |--> Matched
//	      Proposed <--+--------------------------+ <--Decide-- outcome of a wildcard receive
//
// A Box belongs to one context. The caller passes every receive and every message to the Box, and the Box returns
// every match: at Post, if a fitting message waits, and otherwise at Arrive. A receive fits a message if its source
// and its tag are those of the message; AnySource and AnyTag are equal to every source and every tag.
//
// # Agreement
//
// All replicas of a rank must make the same matches. With a named source they do: such a match is a function of the
// program and of the sequence of messages from that source. The match of a wildcard receive (a receive from
// AnySource) depends on timing, so the replicas agree on it. Such a receive has a Wild, which passes through these
// states:
//
//	            Post, Arrive, Next at the decider          Decide, same message
//	open ------------------------------------> proposed ------------------------> matched
//	  |                                            |                                 ^
//	  | Decide, Assign                             | Decide, another message         | its message is here
//	  +------------------------------------------> exact ----------------------------+
//
// Only the decider proposes. A proposed receive and its message stay in the Box until the outcome is known. Once it
// is known and differs from the proposal, or there was no proposal, the receive is exact: it takes the message that
// the outcome names, whatever has arrived before. A receive that is exact before it is posted has skipped the wait.
// Without replicas no receive has a Wild, and a wildcard receive is matched like any other.
//
// # Invariants
//
//   - M1: Messages do not overtake. Of two messages from one source that fit a receive, the receive takes the earlier.
//   - M2: Receives do not overtake. Of two receives that fit a message, the one posted earlier takes it, unless the
//     outcome of that receive names another message.
//   - M3: While no posted receive has a Wild, no unexpected message fits a posted receive. So a receive needs to be
//     compared with unexpected messages only when it is posted, and a message with posted receives only when it
//     arrives.
//   - M4: A receive with a named source does not take a message that fits an undecided wildcard receive posted
//     before it. It waits, and so do the receives behind it that fit the same message. So no result that a program
//     sees depends on an outcome that another replica may lack (promise R4). A wildcard receive waits for no
//     proposed wildcard receive, because its own outcome will name its message.
//   - M5: An exact receive takes no message but its own, and no other receive takes that message before it.
//   - M6: A wildcard receive without a Wild, and a proposal, takes the message that arrived first of those that it
//     may take. So no source waits forever while the program receives from AnySource.
//   - M7: Posting, withdrawing, and the match of the first receive or the first message take constant time, and
//     allocate no memory once the Box has had as many unexpected messages before. An empty Box keeps the memory of up
//     to 1024 messages.
//
// M5 supposes that outcomes come from a decider that keeps these rules. An outcome that contradicts them leaves a
// receive without its message, and the replicas diverge; it has no other effect on the Box.
//
// M3 needs help from the caller: after Decide, and after a change of the decider, the caller calls Next until it
// returns Waits, before it uses the Box otherwise.
package match
