package proc

// A Tree is what some processes have, as /proc tells; nothing where there is none.
type Tree struct {
	Threads  int64
	Files    int64 // of that process that has the most open
	Nameless int64 // bytes on disk of files and folders that have no name any more
}
