"""The commands of the command line, by subject: arguments and help are here, the work is in the other packages."""
