package proc

// A Tree is what a set of processes uses, as read from /proc; zero on systems without it.
type Tree struct {
	Threads  int64
	Files    int64 // of the process with the most open files
	Nameless int64 // bytes on disk of deleted files and folders
}
