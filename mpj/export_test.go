package mpj

// RunIn lets tests run a program in a job of any shape.
var RunIn = runIn
