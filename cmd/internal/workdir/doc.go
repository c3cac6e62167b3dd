// Package workdir gives p2prun a temporary folder that is removed even if p2prun is killed.
//
//	TMPDIR/p2prun-123/lock   locked while its p2prun lives
//	                 /...    files of p2prun
//
// The kernel releases the lock when the process ends for any reason. A folder with a free lock is therefore no
// longer in use. The next p2prun, or a throw-away peer whose p2prun has ended, removes it.
package workdir
