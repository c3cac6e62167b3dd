// Package sealed signs records and opens signed ones, in libp2p's envelopes.
package sealed
