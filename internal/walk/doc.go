// Package walk traverses an untrusted directory tree, which may change during the traversal.
//
//	Walk ── visit(".") ── visit("a") ── visit("a/b") ── visit("c") ──> nil, or the error that ended the walk
//
// The resources of a walk are bounded, whatever the tree contains. Each folder is opened relative to its parent.
// Few folders are open at a time, and few names of each are read at a time. The walk does not remember visited
// names. Symbolic links are visited but not followed. The walk adds missing permissions to folders, so it covers
// the whole tree. Entries that are moved during the walk may be visited twice or not at all. The duration is not
// bounded; visit may end the walk at any time.
package walk
